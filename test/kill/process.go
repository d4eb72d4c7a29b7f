// SPDX-License-Identifier: MIT

// The server as a process.

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 20 * time.Second
	stopLimit  = 20 * time.Second
)

// server is a running server.
type server struct {
	endpoint string
	cmd      *exec.Cmd
	log      bytes.Buffer
	ended    chan struct{} // closed when err is set
	err      error
	killing  sync.Once
}

var listens = regexp.MustCompile(`^Mayfly listens on (http://\S+) and https://`)

// start starts the binary on the directory and a free port.
func start(binary, data string) (*server, error) {
	s := &server{cmd: exec.Command(binary, "serve", "--data", data, "--listen", "127.0.0.1:0"), ended: make(chan struct{})}
	s.cmd.Env = []string{} // without any MAYFLY_ variables
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	endpoint := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				endpoint <- m[1]
			}
		}
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	select {
	case s.endpoint = <-endpoint:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server ended at its start: %w\n%s", s.err, &s.log)
	case <-time.After(startLimit):
		return nil, fmt.Errorf("the server did not start within %v\n%s", startLimit, s.killed())
	}
}

// kill ends the server as a power cut would end the process.
func (s *server) kill() {
	s.killing.Do(func() { _ = s.cmd.Process.Kill() })
	<-s.ended
}

// killed kills the server and returns its log.
func (s *server) killed() string {
	s.kill()
	return s.log.String()
}

// stop ends the server as an operator would.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w\n%s", err, s.killed())
	}
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		return fmt.Errorf("the server did not stop within %v\n%s", stopLimit, s.killed())
	}
	if s.err != nil {
		return fmt.Errorf("the server ended with %w\n%s", s.err, &s.log)
	}
	return nil
}

// check checks the data with the binary, and returns its output.
func check(binary, data string) (string, error) {
	var problems bytes.Buffer
	cmd := exec.Command(binary, "check", "--data", data)
	cmd.Env = []string{}
	cmd.Stderr = &problems
	out, err := cmd.Output()
	said := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(said, "ok:") {
		return "", errors.Join(fmt.Errorf("mayfly check: %s\n%s", said, &problems), err)
	}
	return said, nil
}
