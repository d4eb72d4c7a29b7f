// SPDX-License-Identifier: MIT

// Package programs starts programs that use SDKs, hears what they say of their calls, and ends
// them. A program tells on each line how it goes, as load does: writes, reads, errors, and the
// last error. It ends when its standard input does.
package programs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const maxLineBytes = 1 << 20

// Program is one that runs.
type Program struct {
	Name string

	process *exec.Cmd
	input   io.Closer
	log     bytes.Buffer
	ended   chan error

	mu    sync.Mutex
	state State
}

// State is what a program has told.
type State struct {
	Writes, Reads, Errors int64
	Last                  string    // the last error
	Failed                time.Time // when the last error was heard of
}

// Start starts a program with more of an environment. Lines that tell no counts go to other.
func Start(name, command string, environment []string, other func(line string)) (*Program, error) {
	p := &Program{Name: name, process: exec.Command("sh", "-c", "exec "+command), ended: make(chan error, 1)}
	p.process.Env = append(os.Environ(), environment...)
	p.process.Stderr = &p.log
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.input, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLineBytes)
		for lines.Scan() {
			if !p.heard(lines.Text()) {
				other(lines.Text())
			}
		}
		p.ended <- errors.Join(lines.Err(), p.process.Wait())
	}()
	return p, nil
}

func (p *Program) heard(line string) bool {
	var now State
	if n, _ := fmt.Sscan(line, &now.Writes, &now.Reads, &now.Errors); n < 3 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now.Last, now.Failed = p.state.Last, p.state.Failed
	if now.Errors > p.state.Errors {
		now.Last, now.Failed = strings.Join(strings.Fields(line)[3:], " "), time.Now()
	}
	p.state = now
	return true
}

// State returns what the program has told last.
func (p *Program) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Progress waits until the program has written and read some more.
func (p *Program) Progress(enough int64, limit time.Duration) error {
	was := p.State()
	return Until(limit, fmt.Sprintf("it does not write and read %d items", enough), func() bool {
		now := p.State()
		return now.Writes >= was.Writes+enough && now.Reads >= was.Reads+enough
	})
}

// NoErrors reports calls that failed.
func (p *Program) NoErrors() error {
	if now := p.State(); now.Errors > 0 {
		return fmt.Errorf("%d calls failed: %s", now.Errors, now.Last)
	}
	return nil
}

// End has the program end, which says whether what it saw was right.
func (p *Program) End(limit time.Duration) error {
	_ = p.input.Close()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(limit):
		return errors.New("it does not end")
	}
}

// Kill ends the program at once.
func (p *Program) Kill() { _ = p.process.Process.Kill() }

// Each calls do for all programs, at the same time.
func Each(all []*Program, do func(p *Program) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, p := range all {
		running.Go(func() {
			if err := do(p); err != nil {
				errs[i] = fmt.Errorf("%s: %w\n%s", p.Name, err, p.log.Bytes())
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Until waits until something holds. The error says what did not.
func Until(limit time.Duration, not string, holds func() bool) error {
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s within %v", not, limit)
		}
	}
	return nil
}

// Environment is what a program needs to know of a server: its endpoint, its key, and the file
// with the certificate to trust.
func Environment(endpoint, key, certificate string) []string {
	return []string{"MAYFLY_ENDPOINT=" + endpoint, "MAYFLY_KEY=" + key, "MAYFLY_CERTIFICATE=" + certificate, "NODE_EXTRA_CA_CERTS=" + certificate}
}
