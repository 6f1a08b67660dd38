// Command attacker calls WASI directly, without the path handling of a library in between. Each argument is one step,
// its fields separated by "|" and written as in a Go string without the quotation marks. A step prints one line: the
// WASI error number, then what was read. Descriptor 3 is the mount.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"structs"
	"unsafe"
)

//go:wasmimport wasi_snapshot_preview1 path_open
//go:noescape
func pathOpen(fd, lookup int32, path *byte, n uint32, oflags int32, rights, inherit int64, fdflags int32, out *int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
//go:noescape
func fdRead(fd int32, vec *iovec, n uint32, out *uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_write
//go:noescape
func fdWrite(fd int32, vec *iovec, n uint32, out *uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
//go:noescape
func fdReaddir(fd int32, buf *byte, n uint32, cookie int64, out *uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
//go:noescape
func fdClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
//go:noescape
func fdRenumber(from, to int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
//go:noescape
func fdSetSize(fd int32, size int64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
//go:noescape
func fdSetTimes(fd int32, a, m int64, flags int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_allocate
//go:noescape
func fdAllocate(fd int32, off, n int64) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_get
//go:noescape
func pathStat(fd, lookup int32, path *byte, n uint32, out *byte) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
//go:noescape
func pathTimes(fd, lookup int32, path *byte, n uint32, a, m int64, flags int32) uint32

//go:wasmimport wasi_snapshot_preview1 path_readlink
//go:noescape
func pathReadlink(fd int32, path *byte, n uint32, buf *byte, size uint32, out *uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_create_directory
//go:noescape
func pathMkdir(fd int32, path *byte, n uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_remove_directory
//go:noescape
func pathRmdir(fd int32, path *byte, n uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_unlink_file
//go:noescape
func pathUnlink(fd int32, path *byte, n uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_rename
//go:noescape
func pathRename(fd int32, path *byte, n uint32, to int32, path2 *byte, n2 uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_link
//go:noescape
func pathLink(fd, lookup int32, path *byte, n uint32, to int32, path2 *byte, n2 uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_symlink
//go:noescape
func pathSymlink(text *byte, n uint32, fd int32, path *byte, n2 uint32) uint32

type iovec struct {
	_    structs.HostLayout
	at   uint32
	size uint32
}

const (
	follow      = 1
	creat       = 1
	directory   = 2
	excl        = 4
	trunc       = 8
	rightRead   = 1 << 1
	rightWrite  = 1 << 6
	rightSize   = 1 << 22
	rightTimes  = 1 << 23
	rightAlloc  = 1 << 8
	rightList   = 1 << 14
	allRights   = 1<<29 - 1
	setBothTime = 1 | 4
)

var named = map[string]int32{"": 3, "3": 3}

func main() {
	for _, step := range os.Args[1:] {
		f := strings.Split(step, "|")
		for i := range f {
			s, err := strconv.Unquote(`"` + f[i] + `"`)
			if err != nil {
				fmt.Println("bad step:", step)
				os.Exit(3)
			}
			f[i] = s
		}
		for len(f) < 4 {
			f = append(f, "")
		}
		repeat := 1
		if n, err := strconv.Atoi(f[0]); err == nil {
			repeat, f = n, append(f[1:], "")
		}
		for range repeat {
			code, out := do(f)
			if repeat == 1 {
				fmt.Printf("%s %d %s\n", f[0], code, out)
			} else if out != "" {
				fmt.Println(out)
			}
		}
	}
}

func ptr(s string) (*byte, uint32) {
	if s == "" {
		return new(byte), 0
	}
	return unsafe.StringData(s), uint32(len(s))
}

// do runs one step: f[0] is what, f[1] a path below descriptor 3; "fd:path" starts at a descriptor named by an
// earlier "dir" step.
func do(f []string) (uint32, string) {
	fd, name := int32(3), f[1]
	if at, rest, ok := strings.Cut(name, ":"); ok {
		if n, known := named[at]; known {
			fd, name = n, rest
		}
	}
	p, n := ptr(name)
	switch f[0] {
	case "read", "readnofollow":
		lookup := int32(follow)
		if f[0] == "readnofollow" {
			lookup = 0
		}
		var got int32
		if e := pathOpen(fd, lookup, p, n, 0, rightRead|rightList, 0, 0, &got); e != 0 {
			return e, ""
		}
		defer fdClose(got)
		return readAll(got)
	case "write", "append", "trunc", "excl", "create", "alloc", "size", "fdtimes":
		oflags, fdflags := int32(0), int32(0)
		switch f[0] {
		case "append":
			fdflags = 1
		case "trunc":
			oflags = trunc
		case "excl":
			oflags = creat | excl
		case "create":
			oflags = creat
		}
		var got int32
		rights := int64(rightWrite | rightSize | rightTimes | rightAlloc)
		if f[0] == "trunc" || f[0] == "size" || f[0] == "fdtimes" {
			rights = rightRead | rightSize | rightTimes
		}
		if e := pathOpen(fd, follow, p, n, oflags, rights, 0, fdflags, &got); e != 0 {
			return e, ""
		}
		defer fdClose(got)
		switch f[0] {
		case "alloc":
			return fdAllocate(got, 0, 1<<20), ""
		case "size":
			return fdSetSize(got, 0), ""
		case "fdtimes":
			return fdSetTimes(got, 1, 1, setBothTime), ""
		case "trunc":
			return 0, ""
		}
		text := []byte("EVIL")
		vec := iovec{at: uint32(uintptr(unsafe.Pointer(&text[0]))), size: uint32(len(text))}
		var done uint32
		e := fdWrite(got, &vec, 1, &done)
		runtime.KeepAlive(text)
		return e, ""
	case "dir":
		var got int32
		if e := pathOpen(fd, follow, p, n, directory, allRights&^(rightWrite), allRights, 0, &got); e != 0 {
			return e, ""
		}
		named[f[2]] = got
		return 0, ""
	case "list":
		var got int32
		if e := pathOpen(fd, follow, p, n, directory, rightRead|rightList, 0, 0, &got); e != 0 {
			return e, ""
		}
		defer fdClose(got)
		buf := make([]byte, 1<<16)
		var used uint32
		e := fdReaddir(got, &buf[0], uint32(len(buf)), 0, &used)
		return e, strconv.Quote(string(buf[:used]))
	case "stat", "lstat":
		lookup := int32(follow)
		if f[0] == "lstat" {
			lookup = 0
		}
		var st [64]byte
		return pathStat(fd, lookup, p, n, &st[0]), ""
	case "times", "ltimes":
		lookup := int32(follow)
		if f[0] == "ltimes" {
			lookup = 0
		}
		return pathTimes(fd, lookup, p, n, 1, 1, setBothTime), ""
	case "readlink":
		buf := make([]byte, 8192)
		var used uint32
		e := pathReadlink(fd, p, n, &buf[0], uint32(len(buf)), &used)
		return e, string(buf[:used])
	case "mkdir":
		return pathMkdir(fd, p, n), ""
	case "rmdir":
		return pathRmdir(fd, p, n), ""
	case "unlink":
		return pathUnlink(fd, p, n), ""
	case "rename", "link", "linkfollow", "symlink":
		fd2, name2 := int32(3), f[2]
		if at, rest, ok := strings.Cut(name2, ":"); ok {
			if n, known := named[at]; known {
				fd2, name2 = n, rest
			}
		}
		q, m := ptr(name2)
		switch f[0] {
		case "rename":
			return pathRename(fd, p, n, fd2, q, m), ""
		case "link":
			return pathLink(fd, 0, p, n, fd2, q, m), ""
		case "linkfollow":
			return pathLink(fd, follow, p, n, fd2, q, m), ""
		}
		p, n = ptr(f[1])
		return pathSymlink(p, n, fd2, q, m), ""
	case "renumber":
		a, _ := strconv.Atoi(f[1])
		b, _ := strconv.Atoi(f[2])
		return fdRenumber(int32(a), int32(b)), ""
	case "readfd":
		a, _ := strconv.Atoi(f[1])
		return readAll(int32(a))
	}
	fmt.Println("unknown step:", f[0])
	os.Exit(3)
	return 0, ""
}

func readAll(fd int32) (uint32, string) {
	buf := make([]byte, 4096)
	vec := iovec{at: uint32(uintptr(unsafe.Pointer(&buf[0]))), size: uint32(len(buf))}
	var got uint32
	e := fdRead(fd, &vec, 1, &got)
	return e, string(buf[:got])
}
