// SPDX-License-Identifier: MIT

// Command mayfly is the server and its tools: flags, environment and signals.
// What it does is in package mayfly.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mayflydb/mayfly"
)

type commands struct {
	Serve serveCommand `cmd:"" default:"withargs" help:"Serve clients (the default)."`
}

type serveCommand struct {
	Listen string `default:"127.0.0.1:8081" env:"MAYFLY_LISTEN" help:"Address to listen on."`
}

// shutdownLimit is how long requests under way may take to end at a stop.
const shutdownLimit = 20 * time.Second

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("mayfly"), kong.Description("A document database that forgets on time."))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "mayfly:", err)
		os.Exit(1)
	}
}

// Run serves until it is told to stop.
func (c *serveCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := mayfly.Open(mayfly.Options{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	fmt.Printf("mayfly listens on http://%s\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	return s.Shutdown(ctx)
}
