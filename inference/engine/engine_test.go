package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"atoll/inference/chat"
	"atoll/inference/gguf"
	"atoll/inference/sample"
	"atoll/inference/tinymodel"
	"atoll/kernels"
	"atoll/kernels/auto"
	"atoll/kernels/quant"
)

// open loads a model and closes it at the end of the test.
func open(t testing.TB, opts Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// tiny writes a model of random weights and returns its path.
func tiny(t testing.TB, o tinymodel.Options) string {
	t.Helper()
	data, err := tinymodel.Bytes(o)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, data)
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tiers are the instruction tiers that this machine can run.
func tiers(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, tier := range auto.Tiers {
		b, err := auto.Open(auto.Options{Tier: tier, Threads: 1})
		if errors.Is(err, kernels.ErrUnavailable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		out = append(out, tier)
	}
	return out
}

// generate runs a request and returns result and text.
func generate(t testing.TB, e *Engine, req Request) (Result, string) {
	t.Helper()
	var text strings.Builder
	var ends []int // where the pieces end
	res, err := e.Generate(context.Background(), req, func(tok Token) error {
		text.WriteString(tok.Text)
		ends = append(ends, text.Len())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < text.Len(); {
		_, n := utf8.DecodeRuneInString(text.String()[i:])
		for _, end := range ends {
			if end > i && end < i+n {
				t.Errorf("the character at byte %d of %q was cut", i, text.String())
			}
		}
		i += n
	}
	return res, text.String()
}

func prompt(n, seed int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((i*i*7 + i*31 + seed*53) % 250)
	}
	return out
}

// TestCachedPrefixChangesNothing: a prompt whose prefix is in the cache gives the same
// tokens as one that is evaluated from nothing, in every tier (case B007).
func TestCachedPrefixChangesNothing(t *testing.T) {
	for _, tier := range tiers(t) {
		for _, format := range []quant.Format{quant.F32, quant.Q8_0, quant.Q4_K, quant.Q6_K} {
			t.Run(fmt.Sprintf("%s %v", tier, format), func(t *testing.T) {
				path := tiny(t, tinymodel.Options{Format: format, Embed: 256, Context: 1024})
				e := open(t, Options{Path: path, Tier: tier, Threads: 2})
				base := prompt(160, 1)
				req := Request{Tokens: base, MaxTokens: 40, IgnoreEOG: true, Fresh: true}
				want, wantText := generate(t, e, req)
				if want.CachedTokens != 0 || want.PromptTokens != 160 || want.OutputTokens != 40 {
					t.Fatalf("fresh: %+v", want)
				}
				for i, tt := range []struct {
					before []int32 // evaluated first
					cached int
				}{
					{base, 159},
					{base[:100], 100},
					{append(slices.Clone(base[:117]), prompt(50, 9)...), 117},
					{append(slices.Clone(base), want.Output...), 159},
					{prompt(30, 5), 0},
				} {
					generate(t, e, Request{Tokens: tt.before, MaxTokens: 3, IgnoreEOG: true, Fresh: true})
					req.Fresh = false
					got, text := generate(t, e, req)
					if got.CachedTokens != tt.cached {
						t.Errorf("%d: %d tokens cached, want %d", i, got.CachedTokens, tt.cached)
					}
					if !slices.Equal(got.Output, want.Output) || text != wantText {
						t.Errorf("%d: tokens %v, want %v", i, got.Output, want.Output)
					}
				}
			})
		}
	}
}

// TestTiersAgree: the same model thinks the same in every tier, whatever its sizes, but
// for roundings that fall the other way.
func TestTiersAgree(t *testing.T) {
	for _, o := range []tinymodel.Options{
		{Format: quant.Q8_0, Embed: 256},
		{Format: quant.Q4_0, Embed: 96, Heads: 6, FF: 32, Arch: "llama"},
		{Format: quant.Q5_K, Embed: 512, Heads: 4, KVHeads: 4},
		{Embed: 64, Heads: 8, KVHeads: 1},          // heads of 8
		{Embed: 96, Heads: 4, FF: 33},              // heads of 24, odd rows
		{Embed: 240, Heads: 3, KVHeads: 3, FF: 50}, // heads of 80
		{Embed: 48, Heads: 6, KVHeads: 3, Layers: 1, Arch: "llama", RopeFactors: true},
		{Format: quant.BF16, Embed: 112, Heads: 14, KVHeads: 2, FF: 5},
	} {
		t.Run(fmt.Sprintf("%v width %d heads %d", o.Format, o.Embed, o.Heads), func(t *testing.T) {
			path := tiny(t, o)
			var want []float32
			for _, tier := range tiers(t) {
				e := open(t, Options{Path: path, Tier: tier, Threads: 2, Batch: 33})
				var got []float32
				err := e.Score(context.Background(), prompt(70, 2), 0, func(_ int, l []float32) error {
					got = append(got, l...)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
					continue
				}
				var diff, size float64
				for i, w := range want {
					diff += float64(got[i]-w) * float64(got[i]-w)
					size += float64(w) * float64(w)
				}
				bar := 0.02 // roundings of activations to 8 bits
				if o.Format == quant.F32 {
					bar = 1e-4
				}
				if r := math.Sqrt(diff / size); !(r < bar) {
					t.Errorf("%s: logits differ by %g of their size", tier, r)
				}
			}
		})
	}
}

func TestStops(t *testing.T) {
	path := tiny(t, tinymodel.Options{Context: 128})
	e := open(t, Options{Path: path, Threads: 1})
	base, text := generate(t, e, Request{Tokens: prompt(20, 1), MaxTokens: 60, IgnoreEOG: true})

	t.Run("length", func(t *testing.T) {
		if base.Stop != StopLength || base.OutputTokens != 60 || len(base.Output) != 60 {
			t.Errorf("stop %q with %d tokens", base.Stop, base.OutputTokens)
		}
		if want := e.Tokenizer().Decode(base.Output, false); text != want {
			t.Errorf("streamed %q, the tokens are %q", text, want)
		}
	})
	t.Run("context", func(t *testing.T) {
		res, _ := generate(t, e, Request{Tokens: prompt(20, 1), IgnoreEOG: true})
		// Positions 20 to 127 hold a token each, and the last one still predicts one.
		if res.Stop != StopContext || res.OutputTokens != 128-20+1 {
			t.Errorf("stop %q after %d tokens, want context after 109", res.Stop, res.OutputTokens)
		}
	})
	t.Run("prompt fills the context", func(t *testing.T) {
		res, _ := generate(t, e, Request{Tokens: prompt(128, 1), IgnoreEOG: true})
		if res.Stop != StopContext || res.OutputTokens != 1 {
			t.Errorf("stop %q after %d tokens", res.Stop, res.OutputTokens)
		}
	})
	t.Run("prompt too long", func(t *testing.T) {
		before, _ := generate(t, e, Request{Tokens: prompt(20, 1), MaxTokens: 1, IgnoreEOG: true})
		_, err := e.Generate(context.Background(), Request{Tokens: prompt(129, 1)}, func(Token) error { return nil })
		var over *ContextError
		if !errors.As(err, &over) || over.Prompt != 129 || over.Max != 128 {
			t.Fatalf("error %v, want a ContextError of 129 and 128", err)
		}
		after, _ := generate(t, e, Request{Tokens: prompt(20, 1), MaxTokens: 1, IgnoreEOG: true})
		if after.CachedTokens != 19 || before.Output[0] != after.Output[0] {
			t.Errorf("the cache was touched: %+v", after)
		}
	})
	t.Run("end of the answer", func(t *testing.T) {
		// A mask that allows one token at a time makes the model say "hi" and end.
		tok := e.Tokenizer()
		end, ok := tok.TokenID("<|im_end|>")
		if !ok {
			t.Fatal("no <|im_end|>")
		}
		script := append(tok.Encode("hi", false, false), end)
		said := len(script) - 1
		mask := maskFunc(func(id int32) bool { return id == script[0] })
		var got string
		res, err := e.Generate(context.Background(), Request{Tokens: prompt(20, 1), Mask: mask}, func(t Token) error {
			got += t.Text
			script = script[1:]
			return nil
		})
		if err != nil || res.Stop != StopEnd || got != "hi" {
			t.Errorf("stop %q, text %q, error %v", res.Stop, got, err)
		}
		if res.OutputTokens != said+1 || len(res.Output) != said {
			t.Errorf("%d tokens sampled, %d in the output, want %d and %d", res.OutputTokens, len(res.Output), said+1, said)
		}
	})
	t.Run("stop string", func(t *testing.T) {
		if len(text) < 20 {
			t.Fatalf("text %q is too short", text)
		}
		for cut := 5; cut < 15; cut++ {
			for n := 1; n < 5; n++ {
				stop := text[cut : cut+n]
				res, got := generate(t, e, Request{Tokens: prompt(20, 1), MaxTokens: 60, IgnoreEOG: true, StopStrings: []string{"\x00never", stop, ""}})
				if want := text[:strings.Index(text, stop)]; got != want || res.Stop != StopString {
					t.Errorf("stop at %q: %q (%s), want %q", stop, got, res.Stop, want)
				}
			}
		}
	})
	t.Run("nothing is allowed", func(t *testing.T) {
		_, err := e.Generate(context.Background(), Request{Tokens: prompt(3, 1), Mask: maskFunc(func(int32) bool { return false })}, func(Token) error { return nil })
		if err == nil {
			t.Error("no error")
		}
	})
}

type maskFunc func(int32) bool

func (f maskFunc) Allowed(id int32) bool { return f(id) }

func TestBadRequests(t *testing.T) {
	e := open(t, Options{Path: tiny(t, tinymodel.Options{Context: 64}), Threads: 1})
	for _, tt := range []struct {
		name string
		req  Request
		want string
	}{
		{"no tokens", Request{}, "no tokens"},
		{"negative limit", Request{Tokens: []int32{1}, MaxTokens: -1}, "-1"},
		{"token outside the vocabulary", Request{Tokens: []int32{1 << 30}}, "outside the vocabulary"},
		{"bad sampling", Request{Tokens: []int32{1}, Sampling: sample.Options{TopP: 3}}, "top-p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.Generate(context.Background(), tt.req, func(Token) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			generate(t, e, Request{Tokens: []int32{1, 2}, MaxTokens: 2, IgnoreEOG: true}) // still works
		})
	}
}

func TestWindow(t *testing.T) {
	path := tiny(t, tinymodel.Options{Context: 512})
	for _, tt := range []struct {
		ask, want int
		bad       bool
	}{
		{0, 512, false}, {512, 512, false}, {100, 100, false}, {16, 16, false},
		{513, 0, true}, {15, 0, true}, {-1, 0, true}, {1 << 40, 0, true},
	} {
		info, err := Plan(Options{Path: path, Ctx: tt.ask})
		var window *WindowError
		if tt.bad != errors.As(err, &window) || !tt.bad && (err != nil || info.Context != tt.want) {
			t.Errorf("window %d: %d, %v", tt.ask, info.Context, err)
		}
		if tt.bad && !strings.Contains(err.Error(), fmt.Sprint(tt.ask)) {
			t.Errorf("window %d: %q does not name it", tt.ask, err)
		}
	}
	big := tiny(t, tinymodel.Options{Context: 100000})
	if info, err := Plan(Options{Path: big}); err != nil || info.Context != DefaultContext || info.TrainedContext != 100000 {
		t.Errorf("default window %d, %v", info.Context, err)
	}
}

func TestMemoryPlan(t *testing.T) {
	path := tiny(t, tinymodel.Options{Context: 512, Format: quant.Q4_1, Embed: 256, Tied: true})
	plan, err := Plan(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Options{Path: path})
	info := e.Info()
	// A backend may round up to whole vectors.
	if kv := info.Memory.KV; kv < plan.Memory.KV || kv > plan.Memory.KV*13/10 {
		t.Errorf("cache planned with %d bytes, has %d", plan.Memory.KV, kv)
	}
	if w, p := float64(info.Memory.Weights), float64(plan.Memory.Weights); w < 0.8*p || w > 1.3*p {
		t.Errorf("weights planned with %g bytes, have %g", p, w)
	}
}

func TestEmitErrorEndsTheRequest(t *testing.T) {
	e := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 1})
	mine := errors.New("mine")
	for _, at := range []string{"token", "progress"} {
		n := 0
		fail := func(where string) error {
			if n++; where == at && n > 2 {
				return mine
			}
			return nil
		}
		_, err := e.Generate(context.Background(), Request{
			Tokens: prompt(600, 1), IgnoreEOG: true, Fresh: true, Progress: func(int, int) error { return fail("progress") },
		}, func(Token) error { return fail("token") })
		if err != mine {
			t.Errorf("%s: error %v, want the caller's own", at, err)
		}
	}
	generate(t, e, Request{Tokens: prompt(10, 1), MaxTokens: 2, IgnoreEOG: true})
}

func TestProgress(t *testing.T) {
	e := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 1, Batch: 100})
	var got []string
	req := Request{Tokens: prompt(250, 1), MaxTokens: 1, Progress: func(done, total int) error {
		got = append(got, fmt.Sprintf("%d/%d", done, total))
		return nil
	}}
	generate(t, e, req)
	if want := "0/250 100/250 200/250 250/250"; strings.Join(got, " ") != want {
		t.Errorf("progress %v, want %s", got, want)
	}
	got = nil
	generate(t, e, req)
	if want := "249/250 250/250"; strings.Join(got, " ") != want {
		t.Errorf("progress of a cached prompt %v, want %s", got, want)
	}
}

func TestOpenFaults(t *testing.T) {
	good, err := tinymodel.Bytes(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pairs, _, err := tinymodel.Parts(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, tensors, err := tinymodel.Parts(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	manyTokens := slices.Clone(pairs)
	for i, p := range manyTokens {
		switch p.Key {
		case "tokenizer.ggml.tokens":
			manyTokens[i].Value = append(slices.Clone(p.Value.([]string)), "extra")
		case "tokenizer.ggml.token_type":
			manyTokens[i].Value = append(slices.Clone(p.Value.([]int32)), 1)
		}
	}
	var many bytes.Buffer
	if err := gguf.Write(&many, manyTokens, tensors); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty"},
		{"truncated in the header", good[:40], "tiny.gguf"},
		{"truncated in the tensors", good[:len(good)-5000], "tensor"},
		{"more tokens than the embedding", many.Bytes(), "embedding of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.data)
			_, err := Open(context.Background(), Options{Path: path})
			var fault *gguf.Error
			if !errors.As(err, &fault) || !IsModelFault(err) {
				t.Fatalf("error %v is no fault of the model file", err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with the path and %q", err, tt.want)
			}
		})
	}
	t.Run("no such file", func(t *testing.T) {
		_, err := Open(context.Background(), Options{Path: filepath.Join(t.TempDir(), "none.gguf")})
		if err == nil || !IsModelFault(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no such tier", func(t *testing.T) {
		if _, err := Open(context.Background(), Options{Path: write(t, good), Tier: "mmx"}); err == nil || !strings.Contains(err.Error(), "mmx") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no chat template", func(t *testing.T) {
		path := write(t, mustWrite(t, slices.DeleteFunc(slices.Clone(pairs), func(p gguf.Pair) bool { return p.Key == templateKey }), tensors))
		e := open(t, Options{Path: path})
		if _, err := e.Format(); !errors.Is(err, ErrNoTemplate) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Open(ctx, Options{Path: write(t, good)}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func mustWrite(t *testing.T, pairs []gguf.Pair, tensors []gguf.Blob) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPromptTokens: only what the template wrote becomes a control token.
func TestPromptTokens(t *testing.T) {
	e := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 1})
	tok := e.Tokenizer()
	start, _ := tok.TokenID("<|im_start|>")
	ids := PromptTokens(tok, []chat.Segment{{Text: "<|im_start|>", Special: true}, {Text: "user\n<|im_start|>"}})
	if ids[0] != start {
		t.Errorf("the template's token became %d, want %d", ids[0], start)
	}
	for _, id := range ids[1:] {
		if tok.IsControl(id) {
			t.Errorf("text became the control token %d", id)
		}
	}
	if got := tok.Decode(ids, true); got != "<|im_start|>user\n<|im_start|>" {
		t.Errorf("tokens spell %q", got)
	}
}
