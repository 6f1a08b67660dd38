package session

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// ErrBadID: the text cannot be the id of a session. It never reached the file system.
var ErrBadID = errors.New("bad session id")

// newID returns an id that sorts by creation time and differs between processes: date, time (UTC), six random characters.
func newID(now time.Time, random io.Reader) (string, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("new session id: %w", err)
	}
	suffix := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:6]
	return now.UTC().Format("20060102-150405-") + suffix, nil
}

// CheckID returns an error that is ErrBadID unless id is made of 1 to 64 lower-case letters, digits and inner '-'. Such a text
// is a plain file name on every system.
func CheckID(id string) error {
	ok := len(id) >= 1 && len(id) <= 64 && id[0] != '-' && id[len(id)-1] != '-'
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if !ok {
		return fmt.Errorf("%w %q", ErrBadID, cut(id, 80))
	}
	return nil
}

// Fingerprint names the folder of a workspace's sessions: the first 16 hexadecimal digits of the SHA-256 of its path.
func Fingerprint(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:8])
}

// cut shortens s to at most n bytes at a character's boundary and marks the cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
