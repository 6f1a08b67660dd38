package edit

import (
	"bytes"
	"strings"
	"testing"
)

// applyCase is one call of Apply: on want the whole content, or on err a part of the message.
type applyCase struct {
	name, content, old, repl string
	all                      bool
	want, err, how           string
}

func check(t *testing.T, cases []applyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := []byte(c.content)
			r, err := Apply(before, c.old, c.repl, c.all)
			if string(before) != c.content {
				t.Error("the input was changed")
			}
			if c.err != "" {
				if err == nil {
					t.Fatalf("no error, content %q", r.Content)
				}
				if !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %q, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Content) != c.want {
				t.Errorf("got  %q\nwant %q", r.Content, c.want)
			}
			if r.How != c.how {
				t.Errorf("found by ignoring %q, want %q", r.How, c.how)
			}
		})
	}
}

func TestExact(t *testing.T) {
	check(t, []applyCase{
		{name: "one word", content: "a b c\n", old: "b", repl: "B", want: "a B c\n"},
		{name: "several lines", content: "a\nb\nc\nd\n", old: "b\nc\n", repl: "x\n", want: "a\nx\nd\n"},
		{name: "delete a line", content: "a\nb\nc\n", old: "b\n", repl: "", want: "a\nc\n"},
		{name: "delete the last line", content: "a\nb", old: "\nb", repl: "", want: "a"},
		{name: "no final newline stays", content: "a\nb", old: "b", repl: "c", want: "a\nc"},
		{name: "newline is literal", content: "a\nb\n", old: "a\n", repl: "x", want: "xb\n"},
		{name: "all", content: "x y x\nx", old: "x", repl: "zz", all: true, want: "zz y zz\nzz"},
		{name: "all does not overlap", content: "aaaaa", old: "aa", repl: "b", all: true, want: "bba"},
		{name: "all where new holds old", content: "a a", old: "a", repl: "aa", all: true, want: "aa aa"},
		{name: "multi-byte", content: "größe = 1\n", old: "größe", repl: "länge", want: "länge = 1\n"},
		{name: "white space only, exact", content: "a\t\tb", old: "\t\t", repl: " ", want: "a b"},
		{name: "B039 one", content: "price = OLD\n", old: "OLD", repl: "$$ $& $1 $0 ${x} \\1 $` $'", want: "price = $$ $& $1 $0 ${x} \\1 $` $'\n"},
		{name: "B039 all", content: "OLD OLD\n", old: "OLD", repl: "$1", all: true, want: "$1 $1\n"},
		{name: "escapes in new are literal", content: "a\n", old: "a", repl: `printf("\n")`, want: "printf(\"\\n\")\n"},
	})
}

func TestRefused(t *testing.T) {
	check(t, []applyCase{
		{name: "identical", content: "a", old: "a", repl: "a", err: "are the same"},
		{name: "empty old", content: "a", old: "", repl: "b", err: "old is empty; to replace the whole file use write"},
		{name: "not found", content: "alpha\nbeta\n", old: "gamma delta", repl: "x", err: "was not found"},
		{name: "ambiguous", content: "x\ny\nx\n", old: "x", repl: "z", err: "matches 2 places (lines 1, 3); add surrounding lines to old, or set all to true"},
		{name: "ambiguous on one line", content: "x x\n", old: "x", repl: "z", err: "matches 2 places (lines 1)"},
		{name: "ambiguous by overlap", content: "aaa", old: "aa", repl: "b", err: "matches 2 places"},
		{name: "many", content: strings.Repeat("x\n", 20), old: "x", repl: "z", err: "matches 20 places (lines 1, 2, 3, 4, 5, 6, 7, 8, ...)"},
		{name: "already made", content: "return a - b\n", old: "return a + b", repl: "return a - b", err: "new already is in the file, at line 1"},
		{name: "nearest", content: "package x\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n", old: "func Add(a int, b int) int {\n\treturn a + b * 2 }", repl: "x", err: "Nearest text, lines 3 to 4:\n3|func Add(a, b int) int {\n4|\treturn a - b"},
		// The defects that the chain of replacers this one learns from has.
		{name: "defect a: two lines and a newline are no block", content: "function configure() {\n  important()\n}\n", old: "function configure() {\n}\n", repl: "x", err: "was not found"},
		{name: "defect b: blank old, all", content: "abc\n", old: "   ", repl: "x", all: true, err: "only white space"},
		{name: "defect b: blank old", content: "abc\n", old: "   ", repl: "x", err: "only white space"},
		{name: "defect b: newlines", content: "abc\n", old: "\n\n\n", repl: "x", err: "only white space"},
		{name: "defect c: ambiguous stays ambiguous", content: "a foo b foo\n  foo\nend", old: "foo", repl: "bar", err: "matches 3 places (lines 1, 2)"},
		{name: "ambiguous after trimming", content: "  if x {\n\tif x {\n", old: "    if x {", repl: "if y {", err: "matches 2 places (lines 1, 2)"},
		{name: "loose block", content: "func a() {\n\tone()\n\ttwo()\n\tthree()\n}\n", old: "func a() {\n\tcompletely := different\n}\n", repl: "x", err: "was not found"},
		{name: "unrelated middle", content: "start\nalpha beta\ngamma delta\nend\n", old: "start\n12345 67890\nzzzzz yyyyy\nend\n", repl: "x", err: "was not found"},
		{name: "word is not cut", content: "maximum\n", old: " xi ", repl: "yo", err: "was not found"},
	})
}

func TestTolerant(t *testing.T) {
	const ends, space = "white space at line ends and indentation", "white space"
	check(t, []applyCase{
		{name: "trailing blanks in the file", content: "a  \nb\t\nc\n", old: "a\nb\n", repl: "a\nB\n", want: "a  \nB\nc\n", how: ends},
		{name: "no newline at the end", content: "x\na \nb", old: "a\nb\n", repl: "A\nB\n", want: "x\nA\nB", how: ends},
		{name: "indentation is that of the file", content: "class A:\n    def f(self):\n        return 1\n", old: "def f(self):\n    return 1\n", repl: "def f(self):\n    x = 2\n    if x:\n        return x\n    return 1\n",
			want: "class A:\n    def f(self):\n        x = 2\n        if x:\n            return x\n        return 1\n", how: ends},
		{name: "old indented too much", content: "def f():\n    return 1\n", old: "    def f():\n        return 1\n", repl: "    def f():\n        y = 1\n        return y\n", want: "def f():\n    y = 1\n    return y\n", how: ends},
		{name: "spaces for tabs", content: "func f() {\n\tif x {\n\t\ta()\n\t}\n}\n", old: "    if x {\n        a()\n    }\n", repl: "    if x {\n        for {\n            b()\n        }\n    }\n",
			want: "func f() {\n\tif x {\n\t\tfor {\n\t\t\tb()\n\t\t}\n\t}\n}\n", how: ends},
		{name: "tabs for spaces", content: "if x:\n  a()\n  if y:\n    b()\n", old: "\ta()\n\tif y:\n\t\tb()\n", repl: "\ta()\n\tif y:\n\t\tc()\n", want: "if x:\n  a()\n  if y:\n    c()\n", how: ends},
		{name: "multi-byte indentation (defect d)", content: "\u3000a\n b\n", old: "a\nb\n", repl: "a\nc\n", want: "\u3000a\n c\n", how: ends},
		{name: "delete lines", content: "a\n  b\n  c\nd\n", old: "b\nc", repl: "", want: "a\nd\n", how: ends},
		{name: "delete the last line", content: "a\n  b", old: "    b", repl: "", want: "a\n", how: ends},
		{name: "inner white space", content: "x\nfoo( a,  b )\n", old: "foo( a, b )\n", repl: "bar( a, b )\n", want: "x\nbar( a, b )\n", how: space},
		{name: "typographic quotes", content: "print(“hi”) – ok\n", old: "print(\"hi\") - ok", repl: "print(1)", want: "print(1)\n", how: space},
		{name: "within a line", content: "\tcall(foo(a,   b), c)\n", old: "foo(a, b)", repl: "bar(a)", want: "\tcall(bar(a), c)\n", how: space},
		{name: "blank lines around", content: "a\nfoo := 1\nb\n", old: "\n\nfoo := 1\n\n", repl: "\n\nfoo := 2\n\n", want: "a\nfoo := 2\nb\n", how: "white space around it"},
		{name: "escaped newline", content: "a()\nb()\nc()\n", old: `a()\nb()`, repl: `a()\nx()`, want: "a()\nx()\nc()\n", how: "escapes"},
		{name: "escaped quotes", content: "s := \"x\"\n", old: `s := \"x\"`, repl: `s := \"y\"`, want: "s := \"y\"\n", how: "escapes"},
		{name: "escaped and indented", content: "f:\n    a()\n    b()\n", old: `a()\nb()`, repl: `a()\nx()`, want: "f:\n    a()\n    x()\n", how: "escapes"},
		{name: "all, tolerant", content: "  foo  bar\n\tfoo   bar\n", old: "foo bar", repl: "baz", all: true, want: "  baz\n\tbaz\n", how: space},
	})
}

func TestAnchored(t *testing.T) {
	const how = "differences between its first and last line"
	content := "func f() {\n\tx := compute(a, b)\n\ty := compute(c, d)\n\tlog(x, y)\n\treturn x + y\n}\n"
	check(t, []applyCase{
		{name: "context misremembered, change exact", content: content,
			old:  "func f() {\n\tx := compute(a, c)\n\ty := compute(c, e)\n\tlog(x, y)\n\treturn x + y\n}\n",
			repl: "func f() {\n\tx := compute(a, c)\n\ty := compute(c, e)\n\tlog(x, y)\n\treturn x - y\n}\n",
			want: strings.Replace(content, "x + y", "x - y", 1), how: how},
		{name: "a surplus line of the file stays", content: content,
			old:  "func f() {\n\tx := compute(a, b)\n\tlog(x, y)\n\treturn x + y\n}\n",
			repl: "func f() {\n\tx := compute(a, b)\n\tlog(x, y)\n\treturn x - y\n}\n",
			want: strings.Replace(content, "x + y", "x - y", 1), how: how},
		{name: "a surplus line within the change is not lost", content: content,
			old:  "func f() {\n\tx := compute(a, b)\n\tlog(x, y)\n\treturn x + y\n}\n",
			repl: "func f() {\n\tx := other(a, b)\n\treturn x + y\n}\n",
			err:  "only loosely"},
		{name: "what is changed must be known", content: content,
			old:  "func f() {\n\tx := compute(a, b)\n\ty := compute(c, d)\n\tpanic(1)\n\treturn x + y\n}\n",
			repl: "func f() {\n\tx := compute(a, b)\n\ty := compute(c, d)\n\treturn x + y\n}\n",
			err:  "was not found"},
		{name: "half of the lines equal", content: "begin\nsame one\nABCDEFGH\nend\n",
			old: "begin\nsame one\nzyxwvuts\nend\n", repl: "begin\nsame two\nzyxwvuts\nend\n",
			want: "begin\nsame two\nABCDEFGH\nend\n", how: how},
		{name: "two blocks", content: content + content,
			old: "func f() {\n\tx := compute(a, c)\n\ty := compute(c, e)\n\tlog(x, y)\n\treturn x + y\n}\n", repl: "gone\n", err: "matches 2 places (lines 1, 7)"},
	})
}

func TestLineEnds(t *testing.T) {
	const ends = "white space at line ends and indentation"
	check(t, []applyCase{
		{name: "B037 mixed", content: "a\r\nb\nc", old: "c", repl: "C", want: "a\r\nb\nC"},
		{name: "CRLF, several lines", content: "a\r\nb\r\nc\r\n", old: "a\nb\n", repl: "a\nx\ny\n", want: "a\r\nx\r\ny\r\nc\r\n"},
		{name: "CRLF, new lines into one", content: "a\r\nb\r\n", old: "b", repl: "b\nc", want: "a\r\nb\r\nc\r\n"},
		{name: "CRLF, last line without end", content: "a\r\nb", old: "b", repl: "b\nc", want: "a\r\nb\r\nc"},
		{name: "mixed, kept lines keep theirs", content: "a\r\nb\nc\r\nd\n", old: "a\nb\nc\nd\n", repl: "a\nb\nX\nd\n", want: "a\r\nb\nX\r\nd\n"},
		{name: "mixed, replaced lines take the end of what they replace", content: "a\r\nb\nc\r\n", old: "a\nb\nc\n", repl: "A\nB\nC\n", want: "A\r\nB\nC\r\n"},
		{name: "old has CRLF, file has not", content: "a\nb\nc\n", old: "a\r\nb\r\n", repl: "a\r\nx\r\n", want: "a\nx\nc\n"},
		{name: "both have CRLF", content: "a\r\nb\r\n", old: "a\r\nb", repl: "a\r\nx", want: "a\r\nx\r\n"},
		{name: "line ends themselves are changed", content: "a\nb\n", old: "a\n", repl: "a\r\n", want: "a\r\nb\n"},
		{name: "CRLF to LF asked for", content: "a\r\nb\r\n", old: "a\r\nb", repl: "a\nb", err: "no effect"},
		{name: "CRLF, tolerant", content: "if x:\r\n    a()\r\n    b()\r\n", old: "a()\nb()\n", repl: "a()\nc()\nd()\n", want: "if x:\r\n    a()\r\n    c()\r\n    d()\r\n", how: ends},
		{name: "CRLF, delete lines", content: "a\r\n  b\r\nc\r\n", old: "b ", repl: "", want: "a\r\nc\r\n", how: ends},
		{name: "CRLF, starts at a line end", content: "a\r\nb\r\nc", old: "\nb", repl: "\nx\ny", want: "a\r\nx\r\ny\r\nc"},
		{name: "lone CR is text", content: "a\rb\nc\n", old: "b\nc", repl: "b\nd", want: "a\rb\nd\n"},
	})
}

func TestLegacyEncoding(t *testing.T) {
	check(t, []applyCase{
		{name: "B043", content: "\x93\xfa\x96\x7b = 1\n", old: "= 1", repl: "= 2", want: "\x93\xfa\x96\x7b = 2\n"},
		{name: "tolerant", content: "\xe9t\xe9 = 1 \nb = 2\n", old: "b = 2 ", repl: "b = 3", want: "\xe9t\xe9 = 1 \nb = 3\n", how: "white space at line ends and indentation"},
		{name: "mixing encodings is refused", content: "caf\xe9 = 1\n", old: "= 1", repl: "= é", err: "not UTF-8"},
		{name: "second half of a character is not a letter", content: "\x83\x5c = 1\n", old: "\\ = 1", repl: "x", err: "two-byte character"},
		{name: "as read shows it", content: "\x93\xfa = 1\nb\n", old: `\x93\xfa = 1`, repl: `\x93\xfa = 2`, want: "\x93\xfa = 2\nb\n", how: "escapes"},
	})
}

func TestLineNumbers(t *testing.T) {
	check(t, []applyCase{
		{name: "copied from read", content: "a\nb\nc\n", old: "2|b\n3|c", repl: "2|b\n3|x", want: "a\nb\nx\n", how: "line numbers"},
		{name: "new without numbers", content: "a\n\tb\n", old: "2|\tb", repl: "\tc", want: "a\n\tc\n", how: "line numbers"},
		{name: "other tools", content: "a\nb\n", old: "    2\tb", repl: "    2\tc", want: "a\nc\n", how: "line numbers"},
		{name: "the number decides", content: "x\ny\nx\n", old: "3|x", repl: "3|z", want: "x\ny\nz\n", how: "line numbers"},
		{name: "a wrong number does not", content: "x\ny\nx\n", old: "2|x", repl: "2|z", err: "matches 2 places"},
		{name: "the file has them itself", content: "1|a\n2|b\n", old: "1|a", repl: "1|c", want: "1|c\n2|b\n"},
		{name: "numbers that do not count up", content: "a\nb\n", old: "1|a\n5|b", repl: "x", err: "was not found"},
	})
}

func TestProportion(t *testing.T) {
	f := newFile([]byte("a\nb\nc\nd\ne\n" + strings.Repeat("x", 3000) + "\ny\n"))
	f.split()
	for _, c := range []struct {
		name     string
		from, to int
		old      []string
		refuse   bool
	}{
		{"one line for one", 0, 1, []string{"a"}, false},
		{"three for one", 0, 3, []string{"a"}, false},
		{"four for one", 0, 4, []string{"a"}, true},
		{"four for two", 0, 4, []string{"a", "b"}, false},
		{"five for two", 0, 5, []string{"a", "b"}, true},
		{"long for one is fine", 5, 6, []string{"x"}, false},
		{"long for two", 5, 7, []string{"x", "y"}, true},
	} {
		err := proportionate(f, f.wholeLines(c.from, c.to, nil), c.old)
		if (err != nil) != c.refuse {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// FuzzApply checks what must hold for any edit: no panic; an error changes nothing; the bytes before the
// first and after the last replaced place are those of the file; a file whose line ends are all CRLF, or
// all LF, stays so unless new asks for others.
func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\r\n", "b", "c\nd", false)
	f.Add("if x:\n    a()\n    b()\n", "a()\nb()\n", "a()\nc()\n", false)
	f.Add("func f() {\n\tone\n\ttwo\n}\n", "func f() {\n\tone\n\ttw0\n}\n", "func f() {\n\tx\n\ttw0\n}\n", false)
	f.Add("x x x", "x", "yy", true)
	f.Add("\x93\xfa a\n", "a", "b", false)
	f.Add("1|a\n", "1|a", "b", false)
	f.Add("\u3000a\n b\n", "a\nb", "c", true)
	f.Add("a\n\nb\n", "\n\nb\n\n", "", false)
	f.Fuzz(func(t *testing.T, content, old, repl string, all bool) {
		if len(content)+len(old)+len(repl) > 4000 {
			return
		}
		before := []byte(content)
		r, err := Apply(before, old, repl, all)
		if string(before) != content {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		if bytes.Equal(r.Content, before) {
			t.Fatal("success without effect")
		}
		fl := newFile(before)
		m, err := find(fl, old, repl, all)
		if err != nil {
			t.Fatal("not repeatable")
		}
		pos, rest := 0, r.Content
		for _, p := range m.replacements {
			if p.start < pos || p.end < p.start || p.end > len(before) || p.start == p.end {
				t.Fatalf("replacement %d:%d of %d bytes after %d", p.start, p.end, len(before), pos)
			}
			head := append(bytes.Clone(before[pos:p.start]), p.text...)
			if !bytes.HasPrefix(rest, head) {
				t.Fatal("bytes outside the match changed")
			}
			pos, rest = p.end, rest[len(head):]
		}
		if !bytes.Equal(rest, before[pos:]) {
			t.Fatal("bytes after the last match changed")
		}
		if !strings.Contains(old+repl, "\r") && !strings.Contains(old+repl, "\\r") {
			crlf, lf := strings.Count(content, "\r\n"), strings.Count(content, "\n")
			gotCRLF, gotLF := bytes.Count(r.Content, []byte("\r\n")), bytes.Count(r.Content, []byte("\n"))
			if lf > 0 && crlf == lf && gotCRLF != gotLF {
				t.Fatalf("CRLF lost: %q to %q", content, r.Content)
			}
			if crlf == 0 && gotCRLF != 0 && !strings.Contains(content, "\r") {
				t.Fatalf("CRLF appeared: %q to %q", content, r.Content)
			}
		}
	})
}
