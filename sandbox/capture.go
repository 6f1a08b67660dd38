package sandbox

// capture keeps the first bytes of an output stream. What is more is dropped: a guest whose output is too long still
// does its work to the end.
type capture struct {
	limit   int64
	buf     []byte
	dropped bool
	// live gets every kept piece as it comes; it must not keep it.
	live func([]byte)
}

func (c *capture) write(b []byte) {
	keep := b[:min(int64(len(b)), c.limit-int64(len(c.buf)))]
	if len(keep) < len(b) {
		c.dropped = true
	}
	if len(keep) == 0 {
		return
	}
	c.buf = append(c.buf, keep...)
	if c.live != nil {
		c.live(keep)
	}
}
