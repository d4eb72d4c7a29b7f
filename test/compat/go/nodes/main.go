// SPDX-License-Identifier: MIT

// Command nodes takes the place of the server's binary for the programs beside: it serves
// with three nodes on a shared storage engine. The address that it prints is that of a node
// that owns nothing, so every request for an item is passed on. A data directory, or memory,
// becomes a store of the engine.
//
//	nodes BINARY URL MAKE serve --listen HOST:PORT --data DIR | --memory …
//	nodes BINARY URL MAKE cert --data DIR
//
// URL is that of a store, with STORE in place of its name. MAKE is a shell command that makes a
// store, with STORE in place of its name too, or nothing. test/compat/cluster/run and
// engine/tikv/run start the storage engines.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit = 30 * time.Second
	greeting   = "Mayfly listens on http://"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nodes:", err)
		os.Exit(1)
	}
}

// world is the binary, and the stores of a storage engine: their URL and the command that
// makes one, with storeName in place of the name.
type world struct{ binary, url, make string }

const storeName = "STORE"

func run(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: nodes BINARY URL MAKE serve|cert …")
	}
	w := world{args[0], args[1], args[2]}
	flags, own := parse(args[4:])
	switch args[3] {
	case "serve":
		return w.serve(flags, own)
	case "cert":
		cert := exec.Command(w.binary, "cert", "--engine", of(w.url, store(own["data"])))
		cert.Stdout, cert.Stderr = os.Stdout, os.Stderr
		return cert.Run()
	}
	return fmt.Errorf("there is no command %q here", args[3])
}

// parse takes out of the flags what a cluster has in another way. The regions are joined by
// newlines.
func parse(args []string) (flags []string, own map[string]string) {
	own = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch name {
		case "memory", "sync":
		case "data", "listen", "region":
			if !joined {
				i++
				value = args[i]
			}
			if name == "region" && own[name] != "" {
				value = own[name] + "\n" + value
			}
			own[name] = value
		default:
			flags = append(flags, args[i])
		}
	}
	return flags, own
}

// store returns the name of the store for a data directory, or of one for a server in memory.
func store(dir string) string {
	if dir == "" {
		dir = fmt.Sprint(os.Getpid(), time.Now())
	}
	return fmt.Sprintf("s%x", sha256.Sum256([]byte(dir)))[:24]
}

// of returns a text for the store with a name.
func of(text, name string) string { return strings.ReplaceAll(text, storeName, name) }

func (w world) serve(flags []string, own map[string]string) error {
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name := store(own["data"])
	create := exec.Command("/bin/sh", "-c", of(w.make, name))
	create.Stderr = os.Stderr
	if err := create.Run(); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	regions := []string{""}
	if own["region"] != "" {
		regions = strings.Split(own["region"], "\n")
	}
	if len(regions) > 1 && !strings.Contains(regions[0], "=") { // two regions of a cluster have endpoints
		port, err := freePort()
		if err != nil {
			return err
		}
		own["listen"] = fmt.Sprintf("127.0.0.1:%d", port)
		regions = []string{fmt.Sprintf("%s=http://localhost:%d/", regions[0], port), fmt.Sprintf("%s=http://127.0.0.1:%d/", regions[1], port)}
	}
	var nodes []*node
	defer func() { // they end together, so that none takes over from another
		for _, n := range nodes {
			_ = n.process.Process.Signal(syscall.SIGTERM)
		}
		for _, n := range nodes {
			_ = n.process.Wait()
		}
	}()
	for i, node := range []string{"a", "b", "entry"} {
		listen, region := "127.0.0.1:0", regions[0]
		if node == "entry" {
			listen, region = own["listen"], regions[len(regions)-1]
		}
		all := append([]string{"serve", "--engine", of(w.url, name), "--node", node, "--listen", listen, "--connections", "24"}, flags...)
		if region != "" {
			all = append(all, "--region", region)
		}
		n, err := start(w.binary, all)
		if err != nil {
			return fmt.Errorf("start node %d: %w", i, err)
		}
		nodes = append(nodes, n)
	}
	entry := nodes[len(nodes)-1]
	drain := exec.Command(w.binary, "cluster", "--endpoint", "http://"+entry.address, "drain", "entry")
	if out, err := drain.CombinedOutput(); err != nil {
		return fmt.Errorf("drain the node that clients use: %w: %s", err, out)
	}
	fmt.Print(entry.greeting)
	<-stopped.Done()
	var failed error
	for i := len(nodes) - 1; i >= 0; i-- { // the last to stop has nobody to hand over to
		_ = nodes[i].process.Process.Signal(syscall.SIGTERM)
		failed = errors.Join(failed, nodes[i].process.Wait())
	}
	nodes = nil
	return failed
}

// freePort returns a port that was free.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// node is a running server.
type node struct {
	process           *exec.Cmd
	address, greeting string
}

// start starts a node, which ends with this process in whatever way that ends.
func start(binary string, args []string) (*node, error) {
	n := &node{process: exec.Command(binary, args...)}
	n.process.Env = []string{}
	n.process.Stderr = os.Stderr
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := n.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	greeted := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		greeted <- line
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case n.greeting = <-greeted:
	case <-time.After(startLimit):
	}
	rest, ok := strings.CutPrefix(n.greeting, greeting)
	if !ok {
		_ = n.process.Process.Kill()
		_ = n.process.Wait()
		return nil, fmt.Errorf("it did not say where it listens: %q", n.greeting)
	}
	n.address, _, _ = strings.Cut(rest, " ")
	return n, nil
}
