// SPDX-License-Identifier: MIT

// Nodes that are processes: the program itself, as users start it.

package scripttest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// overProcesses is nodes of a cluster that are processes, two of which may own partitions. No
// flag starts a node with purge paused, so it is paused when they are there.
type overProcesses struct{ overNodes }

func (p *overProcesses) start() error {
	if err := p.overNodes.start(); err != nil {
		return err
	}
	if p.setup.purge {
		return nil
	}
	return p.ask("POST", "/_mayfly/ttl/pause", nil, nil)
}

// crash kills the nodes that may own partitions, as the system does that has no memory left,
// and starts them again. The node that clients use goes on.
func (p *overProcesses) crash() error {
	for _, name := range p.owners {
		p.running[name].(*process).kill()
		delete(p.running, name)
	}
	if err := p.startAll(p.setup.account().Regions[0], p.owners...); err != nil {
		return err
	}
	return p.await()
}

// await waits until the node that clients use knows where the others are: it takes over from
// one that it does not reach.
func (p *overProcesses) await() error {
	for deadline := time.Now().Add(patience); ; time.Sleep(awaitPoll) {
		s, err := p.status()
		if err != nil {
			return err
		}
		known := 0
		for _, n := range s.Nodes {
			if n.Answers && n.Address == "https://"+p.running[n.Name].address() {
				known++
			}
		}
		if known == len(p.running) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v not all nodes are known: %+v", patience, s)
		}
	}
}

// awaitPoll is how often await asks.
const awaitPoll = 10 * time.Millisecond

// buildProgram builds the program for a test and those below it.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mayfly")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/mayflydb/mayfly/cmd/mayfly").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// connectionsOfNode are few, since PostgreSQL serves the nodes of all scripts that run.
const connectionsOfNode = 12

// launchProgram starts the program on a PostgreSQL store. It has no flag for the time limit of
// procedures, so that is the usual one: scripts that set a lower one wait longer.
func launchProgram(program, url string) func(*setup, string, string) (node, error) {
	return func(s *setup, name, region string) (node, error) {
		account := s.account()
		args := []string{
			"serve", "--engine=" + url, "--node=" + name, "--listen=127.0.0.1:0", "--connections=" + strconv.Itoa(connectionsOfNode),
			"--test-clock", "--log-level=error", "--allow-host=" + allowedHosts, "--region=" + region, "--consistency=" + account.Consistency,
			"--multi-write=" + strconv.FormatBool(account.MultiWrite), "--container-quota=" + strconv.FormatInt(s.containerQuota, 10),
			"--change-feed-retention=" + s.retention.String(),
		}
		if s.partitionKeyQuota > 0 {
			args = append(args, "--partition-key-quota="+strconv.FormatInt(s.partitionKeyQuota, 10))
		}
		if s.enforce {
			args = append(args, "--throughput="+mayfly.ThroughputEnforce)
		}
		return launchProcess(program, args...)
	}
}

// process is a node that is a process.
type process struct {
	cmd    *exec.Cmd
	at     string
	ended  chan error
	stderr bytes.Buffer // to be read only after it has ended
}

// launchProcess starts a process and waits until it says where it listens.
func launchProcess(program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	p.cmd.Env = []string{} // no variables that it takes for flags
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = mortal()
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	greeted := make(chan struct{})
	go func() {
		lines := bufio.NewReader(stdout)
		if line, err := lines.ReadString('\n'); err == nil {
			if _, err := fmt.Sscanf(line, "Mayfly listens on http://%s", &p.at); err == nil {
				close(greeted)
			}
		}
		_, _ = io.Copy(io.Discard, lines)
		p.ended <- p.cmd.Wait()
	}()
	select {
	case <-greeted:
		return p, nil
	case err := <-p.ended:
		return nil, fmt.Errorf("%q has ended: %v: %s", p.cmd.Args, err, &p.stderr)
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("%q says nothing: %s", p.cmd.Args, &p.stderr)
	}
}

func (p *process) address() string { return p.at }

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		if err != nil || p.stderr.Len() > 0 {
			return fmt.Errorf("it ends with %v: %s", err, &p.stderr)
		}
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("it goes on: %s", &p.stderr)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
