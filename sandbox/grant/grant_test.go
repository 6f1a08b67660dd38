package grant

import (
	"reflect"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		g    Grant
		ok   bool
	}{
		{"zero", Grant{}, true},
		{"mount", Grant{Mounts: []Mount{{Host: "/a", Kind: ReadOnly}}}, true},
		{"no kind", Grant{Mounts: []Mount{{Host: "/a"}}}, false},
		{"relative", Grant{Mounts: []Mount{{Host: "a", Kind: ReadOnly}}}, false},
		{"unclean", Grant{Mounts: []Mount{{Host: "/a/../b", Kind: ReadOnly}}}, false},
		{"trailing slash", Grant{Mounts: []Mount{{Host: "/a/", Kind: ReadOnly}}}, false},
		{"relative guest", Grant{Mounts: []Mount{{Host: "/a", Guest: "x", Kind: ReadOnly}}}, false},
		{"taken", Grant{Mounts: []Mount{{Host: "/a", Kind: ReadOnly}, {Host: "/b", Guest: "/a", Kind: ReadOnly}}}, false},
		{"env", Grant{Env: []string{"A=", "B=x=y"}}, true},
		{"env without value", Grant{Env: []string{"A"}}, false},
		{"env without name", Grant{Env: []string{"=x"}}, false},
		{"negative", Grant{Limits: Limits{Files: -1}}, false},
		{"memory", Grant{Limits: Limits{MemoryPages: 65537}}, false},
	} {
		if err := c.g.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestContainsAndNarrow(t *testing.T) {
	rw := Grant{Mounts: []Mount{{Host: "/w", Kind: ReadWrite}, {Host: "/lib", Kind: ReadOnly}}, Env: []string{"A=1", "B=2"}, Clock: true,
		Limits: Limits{Wall: 20 * time.Second}}
	for _, c := range []struct {
		name     string
		inner    Grant
		contains bool
		narrowed []Mount
	}{
		{"nothing", Grant{}, true, nil},
		{"same", rw, true, rw.Mounts},
		{"weaker kind", Grant{Mounts: []Mount{{Host: "/w", Kind: ReadOnly}}}, true, []Mount{{Host: "/w", Kind: ReadOnly}}},
		{"stronger kind", Grant{Mounts: []Mount{{Host: "/lib", Kind: ReadWrite}}}, false, []Mount{{Host: "/lib", Kind: ReadOnly}}},
		{"below", Grant{Mounts: []Mount{{Host: "/w/x", Kind: ReadWrite}}}, true, []Mount{{Host: "/w/x", Kind: ReadWrite}}},
		{"above", Grant{Mounts: []Mount{{Host: "/", Kind: ReadOnly}}}, false, []Mount{{Host: "/w", Kind: ReadOnly}, {Host: "/lib", Kind: ReadOnly}}},
		{"neighbour", Grant{Mounts: []Mount{{Host: "/w2", Kind: ReadOnly}}}, false, nil},
		{"other guest path", Grant{Mounts: []Mount{{Host: "/w", Guest: "/x", Kind: ReadOnly}}}, false, nil},
		{"other variable", Grant{Env: []string{"C=3"}}, false, nil},
		{"random", Grant{Random: true}, false, nil},
		{"longer", Grant{Limits: Limits{Wall: time.Minute}}, false, nil},
		{"shorter", Grant{Limits: Limits{Wall: time.Second}}, true, nil},
	} {
		if got := rw.Contains(c.inner); got != c.contains {
			t.Errorf("%s: contains %v", c.name, got)
		}
		n := rw.Narrow(c.inner)
		if !reflect.DeepEqual(n.Mounts, c.narrowed) {
			t.Errorf("%s: narrowed to %v", c.name, n.Mounts)
		}
		if !rw.Contains(n) || !c.inner.Contains(n) {
			t.Errorf("%s: %v is not contained in both", c.name, n)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, s := range []string{"x", "mount", "mount ro", "mount xx /a", "mount ro a", `mount ro "/a`, "env A", "clock x", "limit wall", "limit wall x",
		"limit files -1", "limit unknown 3", "limit memory_pages 99999999999", "mount ro /a\nmount rw /a"} {
		if g, err := Parse(s); err == nil {
			t.Errorf("%q: %+v", s, g)
		}
	}
}

// FuzzParse: what is read prints to a form that reads back to the same grant.
func FuzzParse(f *testing.F) {
	f.Add(Grant{Mounts: []Mount{{Host: "/a b", Guest: "/\xff\n", Kind: ReadWrite}}, Env: []string{"A=\"x\ny"}, Clock: true, Random: true}.String())
	f.Add("mount ro /a at /b\nlimit wall 3s files 2\n")
	f.Fuzz(func(t *testing.T, s string) {
		g, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(g.String())
		if err != nil {
			t.Fatalf("%q: %v", g.String(), err)
		}
		if again.String() != g.String() || !reflect.DeepEqual(again.Mounts, g.Mounts) || !reflect.DeepEqual(again.Env, g.Env) {
			t.Fatalf("%q\n%q", g.String(), again.String())
		}
	})
}
