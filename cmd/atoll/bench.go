package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"atoll/core/inspect"
)

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure the speed of a model, with the tests of llama-bench",
		Description: "Numbers may be lists: -p 128,512. pp512 evaluates 512 tokens in batches, tg128 makes 128 tokens one by one.\n\n" +
			"Examples:\n   atoll bench -p 128,512 -n 32 -r 3\n   atoll bench -m smollm2-135m -d 0,512 -o json",
		Flags: []cli.Flag{
			modelFlag(), threadsFlag(),
			&cli.StringFlag{Name: "n-prompt", Aliases: []string{"p"}, Usage: "evaluate `N` tokens; 0: leave the test out", Value: "512"},
			&cli.StringFlag{Name: "n-gen", Aliases: []string{"n"}, Usage: "make `N` tokens; 0: leave the test out", Value: "128"},
			&cli.StringFlag{Name: "n-depth", Aliases: []string{"d"}, Usage: "with `N` tokens in the cache", Value: "0"},
			&cli.IntFlag{Name: "repetitions", Aliases: []string{"r"}, Usage: "time each test `N` times", Value: 5},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` is json or md", Value: "md"},
			&cli.BoolFlag{Name: "no-warmup", Usage: "leave out the run before each test that is not timed"},
			jsonFlag(),
		},
		Action: p.bench,
	}
}

func (p *program) bench(c *cli.Context) error {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	format := c.String("output")
	if c.Bool("json") {
		format = "json"
	}
	if format != "json" && format != "md" {
		return usagef("bench: -o %q: there are json and md", format)
	}
	o := inspect.BenchOptions{Repetitions: c.Int("repetitions"), NoWarmup: c.Bool("no-warmup")}
	if o.Repetitions < 1 {
		return usagef("bench: -r must be at least 1")
	}
	var err error
	for _, f := range []struct {
		flag string
		to   *[]int
	}{{"n-prompt", &o.Prompt}, {"n-gen", &o.Gen}, {"n-depth", &o.Depth}} {
		if *f.to, err = parseCounts(c.String(f.flag)); err != nil {
			return usagef("bench: --%s: %w", f.flag, err)
		}
	}
	path, err := p.modelPath(c, "")
	if err != nil {
		return err
	}
	o.Options = p.inspectOptions(c, path)
	o.Progress = func(test string, run, runs int) {
		if p.stderrTTY {
			fmt.Fprintf(p.stderr, "\r%s, run %d of %d\x1b[K", test, run, runs)
		}
	}
	results, err := inspect.Bench(c.Context, o)
	if p.stderrTTY {
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
	if err != nil {
		return p.computeError(c.Context, err)
	}
	if format == "json" {
		return p.writeJSON(results)
	}
	return inspect.WriteBenchTable(p.screen, results)
}

// parseCounts reads a list of numbers separated by commas.
func parseCounts(s string) ([]int, error) {
	var out []int
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n > 1<<24 {
			return nil, fmt.Errorf("%q is not a number of tokens", word)
		}
		out = append(out, n)
	}
	return out, nil
}
