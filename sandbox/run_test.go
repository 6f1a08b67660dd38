package sandbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/sandboxtest"
)

// call runs the guest with a grant and returns both results.
func call(t testing.TB, g grant.Grant, args ...string) (*sandbox.Result, error) {
	t.Helper()
	return guest(t).Run(t.Context(), sandbox.Call{Argv: append([]string{"guest"}, args...), Grant: g})
}

func TestStreams(t *testing.T) {
	var live strings.Builder
	res, err := guest(t).Run(t.Context(), sandbox.Call{
		Argv: []string{"guest", "echo"}, Stdin: []byte("in and out"), OnStdout: func(b []byte) { live.Write(b) },
	})
	if err != nil || string(res.Stdout) != "in and out" || live.String() != "in and out" || res.ExitCode != 0 {
		t.Fatalf("%q %q %v", res.Stdout, live.String(), err)
	}
}

// TestNothingGranted: the zero grant shows no file, no variable, a fixed clock and fixed random numbers.
func TestNothingGranted(t *testing.T) {
	for _, args := range [][]string{{"cat", "/etc/passwd"}, {"cat", "etc/passwd"}, {"find", "/"}, {"write", "/tmp/x", "x"}} {
		res, err := call(t, grant.Grant{}, args...)
		if err != nil || res.ExitCode == 0 {
			t.Errorf("%q: exit %d, %q, %v", args, res.ExitCode, res.Stdout, err)
		}
	}
	t.Setenv("SECRET", "x")
	res, err := call(t, grant.Grant{Env: []string{"A=b"}}, "args")
	if err != nil || string(res.Stdout) != `["guest" "args"] ["A=b"]`+"\n" {
		t.Errorf("environment: %q %v", res.Stdout, err)
	}
	res, err = call(t, grant.Grant{}, "time")
	if err != nil || string(res.Stdout) != "2000-01-01T00:00:00Z\n" {
		t.Errorf("clock: %q %v", res.Stdout, err)
	}
	res, err = call(t, grant.Grant{Clock: true}, "time")
	if err != nil || !strings.HasPrefix(string(res.Stdout), time.Now().UTC().Format("2006-01-")) {
		t.Errorf("granted clock: %q %v", res.Stdout, err)
	}
}

func TestExitCodes(t *testing.T) {
	for arg, want := range map[string]int{"0": 0, "1": 1, "42": 42, "255": 255, "256": 256, "65536": 65536} {
		res, err := call(t, grant.Grant{}, "exit", arg)
		if err != nil || res.ExitCode != want {
			t.Errorf("exit %s: %d %v", arg, res.ExitCode, err)
		}
	}
	res, err := call(t, grant.Grant{}, "panic")
	if err != nil || res.ExitCode != 2 || !strings.Contains(string(res.Stderr), "boom") {
		t.Errorf("panic: %d %q %v", res.ExitCode, res.Stderr, err)
	}
}

// TestWall: whatever the guest does, the call ends soon after its time, and the next call works.
func TestWall(t *testing.T) {
	for _, args := range [][]string{{"spin"}, {"sleep", "1h"}} {
		started := time.Now()
		res, err := call(t, grant.Grant{Limits: grant.Limits{Wall: 200 * time.Millisecond}}, args...)
		var limit *sandbox.LimitError
		if !errors.As(err, &limit) || limit.Which != "wall" || res == nil || res.Limit != "wall" || res.ExitCode != -1 {
			t.Errorf("%q: %+v %v", args, res, err)
		}
		if d := time.Since(started); d > 30*time.Second {
			t.Errorf("%q: took %v", args, d)
		}
		if res, err := call(t, grant.Grant{}, "exit", "0"); err != nil || res.ExitCode != 0 {
			t.Errorf("next call after %q: %v", args, err)
		}
	}
}

func TestCancel(t *testing.T) {
	for _, args := range [][]string{{"spin"}, {"sleep", "1h"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user changed their mind")
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		res, err := guest(t).Run(ctx, sandbox.Call{Argv: append([]string{"guest"}, args...), Grant: grant.Grant{Limits: grant.Limits{Wall: time.Hour}}})
		if !errors.Is(err, why) || res == nil || res.Limit != "" {
			t.Errorf("%q: %+v %v", args, res, err)
		}
	}
}

// TestLimits: each limit stops what it limits, and the result names it.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "x")
	g := func(l grant.Limits) grant.Grant {
		return grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadWrite}}, Env: []string{"PWD=" + dir}, Limits: l}
	}
	res, err := call(t, g(grant.Limits{OutputBytes: 5000}), "flood")
	if err != nil || len(res.Stdout) != 5000 || !res.Truncated || res.ExitCode != 0 {
		t.Errorf("output: %d bytes, truncated %v, exit %d, %v", len(res.Stdout), res.Truncated, res.ExitCode, err)
	}
	for _, c := range []struct {
		limits grant.Limits
		args   []string
		want   string
	}{
		{grant.Limits{MemoryPages: 1024}, []string{"grow"}, "memory_pages"},
		{grant.Limits{OpenFiles: 20}, []string{"open", "f", "100"}, "open_files"},
		{grant.Limits{WrittenBytes: 1000}, []string{"fill", "big", "5000"}, "written_bytes"},
		{grant.Limits{Files: 5}, []string{"many", ".", "20"}, "files"},
	} {
		res, err := call(t, g(c.limits), c.args...)
		if err != nil || res.ExitCode == 0 || res.Limit != c.want {
			t.Errorf("%s: exit %d, limit %q, %v", c.want, res.ExitCode, res.Limit, err)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, "big")); err != nil || st.Size() != 1000 {
		t.Errorf("written bytes: %v %v", st, err)
	}
	var limit *sandbox.LimitError
	if _, err := call(t, grant.Grant{Limits: grant.Limits{MemoryPages: 1}}, "exit", "0"); !errors.As(err, &limit) || limit.Which != "memory_pages" {
		t.Errorf("memory to start with: %v", err)
	}
}

func TestStackOverflow(t *testing.T) {
	res, err := call(t, grant.Grant{Limits: grant.Limits{MemoryPages: 1024}}, "deep")
	if err == nil && res.ExitCode == 0 {
		t.Fatalf("no failure: %q", res.Stdout)
	}
}

// spin45 is case B023: 45 functions, each calls the next one twice, without a single loop.
const spin45 = "AGFzbQEAAAABBAFgAAADLi0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFAwEAAQcTAgZfc3RhcnQAAAZtZW1vcnkCAAq4Ai0GABABEAELBgAQAhACCwYAEAMQAwsGABAEEAQLBgAQBRAFCwYAEAYQBgsGABAHEAcLBgAQCBAICwYAEAkQCQsGABAKEAoLBgAQCxALCwYAEAwQDAsGABANEA0LBgAQDhAOCwYAEA8QDwsGABAQEBALBgAQERARCwYAEBIQEgsGABATEBMLBgAQFBAUCwYAEBUQFQsGABAWEBYLBgAQFxAXCwYAEBgQGAsGABAZEBkLBgAQGhAaCwYAEBsQGwsGABAcEBwLBgAQHRAdCwYAEB4QHgsGABAfEB8LBgAQIBAgCwYAECEQIQsGABAiECILBgAQIxAjCwYAECQQJAsGABAlECULBgAQJhAmCwYAECcQJwsGABAoECgLBgAQKRApCwYAECoQKgsGABArECsLBgAQLBAsCwIACw=="

// TestCallsWithoutLoops is case B023: a deadline that only holds in loops is no deadline.
func TestCallsWithoutLoops(t *testing.T) {
	wasm, err := base64.StdEncoding.DecodeString(spin45)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shared.rt.Load(t.Context(), wasm, sandboxtest.Manifest("spin"), sandbox.ThirdParty(true))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Run(t.Context(), sandbox.Call{Grant: grant.Grant{Limits: grant.Limits{Wall: 300 * time.Millisecond}}})
	var limit *sandbox.LimitError
	if !errors.As(err, &limit) || limit.Which != "wall" {
		t.Fatalf("%v", err)
	}
}

func TestTrust(t *testing.T) {
	wasm, _ := base64.StdEncoding.DecodeString(spin45)
	_, err := shared.rt.Load(t.Context(), wasm, sandboxtest.Manifest("spin"), sandbox.ThirdParty(false))
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "--one-wall") {
		t.Fatalf("third party without its second wall: %v", err)
	}
}

// TestChanges: what the host is told about changes, whatever the guest tells.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"edit", "del", "move", "d/in", "same", "cut"} {
		write(t, filepath.Join(dir, f), f)
	}
	big := strings.Repeat("x", 2<<20)
	write(t, filepath.Join(dir, "large"), big)
	script := [][]string{
		{"write", "edit", "edited"}, {"rm", "del"}, {"mv", "move", "moved"}, {"mv", "d", "e"}, {"write", "new", "n"},
		{"write", "same", "same"}, {"write", "tmp", "t"}, {"truncate", "cut"}, {"append", "large", "y"}, {"symlink", "edit", "link"},
	}
	want := map[string]string{}
	for _, args := range script {
		for _, c := range run(t, dir, grant.ReadWrite, args...).Changes {
			rel, _ := filepath.Rel(dir, c.Path)
			want[args[0]+" "+rel] = string(c.Before.Data[:min(8, len(c.Before.Data))]) + "|" + string(c.After.Data[:min(8, len(c.After.Data))])
			if rel == "large" && (!c.Before.Cut || !c.After.Cut || c.Before.Size != int64(len(big))) {
				t.Errorf("large: %+v", c.Before)
			}
		}
	}
	for k, v := range map[string]string{
		"write edit": "edit|edited", "rm del": "del|", "mv move": "move|", "mv moved": "|move", "mv d/in": "d/in|", "mv e/in": "|d/in",
		"mv d": "|", "mv e": "|", "write new": "|n", "truncate cut": "cut|", "append large": "|", "write tmp": "|t", "symlink link": "|edit",
	} {
		if got, is := want[k]; !is || got != v {
			t.Errorf("%s: %q, want %q", k, got, v)
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Errorf("more changes: %q", want)
	}
}

// TestSymlinkedWorkspace: a workspace that is itself reached through a link works, and changes name the real place.
func TestSymlinkedWorkspace(t *testing.T) {
	real := t.TempDir()
	write(t, filepath.Join(real, "f"), "x")
	link := filepath.Join(t.TempDir(), "ws")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	res := run(t, link, grant.ReadWrite, "write", link+"/f", "y")
	if res.ExitCode != 0 || read(t, filepath.Join(real, "f")) != "y" {
		t.Fatalf("%d %s", res.ExitCode, res.Stderr)
	}
	if len(res.Changes) != 1 || res.Changes[0].Path != filepath.Join(real, "f") || res.Changes[0].Guest != link+"/f" {
		t.Fatalf("%+v", res.Changes)
	}
}

// TestPrivate: the cache of compiled code is executed by the host, so that no mount may show it.
func TestPrivate(t *testing.T) {
	home := t.TempDir()
	cache := filepath.Join(home, ".cache/atoll/wasm")
	settings := filepath.Join(home, ".config/atoll")
	rt, err := sandbox.New(t.Context(), sandbox.Options{CacheDir: cache, Private: []string{settings}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	write(t, filepath.Join(cache, "code"), "machine code")
	m, err := rt.Load(t.Context(), sandboxtest.GoGuest(t, "testdata/guest"), sandboxtest.Manifest("guest"), sandbox.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".cache/atoll/wasm", filepath.Join(home, "alias")); err != nil {
		t.Fatal(err)
	}
	g := grant.Grant{Mounts: []grant.Mount{{Host: home, Kind: grant.ReadWrite}}, Env: []string{"PWD=" + home}}
	for _, args := range [][]string{
		{"cat", ".cache/atoll/wasm/code"}, {"cat", "alias/code"}, {"write", ".cache/atoll/wasm/code", "evil"}, {"write", "alias/new", "evil"},
		{"mv", ".cache", "c2"}, {"mv", ".cache/atoll", "a2"}, {"mv", ".cache/atoll/wasm", "w2"}, {"find", ".cache/atoll/wasm"},
		{"mkdir", ".config/atoll"}, {"mkdir", ".CONFIG/atoll"}, {"write", ".config", "x"}, {"symlink", "elsewhere", ".config"},
		{"rm", ".cache/atoll"},
	} {
		res, err := m.Run(t.Context(), sandbox.Call{Argv: append([]string{"guest"}, args...), Grant: g})
		if err != nil || res.ExitCode == 0 {
			t.Errorf("%q: done: %q %v", args, res.Stdout, err)
		}
	}
	if got := read(t, filepath.Join(cache, "code")); got != "machine code" {
		t.Errorf("cache holds %q", got)
	}
	if _, err := os.Lstat(settings); err == nil {
		t.Error("settings were made")
	}
	res, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"guest", "find", "."}, Grant: g})
	if err != nil || strings.Contains(string(res.Stdout), "wasm") {
		t.Errorf("listing: %q %v", res.Stdout, err)
	}
	g.Mounts[0].Host = filepath.Join(cache)
	if _, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"guest", "find", "."}, Grant: g}); err == nil {
		t.Error("the cache itself was mounted")
	}
}

// TestCacheUnusable: without a usable cache directory tools run all the same, and the reason is told.
func TestCacheUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, open} {
		rt, err := sandbox.New(t.Context(), sandbox.Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if rt.CacheError() == nil {
			t.Errorf("%s: no reason", dir)
		}
		wasm, _ := base64.StdEncoding.DecodeString(spin45)
		if _, err := rt.Load(t.Context(), wasm, sandboxtest.Manifest("x"), sandbox.Builtin()); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		rt.Close(t.Context())
	}
}

func TestParallel(t *testing.T) {
	m := guest(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "x")
	done := make(chan error, 16)
	for range cap(done) {
		go func() {
			res, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"guest", "cat", "f"},
				Grant: grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadOnly}}, Env: []string{"PWD=" + dir}}})
			if err == nil && string(res.Stdout) != "x" {
				err = errors.New(string(res.Stderr))
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	m := guest(b)
	dir := b.TempDir()
	write(b, filepath.Join(dir, "f"), "x")
	in := sandbox.Call{Argv: []string{"guest", "cat", "f"}, Grant: grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadOnly}}, Env: []string{"PWD=" + dir}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Run(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
