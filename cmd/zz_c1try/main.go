package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"atoll/core/app"
	"atoll/core/event"
)

func main() {
	model := flag.String("m", "", "")
	mode := flag.String("mode", "read-only", "")
	dir := flag.String("C", ".", "")
	cont := flag.Bool("c", false, "")
	nudge := flag.Bool("nudge", false, "")
	ctxN := flag.Int("ctx", 0, "")
	flag.Parse()
	svc, err := app.Open(app.Options{Workspace: *dir, DataDir: "/tmp/c1/data", CacheDir: "/tmp/c1/cache", ModelsDir: "/work/cache/models", Model: *model, Mode: *mode, Nudge: *nudge, Ctx: *ctxN})
	if err != nil {
		panic(err)
	}
	t0 := time.Now()
	start := svc.Start
	if *cont {
		start = svc.Continue
	}
	s, err := start(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "loaded", time.Since(t0))
	sub := s.Subscribe(100)
	go func() {
		for e := range sub.C {
			switch b := e.Body.(type) {
			case event.TextDelta:
				fmt.Print(b.Text)
			case event.ToolCall:
				fmt.Printf("\n>>> %s %s %q\n", b.Name, b.Input, b.Raw)
			case event.ToolResult:
				out := b.Output
				if len(out) > 600 {
					out = out[:600] + "..."
				}
				fmt.Printf("<<< %v %s\n%s\n", b.IsError, out, b.Diff)
			case event.StepFinished:
				fmt.Printf("\n[%s %+v]\n", b.Stop, b.Usage)
			case event.Notice:
				fmt.Println("NOTE", b.Text)
			}
		}
	}()
	t0 = time.Now()
	res := s.Prompt(context.Background(), flag.Arg(0))
	s.Close()
	b, _ := json.Marshal(res)
	fmt.Println(string(b), time.Since(t0))
	svc.Close()
}
