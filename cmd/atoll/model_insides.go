package main

import "github.com/urfave/cli/v2"

func (p *program) modelInsides() []*cli.Command { return nil }
