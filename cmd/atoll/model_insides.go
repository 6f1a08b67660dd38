package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"atoll/core/inspect"
	"atoll/core/modelstore"
)

// maxInput is the longest text that is read as a whole, in bytes.
const maxInput = 256 << 20

// modelInsides are the commands that open a model: for people who debug one,
// and for conformance runs.
func (p *program) modelInsides() []*cli.Command {
	jsonl := &cli.BoolFlag{Name: "jsonl", Usage: "one JSON object a line in, one out, in order"}
	return []*cli.Command{
		{
			Name: "inspect", Usage: "show metadata, tensors and the memory plan", ArgsUsage: "MODEL",
			Description: "MODEL is a name of \"atoll model list\" or a GGUF file.",
			Flags: []cli.Flag{
				jsonFlag(),
				&cli.IntFlag{Name: "ctx", Usage: "plan for a window of `N` tokens (0: the default)"},
				&cli.BoolFlag{Name: "tensors", Usage: "list each tensor"},
			},
			Action: p.modelInspect,
		},
		{
			Name: "tokenize", Usage: "text to token ids", ArgsUsage: "[FILE]",
			Description: "--jsonl: {\"text\",\"add_special\",\"parse_special\"} -> {\"ids\"}. Without FILE standard input is read.\n\n" +
				"Example: echo \"Hello, world\" | atoll model tokenize -m smollm2-135m",
			Flags: []cli.Flag{
				modelFlag(), jsonFlag(), jsonl,
				&cli.BoolFlag{Name: "special", Usage: "the text of a control token becomes that token"},
				&cli.BoolFlag{Name: "add-special", Usage: "add BOS and EOS as the vocabulary says"},
				&cli.BoolFlag{Name: "ids", Usage: "print only the ids, in one line"},
			},
			Action: p.modelTokenize,
		},
		{
			Name: "detokenize", Usage: "token ids to text", ArgsUsage: "[ID...]",
			Description: "--jsonl: {\"ids\"} -> {\"text\"}.",
			Flags:       []cli.Flag{modelFlag(), jsonFlag(), jsonl},
			Action:      p.modelDetokenize,
		},
		{
			Name: "render", Usage: "render a chat template",
			Description: "--jsonl: {\"template\",\"context\",\"now\"} -> {\"text\"}; template may be left out with -m.",
			Flags: []cli.Flag{
				modelFlag(), jsonFlag(), jsonl,
				&cli.StringFlag{Name: "template", Usage: "the template in `FILE` instead of the model's"},
				&cli.StringFlag{Name: "context", Usage: "the template's variables, a JSON object in `FILE` (-: standard input)"},
				&cli.StringFlag{Name: "now", Usage: "the `TIME` that strftime_now formats, such as 2026-01-02T03:04:05"},
			},
			Action: p.modelRender,
		},
		{
			Name: "parse", Usage: "take a model's raw output apart: content, reasoning, calls", ArgsUsage: "[FILE]",
			Description: "--jsonl: {\"family\",\"raw\",\"tools\"} -> {\"content\",\"reasoning\",\"calls\"}.",
			Flags: []cli.Flag{
				jsonFlag(), jsonl,
				&cli.StringFlag{Name: "family", Usage: "`FORM` of the calls", Value: "hermes"},
				&cli.StringFlag{Name: "tools", Usage: "the offered tools, a JSON array in `FILE`"},
			},
			Action: p.modelParse,
		},
		{
			Name: "perplexity", Usage: "perplexity of a text, as llama.cpp's tool computes it", ArgsUsage: "[FILE]",
			Flags: []cli.Flag{
				modelFlag(), threadsFlag(), jsonFlag(),
				&cli.IntFlag{Name: "ctx", Aliases: []string{"c"}, Usage: "windows of `N` tokens", Value: 512},
			},
			Action: p.modelPerplexity,
		},
		{
			Name: "logits", Usage: "most likely next tokens at each position of a text, as JSON lines", ArgsUsage: "[FILE]",
			Flags: []cli.Flag{
				modelFlag(), threadsFlag(), jsonFlag(),
				&cli.IntFlag{Name: "top", Usage: "`N` tokens at each position", Value: 10},
				&cli.BoolFlag{Name: "special", Usage: "the text of a control token becomes that token"},
			},
			Action: p.modelLogits,
		},
	}
}

// modelPath resolves -m (or ref) to a file.
func (p *program) modelPath(c *cli.Context, ref string) (string, error) {
	if ref == "" {
		ref = c.String("model")
	}
	if ref == "" {
		ref = p.getenv("ATOLL_MODEL")
	}
	if strings.HasPrefix(ref, "script:") {
		return "", usagef("%s has no weights; give a GGUF file with -m", ref)
	}
	store, err := p.models()
	if err != nil {
		return "", err
	}
	path, err := store.Resolve(ref)
	return path, withCode(exitModel, err)
}

// modelError gives a fault of the model file its exit code.
func modelError(err error) error {
	if err != nil && inspect.IsModelFault(err) {
		return withCode(exitModel, err)
	}
	return err
}

// input reads the file that an argument names, or standard input.
func (p *program) input(c *cli.Context) ([]byte, error) {
	if err := arguments(c, 0, 1, "[FILE]"); err != nil {
		return nil, err
	}
	return p.readFile(c.Args().First())
}

// readFile reads a file; "" and "-" are standard input.
func (p *program) readFile(name string) ([]byte, error) {
	r, err := p.source(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readWhole(r, "input", maxInput)
}

// source opens a file; "" and "-" are standard input.
func (p *program) source(name string) (io.ReadCloser, error) {
	if name == "" || name == "-" {
		return io.NopCloser(p.stdin), nil
	}
	f, err := os.Open(name)
	return f, withCode(exitUsage, err)
}

// readWhole reads at most limit bytes; what they are is for messages.
func readWhole(r io.Reader, what string, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, usagef("read %s: %w", what, err)
	}
	if len(b) > limit {
		return nil, usagef("read %s: longer than %d bytes", what, limit)
	}
	return b, nil
}

// lines answers JSON lines.
func (p *program) lines(c *cli.Context, handle func(line []byte) (any, error)) error {
	if err := arguments(c, 0, 1, "[FILE]"); err != nil {
		return err
	}
	r, err := p.source(c.Args().First())
	if err != nil {
		return err
	}
	defer r.Close()
	return inspect.Lines(c.Context, r, p.stdout, handle)
}

func (p *program) modelTokenize(c *cli.Context) error {
	path, err := p.modelPath(c, "")
	if err != nil {
		return err
	}
	v, err := inspect.OpenVocabulary(path)
	if err != nil {
		return modelError(err)
	}
	if c.Bool("jsonl") {
		return p.lines(c, v.TokenizeLine)
	}
	text, err := p.input(c)
	if err != nil {
		return err
	}
	res := v.Tokenize(inspect.TokenizeRequest{Text: string(text), AddSpecial: c.Bool("add-special"), ParseSpecial: c.Bool("special")})
	switch {
	case c.Bool("json"):
		return p.writeJSON(res)
	case c.Bool("ids"):
		words := make([]string, len(res.IDs))
		for i, id := range res.IDs {
			words[i] = strconv.Itoa(int(id))
		}
		_, err := fmt.Fprintln(p.stdout, strings.Join(words, " "))
		return err
	}
	var b bytes.Buffer
	for _, id := range res.IDs {
		fmt.Fprintf(&b, "%d\t%q\n", id, v.Piece(id))
	}
	_, err = p.stdout.Write(b.Bytes())
	return err
}

func (p *program) modelDetokenize(c *cli.Context) error {
	path, err := p.modelPath(c, "")
	if err != nil {
		return err
	}
	v, err := inspect.OpenVocabulary(path)
	if err != nil {
		return modelError(err)
	}
	if c.Bool("jsonl") {
		return p.lines(c, v.DetokenizeLine)
	}
	words := c.Args().Slice()
	if len(words) == 0 {
		text, err := p.readFile("")
		if err != nil {
			return err
		}
		words = strings.Fields(string(text))
	}
	var req inspect.DetokenizeRequest
	for _, w := range words {
		id, err := strconv.ParseInt(w, 10, 32)
		if err != nil {
			return usagef("detokenize: %q is not a token id", w)
		}
		req.IDs = append(req.IDs, int32(id))
	}
	res, err := v.Detokenize(req)
	if err != nil {
		return withCode(exitUsage, err)
	}
	if c.Bool("json") {
		return p.writeJSON(res)
	}
	_, err = fmt.Fprintln(p.screen, res.Text)
	return err
}

func (p *program) modelRender(c *cli.Context) error {
	path := ""
	if c.IsSet("model") || !c.IsSet("template") && !c.Bool("jsonl") {
		var err error
		if path, err = p.modelPath(c, ""); err != nil {
			return err
		}
	}
	r, err := inspect.NewRenderer(path)
	if err != nil {
		return modelError(err)
	}
	if c.Bool("jsonl") {
		return p.lines(c, r.RenderLine)
	}
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	if !c.IsSet("context") {
		return usagef("render: --context FILE is missing")
	}
	req := inspect.RenderRequest{Now: c.String("now")}
	if name := c.String("template"); name != "" {
		b, err := p.readFile(name)
		if err != nil {
			return err
		}
		text := string(b)
		req.Template = &text
	}
	b, err := p.readFile(c.String("context"))
	if err != nil {
		return err
	}
	if !json.Valid(b) {
		return usagef("render: --context %s is not JSON", c.String("context"))
	}
	req.Context = b
	res, err := r.Render(req)
	if err != nil {
		return modelError(err)
	}
	if c.Bool("json") {
		return p.writeJSON(res)
	}
	_, err = io.WriteString(p.screen, res.Text)
	return err
}

func (p *program) modelParse(c *cli.Context) error {
	if c.Bool("jsonl") {
		return p.lines(c, inspect.ParseLine)
	}
	raw, err := p.input(c)
	if err != nil {
		return err
	}
	req := inspect.ParseRequest{Family: c.String("family"), Raw: string(raw)}
	if name := c.String("tools"); name != "" {
		if req.Tools, err = p.readFile(name); err != nil {
			return err
		}
		if !json.Valid(req.Tools) {
			return usagef("parse: --tools %s is not JSON", name)
		}
	}
	res, err := inspect.Parse(req)
	if err != nil {
		return withCode(exitUsage, err)
	}
	return p.writeJSON(res)
}

func (p *program) modelPerplexity(c *cli.Context) error {
	path, err := p.modelPath(c, "")
	if err != nil {
		return err
	}
	text, err := p.input(c)
	if err != nil {
		return err
	}
	res, err := inspect.Perplexity(c.Context, p.inspectOptions(c, path), string(text), c.Int("ctx"), func(done, total int, perplexity float64) {
		if p.stderrTTY {
			fmt.Fprintf(p.stderr, "\rwindow %d of %d: %.4f\x1b[K", done, total, perplexity)
			if done == total {
				fmt.Fprint(p.stderr, "\r\x1b[K")
			}
		}
	})
	if err != nil {
		return p.computeError(c.Context, err)
	}
	if c.Bool("json") {
		return p.writeJSON(res)
	}
	_, err = fmt.Fprintf(p.stdout, "perplexity %.4f +/- %.4f (%d windows of %d tokens, %s, %d threads)\n", res.Perplexity, res.StdErr, res.Windows, res.Context, res.Tier, res.Threads)
	return err
}

func (p *program) modelLogits(c *cli.Context) error {
	path, err := p.modelPath(c, "")
	if err != nil {
		return err
	}
	text, err := p.input(c)
	if err != nil {
		return err
	}
	err = inspect.Logits(c.Context, p.inspectOptions(c, path), string(text), c.Bool("special"), c.Int("top"), func(row inspect.PositionScores) error {
		return p.writeJSON(row)
	})
	return p.computeError(c.Context, err)
}

func (p *program) inspectOptions(c *cli.Context, path string) inspect.Options {
	return inspect.Options{Path: path, Threads: c.Int("threads"), CPU: p.getenv("ATOLL_CPU")}
}

// computeError prefers the reason why the program was stopped.
func (p *program) computeError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return modelError(err)
}

func (p *program) modelInspect(c *cli.Context) error {
	if err := arguments(c, 1, 1, "MODEL"); err != nil {
		return err
	}
	path, err := p.modelPath(c, c.Args().First())
	if err != nil {
		return err
	}
	f, err := inspect.Describe(path, c.Int("ctx"))
	if err != nil {
		return modelError(err)
	}
	if c.Bool("json") {
		return p.writeJSON(f)
	}
	w := tabwriter.NewWriter(p.screen, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "file\t%s\n", visible(f.Path))
	fmt.Fprintf(w, "size\t%s, GGUF version %d\n", modelstore.FormatBytes(f.Size), f.Version)
	if m := f.Model; m != nil {
		fmt.Fprintf(w, "model\t%s, %d layers, %d wide, %d heads (%d for keys and values), %.1f million parameters\n", visible(m.Architecture), m.Layers, m.Embed, m.Heads, m.KVHeads, float64(m.Parameters)/1e6)
		fmt.Fprintf(w, "context\t%d tokens trained\n", m.TrainedContext)
		fmt.Fprintf(w, "memory\t%s for %d tokens: weights %s, cache %s, scratch %s\n", modelstore.FormatBytes(m.Memory.Total), m.Memory.Context,
			modelstore.FormatBytes(m.Memory.Weights), modelstore.FormatBytes(m.Memory.KV), modelstore.FormatBytes(m.Memory.Scratch))
	}
	if t := f.Tokenizer; t != nil {
		fmt.Fprintf(w, "tokenizer\t%s, %d tokens, ends with %s\n", visible(t.Pre), t.Tokens, visible(strings.Join(t.EOG, " ")))
	}
	if ch := f.Chat; ch != nil {
		fmt.Fprintf(w, "chat\t%s, tools in the template: %v\n", visible(ch.Family), ch.Tools)
	}
	for _, s := range f.Formats {
		fmt.Fprintf(w, "tensors\t%d in %s, %s\n", s.Tensors, visible(s.Format), modelstore.FormatBytes(int64(s.Bytes)))
	}
	for _, s := range f.Problems {
		fmt.Fprintf(w, "problem\t%s\n", visible(s))
	}
	fmt.Fprintln(w)
	for _, kv := range f.Metadata {
		fmt.Fprintf(w, "%s\t%s\t%s\n", visible(kv.Key), visible(kv.Type), visible(shorten(kv.Value, 120)))
	}
	if c.Bool("tensors") {
		fmt.Fprintln(w)
		for _, t := range f.Tensors {
			fmt.Fprintf(w, "%s\t%s\t%v\t%d\n", visible(t.Name), visible(t.Format), t.Shape, t.Bytes)
		}
	}
	return w.Flush()
}
