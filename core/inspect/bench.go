package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"atoll/inference/engine"
	"atoll/inference/gguf"
	"atoll/inference/tokenizer"
)

// BenchOptions says what to measure. Empty lists stand for llama-bench's defaults.
type BenchOptions struct {
	Options
	Prompt      []int // -p: prompt lengths; nil: 512; 0 leaves the test out
	Gen         []int // -n: answer lengths; nil: 128; 0 leaves the test out
	Depth       []int // -d: tokens in the cache before the test begins; nil: 0
	Repetitions int   // -r: timed runs of each test; 0: 5
	NoWarmup    bool  // leave out the untimed run before each test
	// Progress, if not nil, is told about each run before it starts.
	Progress func(test string, run, runs int)
	// now is the clock; nil is the real one.
	now func() time.Time
}

// BenchResult is one test, with the keys of llama-bench's JSON that have a meaning
// here.
type BenchResult struct {
	CPUInfo       string    `json:"cpu_info"`
	Backends      string    `json:"backends"`
	Tier          string    `json:"tier"`
	ModelFilename string    `json:"model_filename"`
	ModelType     string    `json:"model_type"`
	ModelSize     int64     `json:"model_size"` // bytes
	ModelNParams  int64     `json:"model_n_params"`
	NBatch        int       `json:"n_batch"`
	NThreads      int       `json:"n_threads"`
	TypeK         string    `json:"type_k"`
	TypeV         string    `json:"type_v"`
	NPrompt       int       `json:"n_prompt"`
	NGen          int       `json:"n_gen"`
	NDepth        int       `json:"n_depth"`
	Test          string    `json:"test"`
	TestTime      time.Time `json:"test_time"`
	AvgNS         int64     `json:"avg_ns"`
	StddevNS      int64     `json:"stddev_ns"`
	AvgTS         float64   `json:"avg_ts"` // tokens a second
	StddevTS      float64   `json:"stddev_ts"`
	SamplesNS     []int64   `json:"samples_ns"`
	SamplesTS     []float64 `json:"samples_ts"`
}

// test is one row of the bench.
type test struct{ prompt, gen, depth int }

func (t test) String() string {
	name := fmt.Sprintf("pp%d", t.prompt)
	if t.gen > 0 {
		name = fmt.Sprintf("tg%d", t.gen)
	}
	if t.depth > 0 {
		name += fmt.Sprintf(" @ d%d", t.depth)
	}
	return name
}

func (o BenchOptions) withDefaults() (BenchOptions, error) {
	def := func(list []int, v int) []int {
		if list == nil {
			return []int{v}
		}
		return list
	}
	o.Prompt, o.Gen, o.Depth = def(o.Prompt, 512), def(o.Gen, 128), def(o.Depth, 0)
	for _, list := range [][]int{o.Prompt, o.Gen, o.Depth} {
		for _, n := range list {
			if n < 0 {
				return o, fmt.Errorf("bench: %d tokens", n)
			}
		}
	}
	if o.Repetitions == 0 {
		o.Repetitions = 5
	}
	if o.Repetitions < 0 {
		return o, fmt.Errorf("bench: %d repetitions", o.Repetitions)
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o, nil
}

// tests lists the rows in llama-bench's order.
func (o BenchOptions) tests() (list []test, window int) {
	for _, d := range o.Depth {
		for _, p := range o.Prompt {
			if p > 0 {
				list = append(list, test{prompt: p, depth: d})
				window = max(window, p+d)
			}
		}
		for _, n := range o.Gen {
			if n > 0 {
				list = append(list, test{gen: n, depth: d})
				window = max(window, n+d)
			}
		}
	}
	return list, window
}

// Bench measures speed as llama-bench does: random tokens; pp evaluates a prompt in
// batches, tg one token after the other; the cache is emptied, or cut to the depth,
// before each run; one untimed run comes first. The tokens of the depth are not timed.
func Bench(ctx context.Context, opts BenchOptions) ([]BenchResult, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	tests, window := o.tests()
	if len(tests) == 0 {
		return nil, errors.New("bench: no test; give a prompt or an answer length")
	}
	modelType, err := describeType(o.Path)
	if err != nil {
		return nil, err
	}
	e, err := o.open(ctx, max(window, engine.MinContext))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	b := &bench{e: e, rnd: rand.New(rand.NewPCG(1, 1)), o: o}
	info := e.Info()
	var results []BenchResult
	for _, t := range tests {
		r := BenchResult{
			CPUInfo: cpuName(), Backends: "CPU", Tier: info.Backend.Tier,
			ModelFilename: filepath.Base(o.Path), ModelType: modelType, ModelSize: info.FileWeights, ModelNParams: info.Parameters,
			NBatch: info.Batch, NThreads: info.Backend.Threads, TypeK: "f16", TypeV: "f16",
			NPrompt: t.prompt, NGen: t.gen, NDepth: t.depth, Test: t.String(), TestTime: o.now().UTC(),
		}
		if err := b.run(ctx, t, &r); err != nil {
			return results, fmt.Errorf("bench %s: %w", t, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// bench runs tests on one engine.
type bench struct {
	e   *engine.Engine
	rnd *rand.Rand
	o   BenchOptions
}

func (b *bench) run(ctx context.Context, t test, r *BenchResult) error {
	if err := b.e.Truncate(ctx, 0); err != nil {
		return err
	}
	if t.depth > 0 {
		if err := b.e.Evaluate(ctx, b.tokens(t.depth, true)); err != nil {
			return err
		}
	}
	runs := b.o.Repetitions
	if !b.o.NoWarmup {
		runs++
	}
	for i := range runs {
		if b.o.Progress != nil {
			b.o.Progress(t.String(), i+1, runs)
		}
		if err := b.e.Truncate(ctx, t.depth); err != nil {
			return err
		}
		warm := !b.o.NoWarmup && i == 0
		took, err := b.once(ctx, t, warm)
		if err != nil {
			return err
		}
		if !warm {
			r.SamplesNS = append(r.SamplesNS, took.Nanoseconds())
			r.SamplesTS = append(r.SamplesTS, float64(t.prompt+t.gen)/took.Seconds())
		}
	}
	ns := make([]float64, len(r.SamplesNS))
	for i, v := range r.SamplesNS {
		ns[i] = float64(v)
	}
	avg, dev := meanDeviation(ns)
	r.AvgNS, r.StddevNS = int64(avg), int64(dev)
	r.AvgTS, r.StddevTS = meanDeviation(r.SamplesTS)
	return nil
}

// once runs a test and returns how long it took. The untimed run of a tg test is one
// token.
func (b *bench) once(ctx context.Context, t test, warm bool) (time.Duration, error) {
	if t.prompt > 0 {
		ids := b.tokens(t.prompt, t.depth == 0)
		start := b.o.now()
		err := b.e.Evaluate(ctx, ids)
		return max(b.o.now().Sub(start), 1), err
	}
	n := t.gen
	if warm {
		n = 1
	}
	ids := b.tokens(n, t.depth == 0)
	start := b.o.now()
	for i := range ids {
		if err := b.e.Evaluate(ctx, ids[i:i+1]); err != nil {
			return 0, err
		}
	}
	return max(b.o.now().Sub(start), 1), nil
}

// tokens returns n random ids, at the start of a context with BOS in front if the
// vocabulary adds one.
func (b *bench) tokens(n int, start bool) []int32 {
	tok := b.e.Tokenizer()
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = b.rnd.Int32N(int32(tok.Len()))
	}
	if bos := tok.BOS(); start && tok.AddBOS() && bos != tokenizer.None {
		ids[0] = bos
	}
	return ids
}

// meanDeviation returns the mean and the deviation of a sample, 0 for a single value.
func meanDeviation(v []float64) (mean, dev float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		dev += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(dev / float64(len(v)-1))
}

// WriteBenchTable writes results as llama-bench's table.
func WriteBenchTable(w io.Writer, results []BenchResult) error {
	rows := [][]string{{"model", "size", "params", "backend", "threads", "test", "t/s"}}
	for _, r := range results {
		rows = append(rows, []string{
			r.ModelType, fmt.Sprintf("%.2f MiB", float64(r.ModelSize)/(1<<20)), fmt.Sprintf("%.2f M", float64(r.ModelNParams)/1e6),
			r.Backends + " " + r.Tier, fmt.Sprint(r.NThreads), r.Test, fmt.Sprintf("%.2f ± %.2f", r.AvgTS, r.StddevTS),
		})
		last := rows[len(rows)-1]
		if r.ModelSize >= 1<<30 {
			last[1] = fmt.Sprintf("%.2f GiB", float64(r.ModelSize)/(1<<30))
		}
		if r.ModelNParams >= 1e9 {
			last[2] = fmt.Sprintf("%.2f B", float64(r.ModelNParams)/1e9)
		}
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	line := func(cells []string, pad string) string {
		var b strings.Builder
		for i, cell := range cells {
			fill := strings.Repeat(pad, width[i]-len([]rune(cell)))
			if i == 0 || i == 3 || pad == "-" { // text to the left, numbers to the right
				fmt.Fprintf(&b, "| %s%s ", cell, fill)
			} else {
				fmt.Fprintf(&b, "| %s%s ", fill, cell)
			}
		}
		return b.String() + "|\n"
	}
	out := line(rows[0], " ")
	rule := make([]string, len(width))
	out += line(rule, "-")
	for _, row := range rows[1:] {
		out += line(row, " ")
	}
	if _, err := io.WriteString(w, out); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// fileTypes names the values of general.file_type as llama-bench does.
var fileTypes = map[uint64]string{
	0: "all F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
	14: "Q4_K - Small", 15: "Q4_K - Medium", 16: "Q5_K - Small", 17: "Q5_K - Medium", 18: "Q6_K", 32: "BF16",
}

// describeType names a model as llama-bench does, such as "qwen2 1.5B Q4_K - Medium".
func describeType(path string) (string, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	parts := []string{}
	for _, key := range []string{"general.architecture", "general.size_label"} {
		if s, err := f.StringOr(key, ""); err == nil && s != "" {
			parts = append(parts, s)
		}
	}
	if n, err := f.UintOr("general.file_type", math.MaxUint64); err == nil && fileTypes[n] != "" {
		parts = append(parts, fileTypes[n])
	}
	return strings.Join(parts, " "), nil
}
