package sandbox

import (
	crand "crypto/rand"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// clock is what a guest takes for the time, in nanoseconds. Where the grant has no clock, it starts at the same moment
// in every run, has a resolution of a millisecond, and moves on when the guest sleeps and a little whenever it asks.
type clock struct {
	real    bool
	started time.Time
	fake    int64 // since epoch
}

// epoch is where the clock of a call without a clock starts: 2000-01-01 00:00:00 UTC.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

const (
	fakeResolution = int64(time.Millisecond)
	// fakeStep is how far the clock moves on when it is read, so that a guest that waits by reading it gets on.
	fakeStep = int64(time.Microsecond)
)

func (k *clock) now(id uint32) (int64, errno) {
	switch {
	case id > clockMonotonic:
		return 0, eInval
	case k.real && id == clockRealtime:
		return time.Now().UnixNano(), ok
	case k.real:
		return int64(time.Since(k.started)) + 1, ok
	}
	k.fake += fakeStep
	t := k.fake - k.fake%fakeResolution
	if id == clockRealtime {
		t += epoch
	} else {
		t += fakeResolution
	}
	return t, ok
}

func (k *clock) slept(d time.Duration) { k.fake += int64(d) }

func clockResGet(c *call, mem api.Memory, p []uint64) errno {
	if u32(p[0]) > clockMonotonic {
		return eInval
	}
	res := uint64(fakeResolution)
	if c.clock.real {
		res = 1
	}
	return putU64(mem, p[1], res)
}

func clockTimeGet(c *call, mem api.Memory, p []uint64) errno {
	t, e := c.clock.now(u32(p[0]))
	if e != ok {
		return e
	}
	return putU64(mem, p[2], uint64(t))
}

// random gives random bytes: unpredictable ones, or the same in every run.
type random struct{ src io.Reader }

func newRandom(real bool) random {
	if real {
		return random{crand.Reader}
	}
	return random{rand.NewChaCha8([32]byte([]byte("atoll: the same in every run ...")))}
}

func randomGet(c *call, mem api.Memory, p []uint64) errno {
	buf, in := mem.Read(u32(p[0]), u32(p[1]))
	if !in {
		return eFault
	}
	for len(buf) > 0 {
		c.checkpoint()
		n := min(len(buf), 1<<20)
		if _, err := io.ReadFull(c.random.src, buf[:n]); err != nil {
			return eIO
		}
		buf = buf[n:]
	}
	return ok
}

func schedYield(*call, api.Memory, []uint64) errno {
	runtime.Gosched()
	return ok
}

// maxSubscriptions bounds one poll.
const maxSubscriptions = 4096

// pollOneoff waits for the first of some events. Files and streams never make a guest wait, so they are ready at
// once; only clocks are waited for, and only as long as the call may run.
func pollOneoff(c *call, mem api.Memory, p []uint64) errno {
	n := u32(p[2])
	if n == 0 || n > maxSubscriptions {
		return eInval
	}
	in, got := mem.Read(u32(p[0]), n*subscriptionSize)
	if !got {
		return eFault
	}
	out, got := mem.Read(u32(p[1]), n*eventSize)
	if !got {
		return eFault
	}
	in = append([]byte(nil), in...) // the guest may let the two overlap
	type event struct {
		user uint64
		err  errno
		kind byte
		size uint64
	}
	var ready []event
	var clocks []struct {
		event
		wait time.Duration
	}
	for i := uint32(0); i < n; i++ {
		s := in[i*subscriptionSize:][:subscriptionSize]
		ev := event{user: le.Uint64(s), kind: s[8]}
		switch ev.kind {
		case subClock:
			wait, e := c.waitFor(le.Uint32(s[16:]), le.Uint64(s[24:]), le.Uint16(s[40:]))
			if ev.err = e; e != ok {
				ready = append(ready, ev)
				continue
			}
			clocks = append(clocks, struct {
				event
				wait time.Duration
			}{ev, wait})
		case subRead, subWrite:
			ev.size, ev.err = c.pollFile(uint64(le.Uint32(s[16:])), ev.kind)
			ready = append(ready, ev)
		default:
			return eInval
		}
	}
	if len(ready) == 0 {
		wait := time.Duration(math.MaxInt64)
		for _, k := range clocks {
			wait = min(wait, k.wait)
		}
		c.sleep(wait)
		c.checkpoint()
		c.clock.slept(wait)
		for _, k := range clocks {
			if k.wait <= wait {
				ready = append(ready, k.event)
			}
		}
	} else {
		for _, k := range clocks {
			if k.wait == 0 {
				ready = append(ready, k.event)
			}
		}
	}
	for i, ev := range ready {
		b := out[i*eventSize:][:eventSize]
		clear(b)
		le.PutUint64(b, ev.user)
		le.PutUint16(b[8:], uint16(ev.err))
		b[10] = ev.kind
		le.PutUint64(b[16:], ev.size)
	}
	return putU32(mem, p[3], uint32(len(ready)))
}

// waitFor returns how long a clock subscription has to wait.
func (c *call) waitFor(id uint32, at uint64, flags uint16) (time.Duration, errno) {
	if flags > subAbstime {
		return 0, eInval
	}
	now, e := c.clock.now(id)
	if e != ok {
		return 0, e
	}
	if flags == subAbstime {
		if at <= uint64(now) {
			return 0, ok
		}
		at -= uint64(now)
	}
	return time.Duration(min(at, math.MaxInt64)), ok
}

func (c *call) pollFile(fd uint64, kind byte) (size uint64, e errno) {
	d := c.lookup(fd)
	switch {
	case d == nil:
		return 0, eBadf
	case d.stream != nil:
		if kind == subRead {
			if d.stream.in == nil {
				return 0, eBadf
			}
			return uint64(d.stream.in.Len()), ok
		}
		if d.stream.out == nil {
			return 0, eBadf
		}
		return 1 << 16, ok
	case d.file == nil:
		return 0, eBadf
	}
	if st, e := d.file.Stat(); e == 0 && kind == subRead {
		size = uint64(st.Size)
	}
	return size, ok
}
