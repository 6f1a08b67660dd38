package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"

	"atoll/sandbox/grant"
	"atoll/sandbox/mount"
)

// wasiModule is the import module of WASI preview 1.
const wasiModule = "wasi_snapshot_preview1"

var le = binary.LittleEndian

// call is the state of one run of a guest: everything its WASI functions act on. It is used by the guest's goroutine
// only, except for ended.
type call struct {
	argv, env []string
	stdin     *bytes.Reader
	stdout    *capture
	stderr    *capture
	files     []*desc // by descriptor
	open      int     // descriptors in use
	limits    grant.Limits
	clock     clock
	random    random
	mounts    []*mount.FS

	ctx context.Context
	// ended is set when the call must end: cancelled, or out of time.
	ended atomic.Bool
	// exit is what the guest gave to proc_exit.
	exit   uint32
	exited bool
	// hitOpen says that the limit of open files stopped the guest.
	hitOpen bool
}

// desc is one open descriptor.
type desc struct {
	// Exactly one of stream, file and dir is set. dir is the FS that paths below the descriptor are resolved in.
	stream *stream
	file   sys.File
	dir    *mount.FS
	// handle is the open directory of dir; nil for a mount.
	handle *mount.Dir
	// preopen is the guest path of a mount.
	preopen string
	flags   uint16
	base    uint64
	inherit uint64
	// list is what fd_readdir walks through; its positions are the cookies.
	list []sys.Dirent
}

// stream is standard input or one of the outputs.
type stream struct {
	in  *bytes.Reader
	out *capture
}

type callKey struct{}

// checkpoint ends the guest when its time is over. Every WASI function passes here, so that a guest that only calls
// the host ends as well.
func (c *call) checkpoint() {
	if c.ended.Load() {
		panic(wasys.NewExitError(wasys.ExitCodeDeadlineExceeded))
	}
}

// hostFn is one WASI function. mem is the guest's memory; its bytes are valid until the function returns.
type hostFn func(c *call, mem api.Memory, p []uint64) errno

// wasiFunctions lists every function with its parameters: i is a 32-bit, I a 64-bit integer.
var wasiFunctions = []struct {
	name, params string
	fn           hostFn
}{
	{"args_get", "ii", argsGet},
	{"args_sizes_get", "ii", argsSizesGet},
	{"environ_get", "ii", environGet},
	{"environ_sizes_get", "ii", environSizesGet},
	{"clock_res_get", "ii", clockResGet},
	{"clock_time_get", "iIi", clockTimeGet},
	{"fd_advise", "iIIi", fdAdvise},
	{"fd_allocate", "iII", fdAllocate},
	{"fd_close", "i", fdClose},
	{"fd_datasync", "i", fdDatasync},
	{"fd_fdstat_get", "ii", fdFdstatGet},
	{"fd_fdstat_set_flags", "ii", fdFdstatSetFlags},
	{"fd_fdstat_set_rights", "iII", fdFdstatSetRights},
	{"fd_filestat_get", "ii", fdFilestatGet},
	{"fd_filestat_set_size", "iI", fdFilestatSetSize},
	{"fd_filestat_set_times", "iIIi", fdFilestatSetTimes},
	{"fd_pread", "iiiIi", fdPread},
	{"fd_prestat_get", "ii", fdPrestatGet},
	{"fd_prestat_dir_name", "iii", fdPrestatDirName},
	{"fd_pwrite", "iiiIi", fdPwrite},
	{"fd_read", "iiii", fdRead},
	{"fd_readdir", "iiiIi", fdReaddir},
	{"fd_renumber", "ii", fdRenumber},
	{"fd_seek", "iIii", fdSeek},
	{"fd_sync", "i", fdSyncFn},
	{"fd_tell", "ii", fdTell},
	{"fd_write", "iiii", fdWrite},
	{"path_create_directory", "iii", pathCreateDirectory},
	{"path_filestat_get", "iiiii", pathFilestatGet},
	{"path_filestat_set_times", "iiiiIIi", pathFilestatSetTimes},
	{"path_link", "iiiiiii", pathLink},
	{"path_open", "iiiiiIIii", pathOpen},
	{"path_readlink", "iiiiii", pathReadlink},
	{"path_remove_directory", "iii", pathRemoveDirectory},
	{"path_rename", "iiiiii", pathRename},
	{"path_symlink", "iiiii", pathSymlink},
	{"path_unlink_file", "iii", pathUnlinkFile},
	{"poll_oneoff", "iiii", pollOneoff},
	{"proc_raise", "i", func(*call, api.Memory, []uint64) errno { return eNosys }},
	{"sched_yield", "", schedYield},
	{"random_get", "ii", randomGet},
	{"sock_accept", "iii", noSocket},
	{"sock_recv", "iiiiii", noSocket},
	{"sock_send", "iiiii", noSocket},
	{"sock_shutdown", "ii", noSocket},
}

// instantiateWASI links WASI preview 1 into a runtime. Each function finds the state of its call in the context that
// the guest was started with, so one host module serves all guests.
func instantiateWASI(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(wasiModule)
	for _, f := range wasiFunctions {
		params := make([]api.ValueType, len(f.params))
		for i, c := range f.params {
			params[i] = api.ValueTypeI32
			if c == 'I' {
				params[i] = api.ValueTypeI64
			}
		}
		fn := f.fn
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			c := callOf(ctx)
			c.checkpoint()
			mem := m.Memory()
			if mem == nil {
				stack[0] = uint64(eFault)
				return
			}
			e := fn(c, mem, stack)
			c.checkpoint()
			stack[0] = uint64(e)
		}), params, []api.ValueType{api.ValueTypeI32}).Export(f.name)
	}
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		c := callOf(ctx)
		c.exit, c.exited = uint32(stack[0]), true
		// The engine unwinds the guest; the code is read from the call, whole, and not from this value.
		panic(wasys.NewExitError(c.exit))
	}), []api.ValueType{api.ValueTypeI32}, nil).Export("proc_exit")
	_, err := b.Instantiate(ctx)
	return err
}

func callOf(ctx context.Context) *call {
	c, is := ctx.Value(callKey{}).(*call)
	if !is {
		panic("BUG: a guest runs without the state of its call")
	}
	return c
}

// wasiNames is the set of functions that may be imported.
var wasiNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"proc_exit": true}
	for _, f := range wasiFunctions {
		names[f.name] = true
	}
	return names
})

func u32(v uint64) uint32 { return uint32(v) }

func putU32(mem api.Memory, at uint64, v uint32) errno {
	if !mem.WriteUint32Le(u32(at), v) {
		return eFault
	}
	return ok
}

func putU64(mem api.Memory, at uint64, v uint64) errno {
	if !mem.WriteUint64Le(u32(at), v) {
		return eFault
	}
	return ok
}

// Arguments and environment.

func argsGet(c *call, mem api.Memory, p []uint64) errno         { return putStrings(mem, c.argv, p) }
func argsSizesGet(c *call, mem api.Memory, p []uint64) errno    { return putSizes(mem, c.argv, p) }
func environGet(c *call, mem api.Memory, p []uint64) errno      { return putStrings(mem, c.env, p) }
func environSizesGet(c *call, mem api.Memory, p []uint64) errno { return putSizes(mem, c.env, p) }

func putStrings(mem api.Memory, list []string, p []uint64) errno {
	at, text := uint64(u32(p[0])), uint64(u32(p[1])) // the upper half of a 32-bit parameter is undefined
	for _, s := range list {
		if e := putU32(mem, at, u32(text)); e != ok {
			return e
		}
		if !mem.WriteString(u32(text), s) || !mem.WriteByte(u32(text+uint64(len(s))), 0) {
			return eFault
		}
		at += 4
		text += uint64(len(s)) + 1
		if at > 1<<32 || text > 1<<32 {
			return eFault
		}
	}
	return ok
}

func putSizes(mem api.Memory, list []string, p []uint64) errno {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	if e := putU32(mem, p[0], uint32(len(list))); e != ok {
		return e
	}
	return putU32(mem, p[1], uint32(n))
}

// noSocket: there is no network. A descriptor that is open is no socket.
func noSocket(c *call, _ api.Memory, p []uint64) errno {
	if c.lookup(p[0]) == nil {
		return eBadf
	}
	return eNotsock
}

// sleep waits for a time, or until the call ends.
func (c *call) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
}
