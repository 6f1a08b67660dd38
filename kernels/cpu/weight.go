//go:build amd64 && !purego

package cpu

import (
	"fmt"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// weight is a matrix ready for products: packed tiles, or float rows in place.
type weight struct {
	format     quant.Format
	rows, cols int
	bias       []float32

	data      []byte // tiles, or rows
	lay       layout // of packed formats
	groups    int    // columns / 32
	tiles     int
	tileBytes int
	packed    bool
}

// Rows implements the same method as documented on kernels.Weight.
func (w *weight) Rows() int { return w.rows }

// Cols implements the same method as documented on kernels.Weight.
func (w *weight) Cols() int { return w.cols }

// Bytes implements the same method as documented on kernels.Weight.
func (w *weight) Bytes() int64 {
	if !w.packed {
		return 0
	}
	return int64(len(w.data))
}

// NewWeight implements the same method as documented on kernels.Backend.
func (b *backend) NewWeight(m kernels.Matrix) (kernels.Weight, error) {
	if b.closed {
		return nil, fmt.Errorf("load %s: %w", m.Name, errClosed)
	}
	if !m.Format.Known() {
		return nil, fmt.Errorf("load %s: format %v is not supported", m.Name, m.Format)
	}
	check(m.Rows > 0 && m.Cols > 0 && m.Cols%m.Format.BlockLen() == 0, "%s is %d x %d %v", m.Name, m.Rows, m.Cols, m.Format)
	size := m.Format.RowBytes(m.Cols)
	check(len(m.Data) == m.Rows*size, "%s has %d bytes, want %d", m.Name, len(m.Data), m.Rows*size)
	check(m.Bias == nil || len(m.Bias) == m.Rows, "%s has a bias of %d values for %d rows", m.Name, len(m.Bias), m.Rows)

	w := &weight{format: m.Format, rows: m.Rows, cols: m.Cols, data: m.Data}
	if m.Bias != nil {
		w.bias = append([]float32(nil), m.Bias...)
	}
	lay, ok := layouts[m.Format]
	if !ok {
		return w, nil
	}
	w.packed, w.lay, w.groups = true, lay, m.Cols/groupLen
	w.tiles = (m.Rows + tileRows - 1) / tileRows
	w.tileBytes = lay.tileBytes(w.groups)
	data, err := b.arena.alloc(w.tiles * w.tileBytes)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", m.Name, err)
	}
	w.data = data[:w.tiles*w.tileBytes]

	// Rows of a tile are taken piece by piece, so that a piece of all 16 stays in the
	// first cache while its lines fill up.
	blocks := m.Cols / m.Format.BlockLen()
	bytes := m.Format.BlockBytes()
	head := lay.head(w.groups)
	stop := b.stop
	b.stop = nil // a matrix is never left half packed
	defer func() { b.stop = stop }()
	b.share(w.tiles, func(_, t int) {
		tile := w.data[t*w.tileBytes : (t+1)*w.tileBytes]
		rows := min(tileRows, m.Rows-t*tileRows)
		src := m.Data[t*tileRows*size:]
		if lay.super {
			piece := w.tileBytes / blocks
			for k := range blocks {
				for r := range rows {
					lay.pack(tile[k*piece:(k+1)*piece], head, r, src[r*size+k*bytes:r*size+(k+1)*bytes], 1)
				}
			}
			return
		}
		const step = 8
		scales := lay.scaleBytes()
		for k := 0; k < blocks; k += step {
			n := min(step, blocks-k)
			part := tile[k*scales:]
			for r := range rows {
				lay.pack(part, head-k*scales+k*lay.groupBytes(), r, src[r*size+k*bytes:r*size+(k+n)*bytes], n)
			}
		}
	})
	return w, nil
}
