// Package kerneltest is the suite that every backend must pass: each operation in
// every format and awkward shape, compared with the plain-Go reference.
package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"atoll/kernels"
	"atoll/kernels/quant"
	"atoll/kernels/ref"
)

// Open makes a backend that shares its work over so many threads.
type Open func(threads int) (kernels.Backend, error)

// Formats lists every weight format, in the order of the tests.
var Formats = []quant.Format{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K}

// matMulTolerance bounds |got-want| of a product by this factor of sum |w||x|. All
// formats are computed from the same exact integers or unrounded values, so only
// the order of float32 additions may differ. Formats with a minimum add two large
// terms of opposite sign, whose rounding is not small beside |w||x|.
var matMulTolerance = map[quant.Format]float64{
	quant.F32: 2e-6, quant.F16: 2e-6, quant.BF16: 2e-6,
	quant.Q4_0: 2e-6, quant.Q4_1: 1e-5, quant.Q5_0: 2e-6, quant.Q5_1: 1e-5, quant.Q8_0: 2e-6,
	quant.Q4_K: 2e-6, quant.Q5_K: 2e-6, quant.Q6_K: 2e-6,
}

// tolerance bounds the other operations, relative to the largest value of a row.
const tolerance = 2e-5

// Run checks a backend with one, two and three threads.
func Run(t *testing.T, open Open) {
	for _, threads := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			b, err := open(threads)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			s := &suite{b: b, ref: ref.New(ref.Options{Threads: 1})}
			t.Run("Memory", s.memory)
			t.Run("MatMul", s.matMul)
			t.Run("MatMulShared", s.matMulShared)
			t.Run("MatMulExtremes", s.matMulExtremes)
			t.Run("RMSNorm", s.rmsNorm)
			t.Run("Rope", s.rope)
			t.Run("SwiGLU", s.swiGLU)
			t.Run("Add", s.add)
			t.Run("Attend", s.attend)
			t.Run("CopyPage", s.copyPage)
			t.Run("Stop", s.stop)
			t.Run("Bugs", s.bugs)
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := b.Close(); err != nil {
				t.Error("second close:", err)
			}
		})
	}
}

type suite struct{ b, ref kernels.Backend }

// normals returns n values around 0, some of them exactly 0, some large.
func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		switch rng.IntN(50) {
		case 0:
			x[i] = 0
		case 1:
			x[i] *= 20
		}
	}
	return x
}

func source(seed ...uint64) *rand.Rand {
	s := uint64(7)
	for _, v := range seed {
		s = s*1_000_003 + v
	}
	return rand.New(rand.NewPCG(s, 1))
}

// load returns a buffer that holds x.
func load(t testing.TB, b kernels.Backend, x []float32) kernels.Buffer {
	t.Helper()
	buf, err := b.NewBuffer(len(x))
	if err != nil {
		t.Fatal(err)
	}
	b.Write(buf, 0, x)
	return buf
}

// fetch returns the values of a buffer.
func fetch(t testing.TB, b kernels.Backend, buf kernels.Buffer) []float32 {
	t.Helper()
	x := make([]float32, buf.Len())
	if err := b.Read(x, buf, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// both runs an operation on the backend under test and on the reference. do
// prepares it from the same inputs and returns the buffer of the result.
func (s *suite) both(t *testing.T, do func(b kernels.Backend) kernels.Buffer) (got, want []float32) {
	t.Helper()
	return fetch(t, s.b, do(s.b)), fetch(t, s.ref, do(s.ref))
}

// near compares rows of w values, each within rel of the row's largest value.
func near(t *testing.T, got, want []float32, w int, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for r := 0; r < len(want); r += w {
		top := 1e-6
		for _, v := range want[r : r+w] {
			top = max(top, math.Abs(float64(v)))
		}
		for i := r; i < r+w; i++ {
			if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= rel*top) {
				t.Fatalf("value %d of row %d: %v, want %v (difference %.2g of %.3g)", i-r, r/w, got[i], want[i], d, top)
			}
		}
	}
}

func (s *suite) memory(t *testing.T) {
	x := normals(source(1), 100)
	b := load(t, s.b, x)
	if b.Len() != 100 {
		t.Fatalf("length %d", b.Len())
	}
	part := s.b.Slice(b, 40, 20)
	if part.Len() != 20 {
		t.Fatalf("slice of length %d", part.Len())
	}
	s.b.Write(part, 5, []float32{1, 2, 3})
	copy(x[45:], []float32{1, 2, 3})
	near(t, fetch(t, s.b, b), x, 100, 0)
	one := make([]float32, 1)
	if err := s.b.Read(one, part, 6); err != nil || one[0] != 2 {
		t.Fatalf("read %v, %v", one, err)
	}
	zero, err := s.b.NewBuffer(64)
	if err != nil {
		t.Fatal(err)
	}
	near(t, fetch(t, s.b, zero), make([]float32, 64), 64, 0)
}

func (s *suite) rmsNorm(t *testing.T) {
	for _, d := range []int{8, 64, 100, 576, 896, 1536} {
		for _, n := range []int{1, 3, 17} {
			rng := source(2, uint64(d), uint64(n))
			x, gain := normals(rng, n*d), normals(rng, d)
			clear(x[:d]) // a row of zeros stays zero
			got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
				buf := load(t, b, x)
				b.RMSNorm(buf, buf, load(t, b, gain), n, 1e-6)
				return buf
			})
			near(t, got, want, d, tolerance)
		}
	}
}

func (s *suite) rope(t *testing.T) {
	for _, kind := range []kernels.RopeKind{kernels.RopeNorm, kernels.RopeNeoX} {
		for _, c := range []struct{ n, heads, hd, dims int }{{1, 1, 64, 64}, {5, 3, 64, 64}, {2, 14, 128, 128}, {3, 2, 80, 32}, {4, 2, 64, 6}, {33, 9, 64, 64}} {
			rng := source(3, uint64(kind), uint64(c.n), uint64(c.hd))
			x := normals(rng, c.n*c.heads*c.hd)
			cos, sin := make([]float32, c.n*c.dims/2), make([]float32, c.n*c.dims/2)
			for i := range cos {
				sn, cs := math.Sincos(rng.Float64() * 100)
				cos[i], sin[i] = float32(cs), float32(sn)
			}
			got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
				buf := load(t, b, x)
				b.Rope(buf, load(t, b, cos), load(t, b, sin), c.n, c.heads, c.hd, c.dims, kind)
				return buf
			})
			near(t, got, want, c.hd, 1e-6)
		}
	}
}

func (s *suite) swiGLU(t *testing.T) {
	for _, n := range []int{1, 7, 64, 1000, 8960 * 3} {
		rng := source(4, uint64(n))
		g, u := normals(rng, n), normals(rng, n)
		for i, v := range []float32{100, -100, 1000, -1000, 88, -88, 0} {
			g[i*n/7] = v
		}
		got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
			buf := load(t, b, g)
			b.SwiGLU(buf, buf, load(t, b, u), n)
			return buf
		})
		for i := range want {
			near(t, got[i:i+1], want[i:i+1], 1, tolerance)
		}
	}
}

func (s *suite) add(t *testing.T) {
	for _, n := range []int{1, 15, 16, 1537} {
		rng := source(5, uint64(n))
		x, y := normals(rng, n+3), normals(rng, n)
		got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
			buf := load(t, b, x)
			b.Add(buf, load(t, b, y), n)
			return buf
		})
		near(t, got, want, n+3, 0)
	}
}

// bugs checks that wrong shapes are refused and not computed.
func (s *suite) bugs(t *testing.T) {
	mustBug := func(name string, f func()) {
		t.Helper()
		defer func() {
			if r := recover(); !strings.HasPrefix(fmt.Sprint(r), "BUG: ") {
				t.Errorf("%s: recovered %v", name, r)
			}
		}()
		f()
	}
	small, big := load(t, s.b, make([]float32, 32)), load(t, s.b, make([]float32, 64))
	w := s.weight(t, s.b, quant.Q8_0, 32, 64, source(6), nil)
	mustBug("short input", func() { s.b.MatMul([]kernels.Buffer{big}, []kernels.Weight{w}, small, 1, false) })
	mustBug("short output", func() {
		s.b.MatMul([]kernels.Buffer{small}, []kernels.Weight{w}, load(t, s.b, make([]float32, 128)), 2, false)
	})
	mustBug("norm", func() { s.b.RMSNorm(small, big, big, 1, 1e-6) })
	mustBug("rope", func() { s.b.Rope(small, big, big, 1, 1, 64, 64, kernels.RopeNeoX) })
	mustBug("add", func() { s.b.Add(small, big, 64) })
	mustBug("swiglu", func() { s.b.SwiGLU(big, small, big, 64) })
	mustBug("write", func() { s.b.Write(small, 30, make([]float32, 3)) })
	mustBug("read", func() { _ = s.b.Read(make([]float32, 33), small, 0) })
}
