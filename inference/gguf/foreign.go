package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// signatures are beginnings of files that people take for a model.
var signatures = []struct{ prefix, reason string }{
	{"FUGG", "big-endian GGUF files are not supported: convert it to little-endian"},
	{"PK\x03\x04", "a zip archive (a Python package or a PyTorch checkpoint), not a GGUF file: unpack or convert it first"},
	{"\x1f\x8b", "a gzip file: gunzip it first"},
	{"\x28\xb5\x2f\xfd", "a zstd file: decompress it first"},
	{"\xfd7zXZ\x00", "an xz file: decompress it first"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"},
	{"version https://git-lfs", "a Git LFS pointer, not the model itself: run git lfs pull"},
	{"lmgg", "an old GGML file: convert the model to GGUF"},
	{"fmgg", "an old GGML file: convert the model to GGUF"},
	{"tjgg", "an old GGML file: convert the model to GGUF"},
	{"algg", "an old GGLA adapter, not a model"},
	{"\x80\x02", "a Python pickle (a PyTorch checkpoint): convert the model to GGUF"},
	{"\x7fELF", "a program, not a GGUF file"},
	{"\x00\x00\x00\x00", "starts with zero bytes, not a GGUF file (an interrupted download?): fetch it again"},
}

// foreign says in one sentence what a file is that is not GGUF.
func foreign(data []byte) string {
	if len(data) == 0 {
		return "is empty (an interrupted download?): fetch it again"
	}
	// Before the zero bytes: a short safetensors header starts with its length.
	if len(data) > 9 && data[8] == '{' {
		if n := binary.LittleEndian.Uint64(data); n >= 2 && n <= uint64(len(data)-8) {
			return "a safetensors file: convert the model to GGUF"
		}
	}
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.prefix)) {
			return s.reason
		}
	}
	text := bytes.ToLower(bytes.TrimLeft(data[:min(len(data), 512)], " \t\r\n\ufeff"))
	switch {
	case bytes.HasPrefix(text, []byte("<!doctype")), bytes.HasPrefix(text, []byte("<html")):
		return "an HTML page, not a GGUF file: the download gave a web page (a login or an error), fetch it again"
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return "a JSON text, not a GGUF file"
	}
	return fmt.Sprintf("not a GGUF file: it starts with % x", data[:min(len(data), 8)])
}
