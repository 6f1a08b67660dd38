package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/inference/gguf"
	"atoll/inference/tinymodel"
	"atoll/kernels/quant"
)

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

func lines(t testing.TB, in string, handle func([]byte) (any, error)) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Lines(context.Background(), strings.NewReader(in), &out, handle); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// compare checks answers line by line; a want that ends in ... is a beginning.
func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d lines %q, want %d", len(got), got, len(want))
	}
	for i := range want {
		if begin, ok := strings.CutSuffix(want[i], "..."); got[i] != want[i] && !(ok && strings.HasPrefix(got[i], begin)) {
			t.Errorf("line %d: %s, want %s", i+1, got[i], want[i])
		}
	}
}

func TestVocabularyLines(t *testing.T) {
	v, err := OpenVocabulary(tiny(t, tinymodel.Options{VocabOnly: true}))
	if err != nil {
		t.Fatal(err)
	}
	end := v.Tokenize(TokenizeRequest{Text: "<|im_end|>", ParseSpecial: true})
	if len(end.IDs) != 1 {
		t.Fatalf("the control token is %v", end.IDs)
	}
	endID, _ := json.Marshal(end)
	got := lines(t, `{"text":""}
{"text":"<|im_end|>","parse_special":true}

{"text": 5}
not JSON
{"text":"a","unknown":1}
`, v.TokenizeLine)
	compare(t, got, []string{`{"ids":[]}`, string(endID), `{"error":"read JSON: ...`, `{"error":"read JSON: ...`, `{"ids":[...`})

	// Whatever goes in comes out, text of control tokens included.
	for _, text := range []string{"func main() {\n\treturn\n}", "<|im_end|> is text here", "Größe 大 🙂"} {
		res, err := v.Detokenize(DetokenizeRequest{v.Tokenize(TokenizeRequest{Text: text}).IDs})
		if err != nil || res.Text != text || res.Pending != "" {
			t.Errorf("%q came back as %+v, %v", text, res, err)
		}
	}
	half := v.Tokenize(TokenizeRequest{Text: "大"}).IDs
	cut, _ := json.Marshal(DetokenizeRequest{half[:len(half)-1]})
	got = lines(t, string(cut)+"\n{\"ids\":[-1]}\n{\"ids\":[1,99999]}\n{\"ids\":[]}", v.DetokenizeLine)
	compare(t, got, []string{`{"text":"","pending_hex":"e5a4"}`, `{"error":"token -1 at index 0 ...`, `{"error":"token 99999 at index 1 ...`, `{"text":""}`})
}

func TestRenderLines(t *testing.T) {
	r, err := NewRenderer("")
	if err != nil {
		t.Fatal(err)
	}
	got := lines(t, `{"template":"{{ messages[0].content }}{% if tools is none %}!{% endif %}","context":{"messages":[{"content":"<hi> & bye"}]}}
{"template":"{{ strftime_now('%Y-%m-%d %H:%M') }}","now":"2026-01-02T03:04:05"}
{"template":"{{ x | tojson }}","context":{"x":{"b":1,"a":[true,null]}}}
{"template":"{% if %}"}
{"template":"{{ raise_exception('no way') }}"}
{"context":{}}
{"template":"x","now":"yesterday"}
{"template":"x","context":[1]}
`, r.RenderLine)
	compare(t, got, []string{
		`{"text":"<hi> & bye!"}`, `{"text":"2026-01-02 03:04"}`, `{"text":"{\"b\": 1, \"a\": [true, null]}"}`,
		`{"error":"parse template: ...`, `{"error":"render template: ...`, `{"error":"render: no template given...`, `{"error":"render: now ...`, `{"error":"read context: not an object"}`,
	})
	if !strings.Contains(got[4], "no way") {
		t.Errorf("the template's message is lost: %s", got[4])
	}

	own, err := NewRenderer(tiny(t, tinymodel.Options{VocabOnly: true}))
	if err != nil {
		t.Fatal(err)
	}
	got = lines(t, `{"context":{"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":true}}
{"template":"{{ bos_token }}|{{ eos_token }}"}
{"template":"{{ bos_token }}","context":{"bos_token":"<s>"}}`, own.RenderLine)
	if !strings.Contains(got[0], `<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n`) {
		t.Errorf("the model's own template gives %s", got[0])
	}
	compare(t, got[1:], []string{`{"text":"<|endoftext|>|<|im_end|>"}`, `{"text":"<s>"}`})
}

func TestParseLines(t *testing.T) {
	tool := `[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`
	bare := `[{"name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]`
	got := lines(t, `{"family":"hermes","raw":"just text","tools":`+tool+`}
{"family":"hermes","raw":"<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>","tools":`+tool+`}
{"family":"hermes","raw":"<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>","tools":`+bare+`}
{"family":"hermes","raw":"<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>","tools":`+tool+`}
{"family":"hermes","raw":"<tool_call>{\"name\":\"fly\",\"arguments\":{}}</tool_call>","tools":`+tool+`}
{"family":"klingon","raw":"x"}
{"family":"hermes","raw":"x","tools":[{}]}
`, ParseLine)
	call := `{"content":"","reasoning":"","calls":[{"name":"read","arguments":{"path":"a"}}]}`
	compare(t, got, []string{
		`{"content":"just text","reasoning":"","calls":[]}`, call, call,
		`{"content":"","reasoning":"","calls":[],"error":"invalid_arguments","name":"read"...`,
		`{"content":"","reasoning":"","calls":[],"error":"unknown_tool","name":"fly"...`,
		`{"error":"parse answer: unknown family \"klingon\""}`, `{"error":"read tools: tool 0 has no name"}`,
	})
}

func TestLinesEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ok := func([]byte) (any, error) { return struct{}{}, nil }
	if err := Lines(ctx, strings.NewReader("{}\n"), &bytes.Buffer{}, ok); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	mine := errors.New("mine")
	if err := Lines(context.Background(), strings.NewReader("{}\n"), failingWriter{mine}, ok); !errors.Is(err, mine) {
		t.Errorf("failing writer: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestDescribe(t *testing.T) {
	d, err := Describe(tiny(t, tinymodel.Options{Format: quant.Q8_0}), 256)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Problems) > 0 || d.Model == nil || d.Model.Architecture != "qwen2" || d.Model.Memory.Context != 256 || d.Model.TrainedContext != 1024 {
		t.Errorf("%+v %+v", d.Problems, d.Model)
	}
	if m := d.Model.Memory; m.Total != m.Weights+m.KV+m.Scratch || m.KV != 2*2*16*2*2*256 {
		t.Errorf("memory %+v", m)
	}
	if d.Chat == nil || d.Chat.Family != "hermes" || d.Tokenizer == nil || d.Tokenizer.EOS != "<|im_end|>" {
		t.Errorf("chat %+v, tokenizer %+v", d.Chat, d.Tokenizer)
	}
	var sum uint64
	n := 0
	for _, f := range d.Formats {
		sum += f.Bytes
		n += f.Tensors
	}
	if n != len(d.Tensors) || sum != uint64(d.Model.Memory.Weights) {
		t.Errorf("formats %+v do not add up to %d tensors of %d bytes", d.Formats, len(d.Tensors), d.Model.Memory.Weights)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}

	t.Run("vocabulary only", func(t *testing.T) {
		d, err := Describe(tiny(t, tinymodel.Options{VocabOnly: true}), 0)
		if err != nil || !d.Vocabulary || d.Model != nil || d.Tokenizer == nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("unknown architecture", func(t *testing.T) {
		pairs, tensors, err := tinymodel.Parts(tinymodel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pairs[0].Value = "mamba"
		var b bytes.Buffer
		if err := gguf.Write(&b, pairs, tensors); err != nil {
			t.Fatal(err)
		}
		d, err := Describe(write(t, b.Bytes()), 0)
		if err != nil || len(d.Tensors) != len(tensors) || len(d.Problems) != 1 || !strings.Contains(d.Problems[0], "mamba") {
			t.Errorf("problems %q, %v", d.Problems, err)
		}
	})
	t.Run("no model file", func(t *testing.T) {
		_, err := Describe(write(t, []byte("PK\x03\x04 a zip file")), 0)
		if err == nil || !IsModelFault(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("window too large", func(t *testing.T) {
		if _, err := Describe(tiny(t, tinymodel.Options{}), 5000); err == nil || !strings.Contains(err.Error(), "1024") {
			t.Errorf("error %v", err)
		}
	})
}

// TestPerplexityOfUniform: a model whose head is zero finds every token equally likely,
// so its perplexity is the size of the vocabulary.
func TestPerplexityOfUniform(t *testing.T) {
	pairs, tensors, err := tinymodel.Parts(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	vocabulary := 0
	for _, tensor := range tensors {
		if tensor.Name == "output.weight" {
			clear(tensor.Data)
			vocabulary = int(tensor.Dims[1])
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, tensors); err != nil {
		t.Fatal(err)
	}
	var seen []int
	text := strings.Repeat("the quick brown fox ", 60)
	res, err := Perplexity(context.Background(), Options{Path: write(t, b.Bytes()), Threads: 1}, text, 64, func(done, total int, _ float64) { seen = append(seen, done) })
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(res.Perplexity/float64(vocabulary)-1) > 1e-5 || res.StdErr > 1e-3*res.Perplexity {
		t.Errorf("perplexity %v +- %v, want %d", res.Perplexity, res.StdErr, vocabulary)
	}
	// Of 64 tokens, those behind the 32nd to the 62nd are predicted.
	if res.Windows != res.Tokens/64 || res.Scored != res.Windows*31 || len(seen) != res.Windows {
		t.Errorf("%+v, progress %v", res, seen)
	}
	if _, err := Perplexity(context.Background(), Options{Path: write(t, b.Bytes())}, "short", 64, nil); err == nil || !strings.Contains(err.Error(), "fewer than one window") {
		t.Errorf("short text: %v", err)
	}
}

func TestLogits(t *testing.T) {
	path := tiny(t, tinymodel.Options{})
	var rows []PositionScores
	err := Logits(context.Background(), Options{Path: path, Threads: 1}, "the function returns", false, 3, func(p PositionScores) error {
		rows = append(rows, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for i, r := range rows {
		text += r.Text
		if r.Pos != i || len(r.Top) != 3 || r.Top[0].LogProb < r.Top[1].LogProb || r.Top[0].LogProb > 0 {
			t.Errorf("position %d: %+v", i, r)
		}
		if last := i == len(rows)-1; (r.Next == nil) != last || !last && r.Next.ID != rows[i+1].ID {
			t.Errorf("position %d: next %+v", i, r.Next)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
	if text != "the function returns" {
		t.Errorf("the tokens spell %q", text)
	}
	none := func(PositionScores) error { return nil }
	if err := Logits(context.Background(), Options{Path: path}, "", false, 3, none); err == nil {
		t.Error("no text: no error")
	}
	if err := Logits(context.Background(), Options{Path: path}, "x", false, 0, none); err == nil {
		t.Error("no top: no error")
	}
}

// clock advances by a second each time it is read.
type clock struct{ t time.Time }

func (c *clock) now() time.Time {
	c.t = c.t.Add(time.Second)
	return c.t
}

func TestBench(t *testing.T) {
	c := &clock{}
	var runs []string
	results, err := Bench(context.Background(), BenchOptions{
		Options: Options{Path: tiny(t, tinymodel.Options{}), Threads: 1},
		Prompt:  []int{20, 0}, Gen: []int{5}, Depth: []int{0, 30}, Repetitions: 3, now: c.now,
		Progress: func(test string, run, n int) { runs = append(runs, test) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Test)
		// Each run takes one tick of the clock: a second.
		if len(r.SamplesNS) != 3 || r.AvgNS != 1e9 || r.StddevNS != 0 || r.AvgTS != float64(r.NPrompt+r.NGen) || r.StddevTS != 0 {
			t.Errorf("%s: %+v", r.Test, r)
		}
	}
	if got := strings.Join(names, ", "); got != "pp20, tg5, pp20 @ d30, tg5 @ d30" {
		t.Errorf("tests %s", got)
	}
	if len(runs) != 4*4 {
		t.Errorf("%d runs, want 3 and one to warm up of 4 tests", len(runs))
	}
	var table bytes.Buffer
	if err := WriteBenchTable(&table, results); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| model", "| pp20 @ d30 |", "| 20.00 ± 0.00 |", "| ---"} {
		if !strings.Contains(table.String(), part) {
			t.Errorf("table lacks %q:\n%s", part, table.String())
		}
	}
	data, err := json.Marshal(results[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"avg_ts", "stddev_ts", "avg_ns", "n_prompt", "n_gen", "n_depth", "n_threads", "model_type", "model_size", "model_n_params", "samples_ns", "samples_ts", "test"} {
		if !strings.Contains(string(data), `"`+key+`":`) {
			t.Errorf("JSON lacks %q", key)
		}
	}
}

func TestBenchFaults(t *testing.T) {
	path := tiny(t, tinymodel.Options{})
	for _, tt := range []struct {
		name string
		o    BenchOptions
		want string
	}{
		{"nothing to do", BenchOptions{Prompt: []int{0}, Gen: []int{0}}, "no test"},
		{"negative", BenchOptions{Prompt: []int{-5}}, "-5"},
		{"negative repetitions", BenchOptions{Repetitions: -1}, "-1"},
		{"longer than the context", BenchOptions{Prompt: []int{2000}}, "1024"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Path = path
			if _, err := Bench(context.Background(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestMeanDeviation(t *testing.T) {
	if m, d := meanDeviation([]float64{2, 4, 4, 4, 5, 5, 7, 9}); m != 5 || math.Abs(d-2.1380899) > 1e-6 {
		t.Errorf("mean %v, deviation %v", m, d)
	}
	if m, d := meanDeviation([]float64{3}); m != 3 || d != 0 {
		t.Errorf("mean %v, deviation %v", m, d)
	}
}
