// Command guest is the module that the sandbox's tests run: argument 1 says what to do.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := do(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(what string, args []string) error {
	switch what {
	case "echo":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	case "args":
		fmt.Printf("%q %q\n", os.Args, os.Environ())
	case "exit":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		os.Exit(n)
	case "cat":
		for _, name := range args {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			os.Stdout.Write(b)
		}
	case "write":
		return os.WriteFile(args[0], []byte(args[1]), 0o666)
	case "append":
		f, err := os.OpenFile(args[0], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(args[1])
		return err
	case "mkdir":
		return os.MkdirAll(args[0], 0o777)
	case "mv":
		return os.Rename(args[0], args[1])
	case "rm":
		return os.RemoveAll(args[0])
	case "ln":
		return os.Link(args[0], args[1])
	case "symlink":
		return os.Symlink(args[0], args[1])
	case "readlink":
		s, err := os.Readlink(args[0])
		fmt.Println(s)
		return err
	case "truncate":
		return os.Truncate(args[0], 0)
	case "touch":
		return os.Chtimes(args[0], time.Unix(1, 0), time.Unix(2, 0))
	case "stat":
		st, err := os.Lstat(args[0])
		if err == nil {
			fmt.Println(st.Mode(), st.Size())
		}
		return err
	case "find":
		var names []string
		err := filepath.WalkDir(args[0], func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			names = append(names, d.Type().String()+" "+strconv.Quote(p))
			return nil
		})
		sort.Strings(names)
		fmt.Println(strings.Join(names, "\n"))
		return err
	case "sleep":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		time.Sleep(d)
	case "spin":
		for {
		}
	case "flood":
		line := []byte(strings.Repeat("x", 1000))
		for range 10000 {
			os.Stdout.Write(line)
		}
	case "grow":
		var keep [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			keep = append(keep, b)
		}
		_ = keep
	case "open":
		n, _ := strconv.Atoi(args[1])
		var keep []*os.File
		for i := range n {
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("file %d: %w", i, err)
			}
			keep = append(keep, f)
		}
		_ = keep
	case "fill":
		n, _ := strconv.Atoi(args[1])
		return os.WriteFile(args[0], make([]byte, n), 0o666)
	case "many":
		n, _ := strconv.Atoi(args[1])
		for i := range n {
			if err := os.WriteFile(filepath.Join(args[0], strconv.Itoa(i)), nil, 0o666); err != nil {
				return err
			}
		}
	case "time":
		fmt.Println(time.Now().UTC().Format(time.RFC3339))
	case "panic":
		panic("boom")
	case "deep":
		fmt.Println(deep(1 << 40))
	case "try":
		// Runs the rest and prints how it ended, for tests that look at the kind of failure.
		err := do(args[0], args[1:])
		switch {
		case err == nil:
			fmt.Println("done")
		case errors.Is(err, fs.ErrNotExist):
			fmt.Println("not there:", err)
		case errors.Is(err, fs.ErrPermission):
			fmt.Println("refused:", err)
		default:
			fmt.Println("failed:", err)
		}
	default:
		return fmt.Errorf("unknown: %s", what)
	}
	return nil
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + n
}
