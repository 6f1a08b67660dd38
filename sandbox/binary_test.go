package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"atoll/sandbox/grant"
	"atoll/sandbox/toolabi"
)

// module encodes a module from its sections.
func module(sections ...[]byte) []byte {
	return bytes.Join(append([][]byte{[]byte("\x00asm\x01\x00\x00\x00")}, sections...), nil)
}

func section(id byte, content ...byte) []byte {
	return append(appendULEB([]byte{id}, uint64(len(content))), content...)
}

// command is a module whose _start has the given body, with further sections between.
func command(body []byte, more ...[]byte) []byte {
	sections := [][]byte{section(secType, 1, 0x60, 0, 0), section(secFunction, 1, 0)}
	sections = append(sections, more...)
	sections = append(sections, section(secExport, append([]byte{1, 6}, "_start\x00\x00"...)...))
	code := appendULEB([]byte{1}, uint64(len(body)))
	return module(append(sections, section(secCode, append(code, body...)...))...)
}

var huge = []byte{0xff, 0xff, 0xff, 0xff, 0x0f}

// TestHostileModules: a module that lies about itself ends with an error, within time and memory.
func TestHostileModules(t *testing.T) {
	lie := func(id byte) []byte { return module(section(id, huge...)) }
	body := func(b ...byte) []byte { return command(b) }
	many := func(n int, item ...byte) []byte {
		return append(appendULEB(nil, uint64(n)), bytes.Repeat(item, n)...)
	}
	for _, c := range []struct {
		name, want string
		wasm       []byte
	}{
		{"empty", "not a WebAssembly", nil},
		{"text", "not a WebAssembly", []byte("#!/bin/sh\necho hello\n")},
		{"component", "not a WebAssembly", []byte("\x00asm\x0d\x00\x01\x00")},
		{"header alone", "no function _start", module()},
		{"short section", "short data", append(module(), 1, 200)},
		{"endless size", "too l", append(module(), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"unknown section", "unknown", module(section(14))},
		{"twice", "out of order", module(section(1, 0), section(1, 0))},
		{"order", "out of order", module(section(3, 0), section(1, 0))},
		{"types lie", "does not fit", lie(secType)},
		{"imports lie", "does not fit", lie(secImport)},
		{"functions lie", "does not fit", lie(secFunction)},
		{"tables lie", "does not fit", lie(secTable)},
		{"memories lie", "does not fit", lie(secMemory)},
		{"globals lie", "does not fit", lie(secGlobal)},
		{"exports lie", "does not fit", lie(secExport)},
		{"elements lie", "does not fit", lie(secElement)},
		{"bodies lie", "does not fit", lie(secCode)},
		{"data lie", "does not fit", lie(secData)},
		{"data count lies", "announced", module(section(secDataCount, 7))},
		{"parameters lie", "does not fit", module(section(secType, append([]byte{1, 0x60}, huge...)...))},
		{"name lies", "short data", module(section(secExport, append(append([]byte{1}, huge...), 0, 0, 0)...))},
		{"import name lies", "short data", module(section(secImport, append(append([]byte{1}, huge...), 0, 0, 0, 0)...))},
		{"custom name lies", "short data", module(section(secCustom, huge...))},
		{"element items lie", "does not fit", module(section(secElement, append([]byte{1, 0, 0x41, 0, 0x0b}, huge...)...))},
		{"data bytes lie", "short data", module(section(secData, append([]byte{1, 1}, huge...)...))},
		{"endless constant", "", module(section(secGlobal, append([]byte{1, 0x7f, 0}, bytes.Repeat([]byte{0x41, 0}, 1000)...)...))},
		{"locals", "locals", body(append([]byte{1}, append(huge, 0x7f, 0x0b)...)...)},
		{"locals in pieces", "locals", body(append(many(600, 20, 0x7f), 0x0b)...)},
		{"body without end", "without an end", body(0)},
		{"more functions than bodies", "bodies", module(section(secType, 1, 0x60, 0, 0), section(secFunction, 2, 0, 0))},
		{"table", "tables of more", command([]byte{0, 0x0b}, section(secTable, append([]byte{1, 0x70, 0}, huge...)...))},
		{"many tables", "above 16", command([]byte{0, 0x0b}, section(secTable, many(17, 0x70, 0, 0)...))},
		{"memory", "pages", command([]byte{0, 0x0b}, section(secMemory, append([]byte{1, 0}, huge...)...))},
		{"two memories", "above 1", command([]byte{0, 0x0b}, section(secMemory, 2, 0, 0, 0, 0))},
		{"shared memory", "shared", command([]byte{0, 0x0b}, section(secMemory, 1, 3, 1, 1))},
		{"types beyond the cap", "above", module(section(secType, many(10001, 0x60, 0, 0)...))},
		{"unknown instruction", "", body(0, 0xff, 0x0b)},
		{"branch table lies", "", body(append(append([]byte{0, 0x41, 0, 0x0e}, huge...), 0x0b)...)},
		{"type error", "", body(0, 0x6a, 0x0b)},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := newRuntime(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := rt.Load(t.Context(), c.wasm, toolManifest, ThirdParty(true))
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrModule) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
				t.Errorf("%d bytes were allocated for a module of %d", grown, len(c.wasm))
			}
		})
	}
}

var toolManifest = toolabi.Manifest{Name: "t", Description: "test", Parameters: []byte(`{"type":"object"}`)}

func newRuntime(t testing.TB) *Runtime {
	t.Helper()
	rt, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(context.Background()) })
	return rt
}

// TestHostileGuests: modules that are well-formed and mean harm.
func TestHostileGuests(t *testing.T) {
	rt := newRuntime(t)
	memory := section(secMemory, 1, 0, 1)
	spin := []byte{0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b} // loop br 0 end
	for _, c := range []struct {
		name string
		wasm []byte
		want func(*Result, error) bool
	}{
		{"unreachable", command([]byte{0, 0x00, 0x0b}, memory), trapped("unreachable")},
		{"call itself", command([]byte{0, 0x10, 0, 0x0b}, memory), trapped("stack overflow")},
		{"divide by zero", command([]byte{0, 0x41, 1, 0x41, 0, 0x6d, 0x1a, 0x0b}, memory), trapped("divide by zero")},
		{"read beyond memory", command([]byte{0, 0x41, 0x7f, 0x28, 2, 0, 0x1a, 0x0b}, memory), trapped("out of bounds")},
		{"loop", command(spin, memory), wallHit},
		{"loop at instantiation", startModule(spin), wallHit},
		// memory.grow by one page until it fails, then unreachable.
		{"grow in steps", command([]byte{0, 0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00, 0x0b}, memory), func(r *Result, err error) bool {
			return trapped("unreachable")(r, err) && r.Limit == "memory_pages"
		}},
		// table.grow by 1 << 20 until it fails.
		{"grow a table", command([]byte{0, 0x03, 0x40, 0xd2, 0, 0x41, 0x80, 0x80, 0xc0, 0x00, 0xfc, 0x0f, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x0b},
			section(secTable, 1, 0x70, 0, 0), memory), func(r *Result, err error) bool { return err == nil && r.ExitCode == 0 }},
		{"no memory", command([]byte{0, 0x0b}), func(r *Result, err error) bool { return err == nil && r.ExitCode == 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := rt.Load(t.Context(), c.wasm, toolManifest, ThirdParty(true))
			if err != nil {
				t.Fatal(err)
			}
			wall := time.Minute
			if strings.HasPrefix(c.name, "loop") {
				wall = 200 * time.Millisecond
			}
			res, err := m.Run(t.Context(), Call{Grant: grant.Grant{Limits: grant.Limits{Wall: wall, MemoryPages: 256}}})
			if !c.want(res, err) {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

// startModule runs body at instantiation.
func startModule(body []byte) []byte {
	code := appendULEB([]byte{1}, uint64(len(body)))
	return module(section(secType, 1, 0x60, 0, 0), section(secFunction, 1, 0), section(secMemory, 1, 0, 1),
		section(secExport, append([]byte{1, 6}, "_start\x00\x00"...)...), section(secStart, 0), section(secCode, append(code, body...)...))
}

func trapped(reason string) func(*Result, error) bool {
	return func(r *Result, err error) bool {
		var trap *TrapError
		return errors.As(err, &trap) && strings.Contains(trap.Reason, reason) && !strings.Contains(trap.Error(), "\n") && r.ExitCode == -1
	}
}

func wallHit(r *Result, err error) bool {
	var limit *LimitError
	return errors.As(err, &limit) && limit.Which == "wall" && r.Limit == "wall"
}

// TestImports: what is not granted does not link.
// TestCompileEnds: compiling a module that takes for ever ends with the context.
func TestCompileEnds(t *testing.T) {
	const depth = 40_000 // blocks within each other: seconds of compiling
	body := append([]byte{0}, bytes.Repeat([]byte{0x02, 0x40}, depth)...)
	wasm := command(append(body, bytes.Repeat([]byte{0x0b}, depth+1)...))
	rt, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(t.Context())
	why := errors.New("the user changed their mind")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, why)
	defer cancel()
	start := time.Now()
	if _, err := rt.Load(ctx, wasm, toolManifest, ThirdParty(true)); !errors.Is(err, why) || time.Since(start) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestImports(t *testing.T) {
	rt := newRuntime(t)
	imp := func(module, name string, kind ...byte) []byte {
		b := append(appendULEB([]byte{1}, uint64(len(module))), module...)
		b = append(append(appendULEB(b, uint64(len(name))), name...), kind...)
		return section(secImport, b...)
	}
	for _, c := range []struct {
		name string
		sec  []byte
	}{
		{"host function", imp("atoll_v1", "exec", 0, 0)},
		{"unknown module", imp("env", "system", 0, 0)},
		{"unknown WASI function", imp("wasi_snapshot_preview1", "path_exec", 0, 0)},
		{"memory", imp("env", "memory", 2, 0, 1)},
		{"memory of WASI", imp("wasi_snapshot_preview1", "memory", 2, 0, 1)},
		{"old WASI", imp("wasi_unstable", "fd_write", 0, 0)},
	} {
		for _, trust := range []Trust{Builtin(), ThirdParty(true)} {
			wasm := module(section(secType, 1, 0x60, 0, 0), c.sec)
			_, err := rt.Load(t.Context(), wasm, toolManifest, trust)
			var ng *NotGrantedError
			if !errors.Is(err, ErrNotGranted) || !errors.As(err, &ng) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestRewriteKeepsMeaning: a module with every kind of section still is one after the rewrite, and the rewrite of the
// rewrite has the same shape.
func TestRewriteKeepsMeaning(t *testing.T) {
	files, err := filepath.Glob("testdata/fuzz/FuzzCheckBinary/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	wasm := command([]byte{0, 0x0b}, section(secTable, 1, 0x70, 0, 3), section(secMemory, 1, 0, 1), section(secGlobal, 1, 0x7f, 0, 0x41, 0, 0x0b))
	info, out, err := checkBinary(wasm, thirdPartyCaps, true)
	if err != nil {
		t.Fatal(err)
	}
	if !info.command || info.memoryMin != 1 || !bytes.Contains(out, emptyLoop) {
		t.Errorf("%+v %x", info, out)
	}
	if again, _, err := checkBinary(out, thirdPartyCaps, true); err != nil || again.memoryMin != 1 {
		t.Errorf("%v", err)
	}
}

// TestJoinedData: joining data segments leaves memory as it was meant, also where segments overlap or go backwards.
func TestJoinedData(t *testing.T) {
	rt := newRuntime(t)
	seg := func(at int32, text string) []byte {
		b := append(appendSLEB([]byte{0, 0x41}, at), 0x0b)
		return append(append(b, byte(len(text))), text...)
	}
	for _, c := range []struct {
		name  string
		segs  [][]byte
		want  string
		count byte
	}{
		{"neighbours", [][]byte{seg(0, "ab"), seg(2, "cd")}, "abcd", 1},
		{"gap", [][]byte{seg(0, "ab"), seg(4, "cd")}, "ab\x00\x00cd", 1},
		{"overlap", [][]byte{seg(0, "abcd"), seg(2, "XY")}, "abXY", 2},
		{"backwards", [][]byte{seg(4, "ef"), seg(0, "abcd")}, "abcdef", 2},
		{"gap over an earlier one", [][]byte{seg(2, "cd"), seg(0, "a"), seg(5, "f")}, "a\x00cd\x00f", 3},
		{"empty", [][]byte{seg(0, ""), seg(0, "a")}, "a", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The body traps unless memory holds what is wanted.
			body := []byte{0}
			for i := range c.want {
				body = append(body, 0x41)
				body = appendSLEB(body, int32(i))
				body = append(body, 0x2d, 0, 0, 0x41) // i32.load8_u
				body = appendSLEB(body, int32(c.want[i]))
				body = append(body, 0x47, 0x04, 0x40, 0x00, 0x0b) // i32.ne if unreachable end
			}
			wasm := append(command(append(body, 0x0b), section(secMemory, 1, 0, 1)),
				section(secData, append([]byte{byte(len(c.segs))}, bytes.Join(c.segs, nil)...)...)...)
			_, out, err := checkBinary(wasm, thirdPartyCaps, false)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(out, []byte{c.count, 0, 0x41}) {
				t.Errorf("no section of %d segments: %x", c.count, out)
			}
			m, err := rt.Load(t.Context(), wasm, toolManifest, Builtin())
			if err != nil {
				t.Fatal(err)
			}
			if res, err := m.Run(t.Context(), Call{}); err != nil || res.ExitCode != 0 {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzCheckBinary: what the bounded check lets through, the engine compiles or refuses, without a panic that reaches us
// and without much memory; and the rewritten module is well-formed.
func FuzzCheckBinary(f *testing.F) {
	f.Add(command([]byte{0, 0x0b}, section(secTable, 1, 0x70, 0, 0), section(secMemory, 1, 0, 1)))
	spin, err := base64.StdEncoding.DecodeString("AGFzbQEAAAABBAFgAAADAwIAAAUDAQABBwoBBl9zdGFydAAACg0CBgAQARABCwMAAQs=")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(spin)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		info, out, err := checkBinary(wasm, thirdPartyCaps, true)
		if err != nil {
			return
		}
		if _, _, err := checkBinary(out, thirdPartyCaps, false); err != nil && len(out) < thirdPartyCaps.moduleBytes {
			t.Fatalf("the rewritten module: %v", err)
		}
		if _, _, err := checkBinary(wasm, thirdPartyCaps, false); err != nil {
			t.Fatalf("without the rewrite: %v", err)
		}
		if len(info.imports) > len(wasm) {
			t.Fatal("imports out of nothing")
		}
	})
}
