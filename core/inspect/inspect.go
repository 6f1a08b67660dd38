// Package inspect is what the commands that open a model's insides need:
// vocabulary, templates, tool-call parsers, metadata, perplexity, log-probabilities
// and speed. Its types are plain values with the JSON keys of the commands' output,
// so that the command line has nothing to convert.
//
// Faults of a model file keep their cause in the chain; [IsModelFault] tells them
// from faults of the request.
package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"atoll/inference/engine"
)

// Options says which model to run and how.
type Options struct {
	// Path is the GGUF file.
	Path string
	// Threads is the number of workers; 0 means one for each usable core.
	Threads int
	// CPU forces an instruction tier: generic, avx2 or avx512vnni; empty takes the best.
	CPU string
}

func (o Options) open(ctx context.Context, window int) (*engine.Engine, error) {
	return engine.Open(ctx, engine.Options{Path: o.Path, Ctx: window, Threads: o.Threads, Tier: o.CPU})
}

// IsModelFault reports whether err is about the model file or this machine's ability
// to run it (exit code 6), rather than about the request.
func IsModelFault(err error) bool { return engine.IsModelFault(err) }

// maxLine is the longest line that Lines takes, in bytes.
const maxLine = 64 << 20

// failed is the answer to a line that could not be handled.
type failed struct {
	Error string `json:"error"`
}

// Lines reads one JSON object a line, hands each to handle and writes its answer as
// one line, in order. An answer that is an error becomes {"error": "..."} and the next
// line follows; empty lines are left out. It ends at the end of r, at an error of r or
// w, or when ctx does.
func Lines(ctx context.Context, r io.Reader, w io.Writer, handle func(line []byte) (any, error)) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 1<<16), maxLine)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for in.Scan() {
		if err := ctx.Err(); err != nil {
			return err
		}
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		answer, err := handle(line)
		if err != nil {
			answer = failed{err.Error()}
		}
		if err := enc.Encode(answer); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read line: longer than %d bytes", maxLine)
	} else if err != nil {
		return fmt.Errorf("read line: %w", err)
	}
	return nil
}

// decode reads the object of a line. Unknown keys are left alone.
func decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}
