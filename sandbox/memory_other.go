//go:build !unix

package sandbox

import "atoll/sandbox/mount"

func reserve(uint64) ([]byte, error) { return nil, mount.ErrUnavailable }

func unreserve([]byte) error { return nil }
