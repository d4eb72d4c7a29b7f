// SPDX-License-Identifier: MIT

// Nodes as processes.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 60 * time.Second
)

// node is a name of a node, with the processes that have it one after another.
type node struct {
	name   string
	binary string
	more   []string      // flags
	place  *place        // where its processes run; nil for the network of this one
	listen string        // where clients come
	offset time.Duration // of its wall clock
	db     engine
	engine proxies // between it and the engine; none if they cannot be cut
	peers  proxies // between the others and it
	logs   string  // the directory of its logs

	lives   int
	mu      sync.Mutex
	process *process
}

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// writer is the name of the present process.
func (n *node) writer() string { return fmt.Sprintf("%s-%d", n.name, n.lives) }

func (n *node) endpoint() string { return "http://" + n.listen }

// start starts a process. It returns before that is ready.
func (n *node) start() error {
	n.lives++
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(n.binary, "serve", "--engine", n.db.node(n), "--node", n.name, "--listen", n.listen, "--peer", "http://"+n.peers[0].address,
		"--test-clock", "--memory-limit", strconv.Itoa(1<<30))
	p.cmd.Args = append(p.cmd.Args, n.more...)
	p.cmd.Env = []string{"WALL_OFFSET_SECONDS=" + strconv.Itoa(int(n.offset.Seconds()))}
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts as %s\n", time.Now().Format(time.TimeOnly), n.writer())
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := n.place.start(p.cmd); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	n.mu.Lock()
	n.process = p
	n.mu.Unlock()
	return n.peers.set(whole, 0)
}

func (n *node) log() string { return filepath.Join(n.logs, n.name+".log") }

func (n *node) running() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// kill ends the process as a power cut would. Its port refuses connections from then on.
func (n *node) kill() error {
	p := n.running()
	_ = p.cmd.Process.Kill()
	<-p.ended
	return n.peers.set(refused, 0)
}

func (n *node) signal(s syscall.Signal) error { return n.running().cmd.Process.Signal(s) }

// stop ends the process as an operator would.
func (n *node) stop() error {
	p := n.running()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		return fmt.Errorf("node %s did not stop within %v: see %s", n.name, stopLimit, n.log())
	}
	if p.err != nil {
		return fmt.Errorf("node %s ended with %w: see %s", n.name, p.err, n.log())
	}
	return n.peers.set(refused, 0)
}

// ready waits until the node serves.
func (n *node) ready(c *client) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		select {
		case <-n.running().ended:
			return fmt.Errorf("node %s ended at its start with %v: see %s", n.name, n.running().err, n.log())
		default:
		}
		if c.isReady(n) {
			return nil
		}
		if time.Since(began) > startLimit {
			return fmt.Errorf("node %s is not ready after %v: see %s", n.name, startLimit, n.log())
		}
	}
}

// check checks all data with the binary.
func check(binary, engine string) (string, error) {
	var problems bytes.Buffer
	cmd := exec.Command(binary, "check", "--engine", engine)
	cmd.Env = []string{}
	cmd.Stderr = &problems
	out, err := cmd.Output()
	said := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(said, "ok:") {
		return "", errors.Join(fmt.Errorf("mayfly check: %s\n%s", said, &problems), err)
	}
	return said, nil
}
