package ref

import (
	"fmt"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// weight is a matrix in the blocks of the model file.
type weight struct{ kernels.Matrix }

// Rows implements the same method as documented on kernels.Weight.
func (w *weight) Rows() int { return w.Matrix.Rows }

// Cols implements the same method as documented on kernels.Weight.
func (w *weight) Cols() int { return w.Matrix.Cols }

// Bytes implements the same method as documented on kernels.Weight.
func (w *weight) Bytes() int64 { return 0 }

// NewWeight implements the same method as documented on kernels.Backend.
func (b *Backend) NewWeight(m kernels.Matrix) (kernels.Weight, error) {
	if !m.Format.Known() {
		return nil, fmt.Errorf("weight %s: format %v is not supported", m.Name, m.Format)
	}
	check(m.Rows > 0 && m.Cols > 0 && m.Cols%m.Format.BlockLen() == 0, "weight %s of %d x %d %v", m.Name, m.Rows, m.Cols, m.Format)
	check(len(m.Data) == m.Rows*m.Format.RowBytes(m.Cols), "weight %s has %d bytes", m.Name, len(m.Data))
	check(m.Bias == nil || len(m.Bias) == m.Rows, "weight %s has %d biases for %d rows", m.Name, len(m.Bias), m.Rows)
	return &weight{m}, nil
}

// rowChunk is the number of rows that a goroutine takes at a time.
const rowChunk = 8

// MatMul implements the same method as documented on kernels.Backend.
func (b *Backend) MatMul(dst []kernels.Buffer, w []kernels.Weight, x kernels.Buffer, n int, add bool) {
	check(len(dst) == len(w) && len(w) > 0 && n > 0, "matmul of %d weights into %d for %d tokens", len(w), len(dst), n)
	cols := w[0].Cols()
	xs := x.(buffer)
	check(len(xs) >= n*cols, "matmul input of %d values for %d x %d", len(xs), n, cols)
	var in *rounded
	for i := range w {
		m := w[i].(*weight)
		out := dst[i].(buffer)
		check(m.Matrix.Cols == cols && len(out) >= n*m.Matrix.Rows, "matmul of %s: %d x %d into %d for %d tokens", m.Name, m.Matrix.Rows, m.Matrix.Cols, len(out), n)
		if m.Format.GroupLen() == 0 {
			b.matMulFloat(out, m, xs, n, add)
			continue
		}
		if in == nil {
			in = b.round(xs, n, cols)
		}
		b.matMulInt(out, m, in, n, add)
	}
}

// rounded holds n rows of activations as bytes, with a scale and the sum of the
// bytes for each group.
type rounded struct {
	q     []int8
	scale []float32
	sum   []int32
}

func (b *Backend) round(x buffer, n, cols int) *rounded {
	g := cols / kernels.GroupLen
	r := &rounded{make([]int8, n*cols), make([]float32, n*g), make([]int32, n*g)}
	for i := range n * g {
		q := r.q[i*kernels.GroupLen : (i+1)*kernels.GroupLen]
		r.scale[i], r.sum[i] = kernels.QuantizeGroup(q, x[i*kernels.GroupLen:(i+1)*kernels.GroupLen])
	}
	return r
}

// matMulInt multiplies block formats: exact integer sums within a group, scaled and
// added up in float32 from the first group to the last.
func (b *Backend) matMulInt(dst buffer, w *weight, in *rounded, n int, add bool) {
	rows, cols := w.Matrix.Rows, w.Matrix.Cols
	rowBytes := w.Format.RowBytes(cols)
	gl := w.Format.GroupLen()
	groups := cols / kernels.GroupLen
	type scratch struct {
		codes         []int8
		scale, offset []float32
	}
	mem := make([]scratch, b.threads)
	b.share((rows+rowChunk-1)/rowChunk, func(worker, chunk int) {
		s := &mem[worker]
		if s.codes == nil {
			*s = scratch{make([]int8, cols), make([]float32, cols/gl), make([]float32, cols/gl)}
		}
		for r := chunk * rowChunk; r < min((chunk+1)*rowChunk, rows); r++ {
			quant.Unpack(w.Format, s.codes, s.scale, s.offset, w.Data[r*rowBytes:(r+1)*rowBytes])
			for t := range n {
				if b.stopped() {
					return
				}
				q := in.q[t*cols : (t+1)*cols]
				xs := in.scale[t*groups : (t+1)*groups]
				sum := in.sum[t*groups : (t+1)*groups]
				var acc float32
				if gl == 16 {
					for g := range groups {
						c := (*[32]int8)(s.codes[32*g:])
						x := (*[32]int8)(q[32*g:])
						acc += float32(dot16((*[16]int8)(c[:16]), (*[16]int8)(x[:16]))) * (s.scale[2*g] * xs[g])
						acc += float32(dot16((*[16]int8)(c[16:]), (*[16]int8)(x[16:]))) * (s.scale[2*g+1] * xs[g])
					}
				} else {
					for g := range groups {
						acc += float32(dot32((*[32]int8)(s.codes[32*g:]), (*[32]int8)(q[32*g:]))) * (s.scale[g] * xs[g])
						if o := s.offset[g]; o != 0 {
							acc += float32(sum[g]) * (o * xs[g])
						}
					}
				}
				put(dst, t*rows+r, acc, w.Bias, r, add)
			}
		}
	})
}

func put(dst buffer, i int, acc float32, bias []float32, r int, add bool) {
	if bias != nil {
		acc += bias[r]
	}
	if add {
		acc += dst[i]
	}
	dst[i] = acc
}

func dot16(a, b *[16]int8) int32 {
	var s int32
	for i := range a {
		s += int32(a[i]) * int32(b[i])
	}
	return s
}

// dot32 keeps four sums so that the additions do not wait for each other.
func dot32(a, b *[32]int8) int32 {
	var s0, s1, s2, s3 int32
	for i := 0; i < 32; i += 8 {
		a, b := (*[8]int8)(a[i:]), (*[8]int8)(b[i:])
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
	}
	return s0 + s1 + s2 + s3
}

// matMulFloat multiplies F32, F16 and BF16 weights with activations as they are.
func (b *Backend) matMulFloat(dst buffer, w *weight, x buffer, n int, add bool) {
	rows, cols := w.Matrix.Rows, w.Matrix.Cols
	rowBytes := w.Format.RowBytes(cols)
	mem := make([][]float32, b.threads)
	b.share((rows+rowChunk-1)/rowChunk, func(worker, chunk int) {
		if mem[worker] == nil {
			mem[worker] = make([]float32, cols)
		}
		row := mem[worker]
		for r := chunk * rowChunk; r < min((chunk+1)*rowChunk, rows); r++ {
			quant.Dequantize(w.Format, row, w.Data[r*rowBytes:(r+1)*rowBytes])
			for t := range n {
				if b.stopped() {
					return
				}
				put(dst, t*rows+r, dotFloat(row, x[t*cols:(t+1)*cols]), w.Bias, r, add)
			}
		}
	})
}

func dotFloat(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}
