// Package ignore decides what ignore files hide, by git's rules (gitignore(5) and the wildmatch of its
// source): the last rule that matches decides, the nearest file first; a rule with a slash other than
// at its end is anchored to the directory of its file; "**" crosses directories; "!" takes back.
//
// What git adds on top, that nothing below an ignored directory can be taken back, follows from not
// descending into one, which is up to the walker.
package ignore

import (
	"bytes"
	"strings"
)

// maxFile bounds the bytes that are read of one ignore file. Longer ones are cut at a line.
const maxFile = 1 << 20

// maxPattern bounds a rule, in bytes. No path that a walk reaches needs a longer one.
const maxPattern = 4096

// A Level is the rules of one ignore file on top of those of lower precedence. Nil has no rules.
// Levels are immutable and may be shared.
type Level struct {
	below *Level
	base  string // directory of the file, absolute, without a slash at the end; "" for the root
	rules []rule
}

type rule struct {
	prefix  string // leading part of an anchored rule that has no wildcard
	pattern string // the rest, without "!", leading and trailing slash
	negate  bool   // takes back
	dirOnly bool   // had a slash at the end
	byName  bool   // has no other slash: matches the last path element at any depth
	literal bool   // has no wildcard
}

// Push returns the level with the rules of an ignore file that lies in dir, an absolute clean path.
func (l *Level) Push(dir string, content []byte) *Level {
	rules := parse(content)
	if len(rules) == 0 {
		return l
	}
	return &Level{below: l, base: strings.TrimSuffix(dir, "/"), rules: rules}
}

// Ignored tells whether the absolute clean path is hidden. A symbolic link is not a directory.
func (l *Level) Ignored(path string, isDir bool) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; l != nil; l = l.below {
		rel, ok := strings.CutPrefix(path, l.base+"/")
		if !ok {
			continue
		}
		for i := len(l.rules) - 1; i >= 0; i-- {
			r := &l.rules[i]
			if r.dirOnly && !isDir {
				continue
			}
			subject, ok := strings.CutPrefix(rel, r.prefix)
			if r.byName {
				subject = name
			}
			if ok && (r.literal && r.pattern == subject || !r.literal && Match(r.pattern, subject)) {
				return !r.negate
			}
		}
	}
	return false
}

func parse(content []byte) []rule {
	if len(content) > maxFile {
		content = content[:bytes.LastIndexByte(content[:maxFile], '\n')+1]
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	var rules []rule
	for line := range bytes.SplitSeq(content, []byte{'\n'}) {
		s := strings.TrimSuffix(string(line), "\r")
		if s == "" || s[0] == '#' {
			continue
		}
		s = trimSpaces(s)
		var r rule
		if s, r.negate = strings.CutPrefix(s, "!"); s == "" {
			continue
		}
		s, r.dirOnly = strings.CutSuffix(s, "/")
		r.byName = !strings.Contains(s, "/")
		if s = strings.TrimPrefix(s, "/"); s == "" {
			continue
		}
		if len(s) > maxPattern {
			continue
		}
		wild := strings.IndexAny(s, `*?[\`)
		r.literal = wild < 0
		if !r.byName && wild > 0 {
			// As git does, compare the prefix apart. It shows: "a**/b" then matches a/x/b, because the
			// two stars are at the start of what is left.
			r.prefix, s = s[:wild], s[wild:]
		}
		r.pattern = s
		rules = append(rules, r)
	}
	return rules
}

// trimSpaces removes the spaces at the end of a rule that no backslash protects.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			end = min(i+1, len(s))
		case ' ':
		default:
			end = i + 1
		}
	}
	return s[:end]
}

// recordMark starts each record of a bundle.
const recordMark = '\x01'

// Bundle appends an ignore file to a bundle: how the host hands the ignore files that lie above the
// workspace (those of the parent directories up to the root of the repository, its info/exclude, the
// user's own) to a guest that cannot see them. Lowest precedence comes first. A record is the byte
// 0x01, the directory, a newline, the content.
func Bundle(bundle, dir string, content []byte) string {
	clean := strings.ReplaceAll(strings.ReplaceAll(string(content), "\x00", ""), string(recordMark), "")
	return bundle + string(recordMark) + dir + "\n" + clean
}

// Unbundle returns the level with all rules of a bundle.
func Unbundle(bundle string) *Level {
	var l *Level
	for rec := range strings.SplitSeq(bundle, string(recordMark)) {
		dir, content, ok := strings.Cut(rec, "\n")
		if ok && strings.HasPrefix(dir, "/") {
			l = l.Push(dir, []byte(content))
		}
	}
	return l
}
