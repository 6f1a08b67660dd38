package sandbox

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sys"

	"atoll/sandbox/mount"
)

// at reads a path from the guest's memory and finds the directory that it starts from. need are the rights that the
// descriptor must still have.
func (c *call) at(mem api.Memory, fd, path, size uint64, need uint64) (*desc, string, errno) {
	d := c.lookup(fd)
	switch {
	case d == nil:
		return nil, "", eBadf
	case d.dir == nil:
		if d.file != nil || d.stream != nil {
			return nil, "", eNotdir
		}
		return nil, "", eBadf
	case d.base&need != need:
		return nil, "", eNotcapable
	}
	b, in := mem.Read(u32(path), u32(size))
	if !in {
		return nil, "", eFault
	}
	if len(b) > 1<<16 {
		return nil, "", eNametoolong
	}
	return d, string(b), ok
}

func pathCreateDirectory(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[1], p[2], rightPathCreateDir)
	if e != ok {
		return e
	}
	return errnoOf(d.dir.Mkdir(name, 0o777))
}

func pathFilestatGet(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[2], p[3], rightPathFilestatGet)
	if e != ok {
		return e
	}
	b, in := mem.Read(u32(p[4]), filestatSize)
	if !in {
		return eFault
	}
	look := d.dir.Lstat
	if u32(p[1])&lookupFollow != 0 {
		look = d.dir.Stat
	}
	st, me := look(name)
	if me != 0 {
		return errnoOf(me)
	}
	putFilestat(b, &st)
	return ok
}

func pathFilestatSetTimes(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[2], p[3], rightPathFilestatTimes)
	if e != ok {
		return e
	}
	atim, mtim, e := times(p[4], p[5], u32(p[6]))
	if e != ok {
		return e
	}
	return errnoOf(d.dir.SetTimes(name, atim, mtim, u32(p[1])&lookupFollow != 0))
}

func pathLink(c *call, mem api.Memory, p []uint64) errno {
	from, old, e := c.at(mem, p[0], p[2], p[3], rightPathLinkSource)
	if e != ok {
		return e
	}
	to, name, e := c.at(mem, p[4], p[5], p[6], rightPathLinkTarget)
	if e != ok {
		return e
	}
	if u32(p[1])&lookupFollow != 0 {
		return eInval
	}
	return errnoOf(from.dir.LinkTo(old, to.dir, name))
}

func pathOpen(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[2], p[3], rightPathOpen)
	if e != ok {
		return e
	}
	lookup, oflags, fdflags := u32(p[1]), u32(p[4]), u32(p[7])
	if oflags > 15 || fdflags > fdflagsMask {
		return eInval
	}
	rights, inherit := p[5]&d.inherit, p[6]&d.inherit
	flag, e := openFlags(d, lookup, oflags, fdflags, rights)
	if e != ok {
		return e
	}
	if c.open >= c.limits.OpenFiles {
		c.hitOpen = true
		return eMfile
	}
	f, me := d.dir.OpenFile(name, flag, 0o666)
	if me != 0 {
		return errnoOf(me)
	}
	opened := &desc{flags: uint16(fdflags), base: rights & fileRights, file: f}
	if dir, is := f.(*mount.Dir); is {
		opened = &desc{dir: dir.Sub(), handle: dir, base: rights & dirRights, inherit: inherit}
	}
	fd, e := c.insert(opened)
	if e != ok {
		opened.close()
		return e
	}
	if e := putU32(mem, p[8], fd); e != ok {
		opened.close()
		c.files[fd] = nil
		c.open--
		return e
	}
	return ok
}

func openFlags(d *desc, lookup, oflags, fdflags uint32, rights uint64) (sys.Oflag, errno) {
	var flag sys.Oflag
	if lookup&lookupFollow == 0 {
		flag |= sys.O_NOFOLLOW
	}
	for _, f := range []struct {
		have bool
		flag sys.Oflag
		need uint64
	}{
		{oflags&oCreat != 0, sys.O_CREAT, rightPathCreateFile},
		{oflags&oDirectory != 0, sys.O_DIRECTORY, 0},
		{oflags&oExcl != 0, sys.O_EXCL, 0},
		{oflags&oTrunc != 0, sys.O_TRUNC, rightPathFilestatSize},
		{fdflags&fdAppend != 0, sys.O_APPEND, 0},
		{fdflags&fdDsync != 0, sys.O_DSYNC, 0},
		{fdflags&fdRsync != 0, sys.O_RSYNC, 0},
		{fdflags&fdSync != 0, sys.O_SYNC, 0},
	} {
		if !f.have {
			continue
		}
		if d.base&f.need != f.need {
			return 0, eNotcapable
		}
		flag |= f.flag
	}
	if oflags&oDirectory != 0 {
		if rights&rightFdWrite != 0 {
			return 0, eIsdir
		}
		return flag, ok
	}
	switch read, write := rights&(rightFdRead|rightFdReaddir) != 0, rights&writeRights != 0; {
	case read && write:
		flag |= sys.O_RDWR
	case write:
		flag |= sys.O_WRONLY
	default:
		flag |= sys.O_RDONLY
	}
	return flag, ok
}

func pathReadlink(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[1], p[2], rightPathReadlink)
	if e != ok {
		return e
	}
	buf, in := mem.Read(u32(p[3]), u32(p[4]))
	if !in {
		return eFault
	}
	text, me := d.dir.Readlink(name)
	if me != 0 {
		return errnoOf(me)
	}
	return putU32(mem, p[5], uint32(copy(buf, text)))
}

func pathRemoveDirectory(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[1], p[2], rightPathRemoveDir)
	if e != ok {
		return e
	}
	return errnoOf(d.dir.Rmdir(name))
}

func pathRename(c *call, mem api.Memory, p []uint64) errno {
	from, old, e := c.at(mem, p[0], p[1], p[2], rightPathRenameSource)
	if e != ok {
		return e
	}
	to, name, e := c.at(mem, p[3], p[4], p[5], rightPathRenameTarget)
	if e != ok {
		return e
	}
	return errnoOf(from.dir.RenameTo(old, to.dir, name))
}

func pathSymlink(c *call, mem api.Memory, p []uint64) errno {
	text, in := mem.Read(u32(p[0]), u32(p[1]))
	if !in {
		return eFault
	}
	if len(text) > 1<<16 {
		return eNametoolong
	}
	d, name, e := c.at(mem, p[2], p[3], p[4], rightPathSymlink)
	if e != ok {
		return e
	}
	return errnoOf(d.dir.Symlink(string(text), name))
}

func pathUnlinkFile(c *call, mem api.Memory, p []uint64) errno {
	d, name, e := c.at(mem, p[0], p[1], p[2], rightPathUnlink)
	if e != ok {
		return e
	}
	return errnoOf(d.dir.Unlink(name))
}
