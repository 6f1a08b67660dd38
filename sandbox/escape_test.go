//go:build unix

package sandbox_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/sandboxtest"
)

// TestEscape runs the escape suite on both kinds of mount and looks at the damage from outside.
func TestEscape(t *testing.T) {
	m, err := shared.rt.Load(t.Context(), sandboxtest.GoGuest(t, "sandboxtest/testdata/attacker"), sandboxtest.Manifest("attacker"), sandbox.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, a := range sandboxtest.Attacks() {
		for _, kind := range []grant.Kind{grant.ReadWrite, grant.ReadOnly} {
			steps += len(a.Steps)
			t.Run(a.Name+"/"+kind.String(), func(t *testing.T) { attack(t, m, a, kind) })
		}
	}
	t.Logf("%d steps", steps)
}

func attack(t *testing.T, m *sandbox.Module, a sandboxtest.Attack, kind grant.Kind) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := sandboxtest.Layout(t, base)
	if a.Setup != nil {
		a.Setup(t, base)
	}
	outside := sandboxtest.Outside(t, base)
	linksOut := sandboxtest.LinksOut(t, ws)
	links := sandboxtest.Links(t, base)
	inside := sandboxtest.Outside(t, ws)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		if a.Host != nil {
			a.Host(base, stop)
		}
	}()
	steps := make([]string, len(a.Steps))
	for i, s := range a.Steps {
		steps[i] = strings.ReplaceAll(s, "BASE", base)
	}
	in := sandbox.Call{Argv: append([]string{"attacker"}, steps...)}
	in.Grant.Mounts = []grant.Mount{{Host: ws, Kind: kind}}
	in.Grant.Limits.Wall = 5 * time.Minute
	res, err := m.Run(t.Context(), in)
	close(stop)
	<-stopped
	if err != nil {
		var trap *sandbox.TrapError
		if errors.As(err, &trap) {
			t.Fatalf("%v\n%v\n%s", err, trap.Err, res.Stderr)
		}
		t.Fatal(err)
	}
	if res.ExitCode != 0 {
		t.Fatalf("exit %d: %s", res.ExitCode, res.Stderr)
	}
	out := string(res.Stdout)
	if strings.Contains(out, sandboxtest.Secret) || strings.Contains(out, "root:x:") {
		t.Errorf("the guest read what lies outside:\n%s", out)
	}
	if now := sandboxtest.Outside(t, base); now != outside {
		t.Errorf("the guest changed what lies outside:\n%s\nwas\n%s\n%s", now, outside, out)
	}
	for file, n := range sandboxtest.Links(t, base) {
		if n > links[file] {
			t.Errorf("the guest made a link to %s:\n%s", file, out)
		}
	}
	if kind == grant.ReadOnly {
		if now := sandboxtest.Outside(t, ws); now != inside && a.Host == nil {
			t.Errorf("the guest changed a read-only mount:\n%s\nwas\n%s\n%s", now, inside, out)
		}
		return
	}
	for text := range sandboxtest.LinksOut(t, ws) {
		if !linksOut[text] {
			t.Errorf("the guest made a link to %s:\n%s", text, out)
		}
	}
	for _, want := range a.Want {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
