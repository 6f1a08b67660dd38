//go:build amd64 && !purego

package cpu

import "encoding/binary"

var le = binary.LittleEndian

// The pack functions store one row of a matrix as row of a tile. head is the offset
// of the quants in the tile.

func packQ40(tile []byte, head, row int, src []byte, blocks int) {
	for b := range blocks {
		s := src[18*b : 18*b+18]
		copy(tile[32*b+2*row:], s[:2])
		nibbles(tile[head+256*b+4*row:], s[2:])
	}
}

func packQ41(tile []byte, head, row int, src []byte, blocks int) {
	for b := range blocks {
		s := src[20*b : 20*b+20]
		copy(tile[64*b+2*row:], s[:2])
		copy(tile[64*b+32+2*row:], s[2:4])
		nibbles(tile[head+256*b+4*row:], s[4:])
	}
}

func packQ50(tile []byte, head, row int, src []byte, blocks int) {
	for b := range blocks {
		s := src[22*b : 22*b+22]
		copy(tile[32*b+2*row:], s[:2])
		d := tile[head+320*b+4*row:]
		nibbles(d, s[6:])
		le.PutUint32(d[256:], spreadBits(le.Uint32(s[2:])))
	}
}

func packQ51(tile []byte, head, row int, src []byte, blocks int) {
	for b := range blocks {
		s := src[24*b : 24*b+24]
		copy(tile[64*b+2*row:], s[:2])
		copy(tile[64*b+32+2*row:], s[2:4])
		d := tile[head+320*b+4*row:]
		nibbles(d, s[8:])
		le.PutUint32(d[256:], spreadBits(le.Uint32(s[4:])))
	}
}

func packQ80(tile []byte, head, row int, src []byte, blocks int) {
	for b := range blocks {
		s := src[34*b : 34*b+34]
		copy(tile[32*b+2*row:], s[:2])
		d := tile[head+512*b+4*row:]
		for i := range 8 {
			le.PutUint32(d[64*i:], le.Uint32(s[2+4*i:]))
		}
	}
}

// nibbles stores the 16 bytes of a block whose low nibbles are columns 0..15 and
// whose high nibbles are columns 16..31: the order of our lines already.
func nibbles(d, qs []byte) {
	_, _ = d[195], qs[15]
	le.PutUint32(d, le.Uint32(qs))
	le.PutUint32(d[64:], le.Uint32(qs[4:]))
	le.PutUint32(d[128:], le.Uint32(qs[8:]))
	le.PutUint32(d[192:], le.Uint32(qs[12:]))
}

// spreadBits turns bit 4*s+b to bit 8*b+s.
func spreadBits(v uint32) uint32 {
	var out uint32
	for b := range 4 {
		w := v >> b & 0x11111111
		w = (w | w>>3) & 0x03030303
		w = (w | w>>6) & 0x000f000f
		w = (w | w>>12) & 0xff
		out |= w << (8 * b)
	}
	return out
}

const lowNibbles = 0x0f0f0f0f

// lowLines stores the low nibbles of 32 bytes, column by column, as four lines;
// highLines the high ones.
func lowLines(d, qs []byte) {
	_, _ = d[195], qs[31]
	for i := range 4 {
		a, c := le.Uint32(qs[4*i:]), le.Uint32(qs[16+4*i:])
		le.PutUint32(d[64*i:], a&lowNibbles|c&lowNibbles<<4)
	}
}

func highLines(d, qs []byte) {
	_, _ = d[195], qs[31]
	for i := range 4 {
		a, c := le.Uint32(qs[4*i:]), le.Uint32(qs[16+4*i:])
		le.PutUint32(d[64*i:], a>>4&lowNibbles|c&^lowNibbles)
	}
}

// packK4 stores the scales of a Q4_K or Q5_K block, given its first 16 bytes: d,
// dmin, then 8 scales and 8 minimums of 6 bits in 12 bytes.
func packK4(t []byte, row int, s []byte) {
	copy(t[2*row:], s[:2])
	copy(t[32+2*row:], s[2:4])
	q := s[4:16]
	for j := range 4 {
		t[kScales+16*j+row] = q[j] & 63
		t[kMins+16*j+row] = q[j+4] & 63
		t[kScales+16*(j+4)+row] = q[j+8]&0xf | q[j]>>6<<4
		t[kMins+16*(j+4)+row] = q[j+8]>>4 | q[j+4]>>6<<4
	}
}

func packQ4K(tile []byte, _, row int, src []byte, blocks int) {
	const size = kHeader + 8*256
	for b := range blocks {
		s, t := src[144*b:144*b+144], tile[size*b:size*b+size]
		packK4(t, row, s)
		for c := range 4 {
			d, qs := t[kHeader+512*c+4*row:], s[16+32*c:]
			lowLines(d, qs)
			highLines(d[256:], qs)
		}
	}
}

func packQ5K(tile []byte, _, row int, src []byte, blocks int) {
	const size = kHeader + 8*320
	for b := range blocks {
		s, t := src[176*b:176*b+176], tile[size*b:size*b+size]
		packK4(t, row, s)
		for c := range 4 {
			d, qs := t[kHeader+640*c+4*row:], s[48+32*c:]
			lowLines(d, qs)
			highLines(d[320:], qs)
		}
		for g := range 8 {
			var plane uint32
			for st := range 8 {
				plane |= le.Uint32(s[16+4*st:]) >> g & 0x01010101 << st
			}
			le.PutUint32(t[kHeader+320*g+256+4*row:], plane)
		}
	}
}

func packQ6K(tile []byte, _, row int, src []byte, blocks int) {
	const size = kHeader + 8*384
	for b := range blocks {
		s, t := src[210*b:210*b+210], tile[size*b:size*b+size]
		copy(t[2*row:], s[208:210])
		for j := range 16 {
			t[kScales+16*j+row] = s[192+j]
		}
		for n := range 2 {
			ql, qh := s[64*n:64*n+64], s[128+32*n:160+32*n]
			d := t[kHeader+384*4*n+4*row:]
			lowLines(d, ql)
			lowLines(d[384:], ql[32:])
			highLines(d[768:], ql)
			highLines(d[1152:], ql[32:])
			for j := range 4 {
				for h := range 2 {
					var plane uint32
					for st := range 4 {
						plane |= le.Uint32(qh[16*h+4*st:]) >> (2 * j) & 0x03030303 << (2 * st)
					}
					le.PutUint32(d[384*j+256+64*h:], plane)
				}
			}
		}
	}
}
