package sandbox

import (
	"io"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"

	"atoll/sandbox/mount"
)

// seeker is a file whose position can be set.
type seeker interface {
	SeekTo(offset int64, whence int) (int64, mount.Errno)
}

func (c *call) lookup(fd uint64) *desc {
	n := u32(fd)
	if n >= uint32(len(c.files)) {
		return nil
	}
	return c.files[n]
}

// lookupFile returns a descriptor that is a regular file.
func (c *call) lookupFile(fd uint64) (*desc, errno) {
	d := c.lookup(fd)
	switch {
	case d == nil:
		return nil, eBadf
	case d.dir != nil:
		return nil, eIsdir
	case d.file == nil:
		return nil, eSpipe
	}
	return d, ok
}

// insert gives a descriptor the lowest free number.
func (c *call) insert(d *desc) (uint32, errno) {
	if c.open >= c.limits.OpenFiles {
		c.hitOpen = true
		return 0, eMfile
	}
	c.open++
	for i, f := range c.files {
		if f == nil {
			c.files[i] = d
			return uint32(i), ok
		}
	}
	c.files = append(c.files, d)
	return uint32(len(c.files) - 1), ok
}

func (d *desc) close() {
	switch {
	case d.file != nil:
		d.file.Close()
	case d.handle != nil:
		d.handle.Close()
	}
}

func (d *desc) stat() (wasys.Stat_t, mount.Errno) {
	switch {
	case d.file != nil:
		return d.file.Stat()
	case d.handle != nil:
		return d.handle.Stat()
	case d.dir != nil:
		return d.dir.Stat(".")
	}
	return wasys.Stat_t{}, 0
}

func fdClose(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	if d == nil {
		return eBadf
	}
	d.close()
	c.files[u32(p[0])] = nil
	c.open--
	return ok
}

// fdRenumber moves a descriptor over another one. The target must be open, as in other implementations: so the table
// never grows to a number that the guest makes up.
func fdRenumber(c *call, _ api.Memory, p []uint64) errno {
	from, to := c.lookup(p[0]), c.lookup(p[1])
	switch {
	case from == nil || to == nil:
		return eBadf
	case from == to:
		return ok
	}
	to.close()
	c.files[u32(p[1])] = from
	c.files[u32(p[0])] = nil
	c.open--
	return ok
}

func fdAdvise(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case u32(p[3]) > 5 || int64(p[1]) < 0 || int64(p[2]) < 0:
		return eInval
	case d.dir != nil:
		return eBadf
	case d.stream != nil:
		return eSpipe
	}
	return ok
}

func fdAllocate(c *call, _ api.Memory, p []uint64) errno {
	d, e := c.lookupFile(p[0])
	if e != ok {
		return badIfDir(e)
	}
	off, length := int64(p[1]), int64(p[2])
	if off < 0 || length <= 0 || off+length < 0 {
		return eInval
	}
	st, me := d.file.Stat()
	if me != 0 {
		return errnoOf(me)
	}
	if d.base&writeRights == 0 {
		return eBadf
	}
	if st.Size >= off+length {
		return ok
	}
	return errnoOf(d.file.Truncate(off + length))
}

// badIfDir turns EISDIR into EBADF, for operations that a directory's descriptor is not made for.
func badIfDir(e errno) errno {
	if e == eIsdir {
		return eBadf
	}
	return e
}

func fdDatasync(c *call, mem api.Memory, p []uint64) errno { return fdSyncFn(c, mem, p) }

func fdSyncFn(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case d.file != nil:
		return errnoOf(d.file.Sync())
	case d.handle != nil:
		return errnoOf(d.handle.Sync())
	case d.dir != nil:
		return ok
	}
	return eInval
}

func fdFdstatGet(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	if d == nil {
		return eBadf
	}
	b, in := mem.Read(u32(p[1]), fdstatSize)
	if !in {
		return eFault
	}
	clear(b)
	switch {
	case d.file != nil:
		b[0] = filetypeRegular
	case d.dir != nil:
		b[0] = filetypeDir
	default:
		// A pipe: not a terminal, and nothing that could be sought in.
		b[0] = filetypeUnknown
	}
	le.PutUint16(b[2:], d.flags)
	le.PutUint64(b[8:], d.base)
	le.PutUint64(b[16:], d.inherit)
	return ok
}

func fdFdstatSetFlags(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	flags := uint16(p[1])
	switch {
	case d == nil:
		return eBadf
	case d.dir != nil:
		return eBadf
	case flags&^fdflagsMask != 0:
		return eInval
	case (flags^d.flags)&(fdDsync|fdRsync|fdSync) != 0:
		return eNotsup // fixed when the file is opened
	}
	if d.file != nil && flags&fdAppend != d.flags&fdAppend {
		if e := d.file.SetAppend(flags&fdAppend != 0); e != 0 {
			return errnoOf(e)
		}
	}
	d.flags = flags
	return ok
}

// fdFdstatSetRights takes rights away. Giving more is refused.
func fdFdstatSetRights(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case p[1]&^d.base != 0 || p[2]&^d.inherit != 0:
		return eNotcapable
	}
	d.base, d.inherit = p[1], p[2]
	return ok
}

func fdFilestatGet(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	if d == nil {
		return eBadf
	}
	b, in := mem.Read(u32(p[1]), filestatSize)
	if !in {
		return eFault
	}
	st, me := d.stat()
	if me != 0 {
		return errnoOf(me)
	}
	putFilestat(b, &st)
	if d.stream != nil {
		b[16] = filetypeUnknown
	}
	return ok
}

func fdFilestatSetSize(c *call, _ api.Memory, p []uint64) errno {
	d, e := c.lookupFile(p[0])
	if e != ok {
		return badIfDir(e)
	}
	if d.base&rightFdFilestatSetSize == 0 {
		return eBadf
	}
	if int64(p[1]) < 0 {
		return eInval
	}
	return errnoOf(d.file.Truncate(int64(p[1])))
}

func fdFilestatSetTimes(c *call, _ api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	if d == nil {
		return eBadf
	}
	atim, mtim, e := times(p[1], p[2], u32(p[3]))
	if e != ok {
		return e
	}
	switch {
	case d.file != nil:
		return errnoOf(d.file.Utimens(atim, mtim))
	case d.handle != nil:
		return errnoOf(d.handle.Utimens(atim, mtim))
	case d.dir != nil:
		return errnoOf(d.dir.Utimens(".", atim, mtim))
	}
	return eInval
}

// times reads the two times of a call and which of them are meant.
func times(a, m uint64, flags uint32) (atim, mtim int64, e errno) {
	const both1, both2 = setAtim | setAtimNow, setMtim | setMtimNow
	if flags > 15 || flags&both1 == both1 || flags&both2 == both2 {
		return 0, 0, eInval
	}
	pick := func(v uint64, given, now uint32) int64 {
		switch {
		case flags&given != 0:
			return int64(min(v, 1<<63-1))
		case flags&now != 0:
			return time.Now().UnixNano()
		}
		return sys.UTIME_OMIT
	}
	return pick(a, setAtim, setAtimNow), pick(m, setMtim, setMtimNow), ok
}

func fdPrestatGet(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	if d == nil || d.preopen == "" {
		return eBadf
	}
	if e := putU32(mem, p[1], 0); e != ok { // tag: a directory
		return e
	}
	return putU32(mem, p[1]+4, uint32(len(d.preopen)))
}

func fdPrestatDirName(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil || d.preopen == "":
		return eBadf
	case u32(p[2]) < uint32(len(d.preopen)):
		return eNametoolong
	case !mem.WriteString(u32(p[1]), d.preopen):
		return eFault
	}
	return ok
}

// maxVectors is the most buffers of one transfer.
const maxVectors = 1024

// transfer runs step over the guest's buffers until one is not filled. A failure after the first bytes is reported by
// the next call.
func transfer(c *call, mem api.Memory, vecs, count, result uint64, step func([]byte) (int, errno)) errno {
	n := u32(count)
	if n > maxVectors {
		return eInval
	}
	list, in := mem.Read(u32(vecs), n*8)
	if !in {
		return eFault
	}
	total := uint32(0)
	for i := uint32(0); i < n; i++ {
		at, size := le.Uint32(list[i*8:]), le.Uint32(list[i*8+4:])
		buf, in := mem.Read(at, size)
		if !in {
			return eFault
		}
		for len(buf) > 0 {
			// In pieces, so that a large transfer ends with the call.
			c.checkpoint()
			piece := buf[:min(len(buf), 4<<20)]
			got, e := step(piece)
			total += uint32(got)
			if e != ok && total == 0 {
				return e
			}
			if e != ok || got < len(piece) {
				return putU32(mem, result, total)
			}
			buf = buf[got:]
		}
	}
	return putU32(mem, result, total)
}

func fdRead(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case d.dir != nil:
		return eBadf
	case d.base&rightFdRead == 0:
		return eBadf
	}
	return transfer(c, mem, p[1], p[2], p[3], func(b []byte) (int, errno) {
		if d.stream != nil {
			if d.stream.in == nil {
				return 0, eBadf
			}
			n, _ := d.stream.in.Read(b)
			return n, ok
		}
		n, e := d.file.Read(b)
		return n, errnoOf(e)
	})
}

func fdWrite(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case d.dir != nil:
		return eBadf
	case d.base&rightFdWrite == 0:
		return eBadf
	}
	return transfer(c, mem, p[1], p[2], p[3], func(b []byte) (int, errno) {
		if d.stream != nil {
			if d.stream.out == nil {
				return 0, eBadf
			}
			d.stream.out.write(b)
			return len(b), ok
		}
		n, e := d.file.Write(b)
		return n, errnoOf(e)
	})
}

func fdPread(c *call, mem api.Memory, p []uint64) errno {
	return transferAt(c, mem, p, sys.File.Pread)
}

func fdPwrite(c *call, mem api.Memory, p []uint64) errno {
	return transferAt(c, mem, p, sys.File.Pwrite)
}

// transferAt moves bytes with step from the offset p names on; the position of the file stays.
func transferAt(c *call, mem api.Memory, p []uint64, step func(sys.File, []byte, int64) (int, sys.Errno)) errno {
	d, e := c.lookupFile(p[0])
	if e != ok {
		return badIfDir(e)
	}
	off := int64(p[3])
	if off < 0 {
		return eInval
	}
	return transfer(c, mem, p[1], p[2], p[4], func(b []byte) (int, errno) {
		n, e := step(d.file, b, off)
		off += int64(n)
		return n, errnoOf(e)
	})
}

func fdSeek(c *call, mem api.Memory, p []uint64) errno {
	d, e := c.lookupFile(p[0])
	if e != ok {
		return badIfDir(e)
	}
	if d.base&rightFdSeek == 0 && !(d.base&rightFdTell != 0 && p[1] == 0 && u32(p[2]) == io.SeekCurrent) {
		return eBadf
	}
	s, can := d.file.(seeker)
	if !can {
		return eSpipe
	}
	if u32(p[2]) > io.SeekEnd {
		return eInval
	}
	at, me := s.SeekTo(int64(p[1]), int(u32(p[2])))
	if me != 0 {
		return errnoOf(me)
	}
	return putU64(mem, p[3], uint64(at))
}

func fdTell(c *call, mem api.Memory, p []uint64) errno {
	d, e := c.lookupFile(p[0])
	if e != ok {
		return badIfDir(e)
	}
	s, can := d.file.(seeker)
	if !can {
		return eSpipe
	}
	at, me := s.SeekTo(0, io.SeekCurrent)
	if me != 0 {
		return errnoOf(me)
	}
	return putU64(mem, p[1], uint64(at))
}

// fdReaddir writes entries from a position on. The list is taken when a guest starts at the beginning, so positions
// stay good while the directory changes.
func fdReaddir(c *call, mem api.Memory, p []uint64) errno {
	d := c.lookup(p[0])
	switch {
	case d == nil:
		return eBadf
	case d.dir == nil:
		return eNotdir
	case d.base&rightFdReaddir == 0:
		return eBadf
	}
	buf, in := mem.Read(u32(p[1]), u32(p[2]))
	if !in {
		return eFault
	}
	cookie := p[3]
	if cookie == 0 || d.list == nil {
		list, e := c.entries(d)
		if e != ok {
			return e
		}
		d.list = list
	}
	used := 0
	for i := cookie; i < uint64(len(d.list)) && used < len(buf); i++ {
		var head [direntSize]byte
		ent := &d.list[i]
		le.PutUint64(head[0:], i+1)
		le.PutUint64(head[8:], ent.Ino)
		le.PutUint32(head[16:], uint32(len(ent.Name)))
		head[20] = filetypeOf(ent.Type)
		used += copy(buf[used:], head[:])
		used += copy(buf[used:], ent.Name)
	}
	return putU32(mem, p[4], uint32(used))
}

func (c *call) entries(d *desc) ([]sys.Dirent, errno) {
	h := d.handle
	if h == nil {
		f, e := d.dir.OpenFile(".", sys.O_RDONLY|sys.O_DIRECTORY, 0)
		if e != 0 {
			return nil, errnoOf(e)
		}
		defer f.Close()
		h = f.(*mount.Dir)
	}
	st, e := h.Stat()
	if e != 0 {
		return nil, errnoOf(e)
	}
	h.Rewind()
	found, e := h.Readdir(-1)
	if e != 0 {
		return nil, errnoOf(e)
	}
	// The parent's number is not told: it may lie outside of the mount.
	list := make([]sys.Dirent, 0, len(found)+2)
	list = append(list, sys.Dirent{Name: ".", Ino: st.Ino, Type: st.Mode.Type()},
		sys.Dirent{Name: "..", Ino: st.Ino, Type: st.Mode.Type()})
	return append(list, found...), ok
}
