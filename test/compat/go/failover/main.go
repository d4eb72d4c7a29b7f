// SPDX-License-Identifier: MIT

// Command failover has programs of several SDKs write and read on a cluster of two regions,
// while the region that takes writes is changed, changed back, and then killed. The programs
// must go on by themselves:
//
//   - At a failover no call fails, and writes come to the new region.
//   - When the nodes of the write region are killed, its endpoint refuses connections, and
//     another region takes its place, calls may fail for recoverLimit, and must not fail from
//     then on. When connections are refused, the SDKs in gateway mode read the account anew
//     every five minutes only, so they are not waited for. Java in direct mode must go on.
//   - When the former region's endpoint leads to nodes of another region, they go on too.
//   - No read shows less than what was acknowledged, as the programs check themselves.
//
// Its arguments are the server's binary, the URL of an empty database, and for each program
// NAME=COMMAND. See load for what a program does. test/compat/cluster/run starts it.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/test/compat/go/programs"
)

const (
	key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

	west, east = "West US", "East US"

	// enough is how many writes and reads a program must do in each part.
	enough = 50
	// progressLimit bounds each wait for them, also on a busy machine.
	progressLimit = 90 * time.Second
	// recoverLimit is how long after the failover that follows a kill calls may fail.
	recoverLimit = 60 * time.Second
	// quiet is how long a region gets no writes, or a program no errors, to be done with them.
	quiet = 3 * time.Second
)

// patient are the programs whose SDKs do not look for another region at once when connections
// are refused.
var patient = []string{"Go", "JavaScript", "Java"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: failover BINARY ENGINE NAME=COMMAND…")
	}
	w := &world{binary: args[0], engine: args[1]}
	defer w.close()
	var err error
	if w.scratch, err = os.MkdirTemp("", "failover"); err != nil {
		return err
	}
	if err := w.startNodes(); err != nil {
		return err
	}
	for _, text := range args[2:] {
		name, command, _ := strings.Cut(text, "=")
		if err := w.startProgram(name, command); err != nil {
			return err
		}
	}
	a, c := w.nodes[0], w.nodes[2]

	fmt.Println("the programs begin, and the region", west, "takes writes")
	if err := errors.Join(w.progress(), w.noErrors()); err != nil {
		return err
	}
	fmt.Println("failover to", east)
	// a counts what comes to its region, and what other nodes pass on to it until its
	// partitions have moved.
	if err := errors.Join(w.failover(c, east), w.noWrites(a), w.progress(), w.noErrors()); err != nil {
		return err
	}
	fmt.Println("failover to", west)
	if err := errors.Join(w.failover(c, west), w.progress(), w.noErrors()); err != nil {
		return err
	}
	fmt.Println("kill -9 of the nodes of", west+", whose endpoint refuses connections")
	killed := time.Now()
	w.west.refuse()
	_ = a.process.Process.Kill()
	_ = a.process.Wait()
	time.Sleep(quiet) // an operator needs longer
	fmt.Println("failover to", east)
	if err := errors.Join(w.failover(c, east), w.recovered(killed, func(p *programs.Program) bool { return !slices.Contains(patient, p.Name) })); err != nil {
		return err
	}
	fmt.Println("the endpoint of", west, "leads to nodes of", east)
	if err := errors.Join(w.west.lead(w.nodes[1:]...), w.recovered(killed, func(*programs.Program) bool { return true })); err != nil {
		return err
	}
	return errors.Join(w.end(), w.check())
}

type world struct {
	binary, engine, scratch string
	nodes                   []*node
	programs                []*programs.Program
	// The endpoints of the regions, and that of the account.
	west, east, account *balancer
}

type node struct {
	process *exec.Cmd
	address string
}

// startNodes starts one node in the first region and two in the second.
func (w *world) startNodes() (err error) {
	for _, b := range []**balancer{&w.west, &w.east, &w.account} {
		*b = &balancer{address: "127.0.0.1:0", open: map[net.Conn]bool{}}
		if err := (*b).lead(); err != nil {
			return err
		}
	}
	for _, at := range []struct{ name, region, endpoint string }{{"a", west, w.west.address}, {"b", east, w.east.address}, {"c", east, w.east.address}} {
		if err := w.startNode(at.name, at.region+"=https://"+at.endpoint+"/"); err != nil {
			return fmt.Errorf("start node %s: %w", at.name, err)
		}
	}
	return errors.Join(w.west.lead(w.nodes[:1]...), w.east.lead(w.nodes[1:]...), w.account.lead(w.nodes...))
}

func (w *world) startNode(name, region string) error {
	log, err := os.Create(filepath.Join(w.scratch, name+".log"))
	if err != nil {
		return err
	}
	n := &node{process: exec.Command(w.binary, "serve", "--listen", "127.0.0.1:0", "--engine", w.engine, "--node", name, "--region", region)}
	n.process.Env, n.process.Stderr = []string{}, log
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := n.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.process.Start(); err != nil {
		return err
	}
	w.nodes = append(w.nodes, n)
	lines := bufio.NewReader(out)
	greeting, _ := lines.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if _, err := fmt.Sscanf(greeting, "Mayfly listens on http://%s and", &n.address); err != nil {
		return fmt.Errorf("it did not say where it listens: %q", greeting)
	}
	return nil
}

// balancer passes connections on to the first of its nodes that takes them.
type balancer struct {
	address string

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	nodes    []*node
	open     map[net.Conn]bool
}

// lead has new connections go to nodes.
func (b *balancer) lead(nodes ...*node) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = nodes
	if b.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", b.address)
	if err != nil {
		return err
	}
	b.listener, b.address = l, l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.pass(c)
		}
	}()
	return nil
}

// refuse ends all connections, and takes none any more.
func (b *balancer) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.listener.Close()
	b.listener = nil
	for c := range b.open {
		_ = c.Close()
	}
}

func (b *balancer) pass(c net.Conn) {
	defer c.Close()
	b.mu.Lock()
	nodes := b.nodes
	b.open[c] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.open, c)
		b.mu.Unlock()
	}()
	for _, n := range nodes {
		to, err := net.Dial("tcp", n.address)
		if err != nil {
			continue
		}
		go func() {
			_, _ = io.Copy(to, c)
			_ = to.Close()
		}()
		_, _ = io.Copy(c, to)
		return
	}
}

// startProgram starts a program that prefers the first region, and reads what it says.
func (w *world) startProgram(name, command string) error {
	certificate := filepath.Join(w.scratch, "cert.pem")
	pem, err := exec.Command(w.binary, "cert", "--engine", w.engine).Output()
	if err != nil {
		return fmt.Errorf("mayfly cert: %w", err)
	}
	if err := os.WriteFile(certificate, pem, 0o600); err != nil {
		return err
	}
	// The Java SDK makes names of hosts from that of the account, so it must not be an address.
	_, port, err := net.SplitHostPort(w.account.address)
	if err != nil {
		return err
	}
	environment := append(programs.Environment("https://localhost:"+port+"/", key, certificate), "MAYFLY_REGIONS="+west+","+east)
	p, err := programs.Start(name, command, environment, func(string) {}) // lines of the SDK
	if err == nil {
		w.programs = append(w.programs, p)
	}
	return err
}

// progress waits until all programs have written and read some more.
func (w *world) progress() error {
	return programs.Each(w.programs, func(p *programs.Program) error { return p.Progress(enough, progressLimit) })
}

func (w *world) noErrors() error {
	return programs.Each(w.programs, func(p *programs.Program) error {
		if err := p.NoErrors(); err != nil {
			return err
		}
		now := p.State()
		fmt.Printf("  %s: %d writes, %d reads, no errors\n", p.Name, now.Writes, now.Reads)
		return nil
	})
}

func (w *world) failover(at *node, region string) error {
	out, err := exec.Command(w.binary, "cluster", "--endpoint", "http://"+at.address, "failover", region).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mayfly cluster failover: %w: %s", err, out)
	}
	return nil
}

var upserts = regexp.MustCompile(`(?m)^mayfly_requests_total\{operation="item_upsert",status="20\d"\} (\d+)$`)

// noWrites waits until no writes are answered by a node any more.
func (w *world) noWrites(n *node) error {
	was, since := -1, time.Now()
	return programs.Until(progressLimit, "writes still come to the former region", func() bool {
		r, err := http.NewRequest(http.MethodGet, "http://"+n.address+"/_mayfly/metrics", nil)
		if err != nil {
			return false
		}
		r.Header.Set("Authorization", "Bearer "+key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer a.Body.Close()
		page, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK {
			return false
		}
		sum := 0
		for _, m := range upserts.FindAllSubmatch(page, -1) {
			count, _ := strconv.Atoi(string(m[1]))
			sum += count
		}
		if sum != was {
			was, since = sum, time.Now()
		}
		return was > 0 && time.Since(since) > quiet
	})
}

// recovered waits until programs go on without errors.
func (w *world) recovered(killed time.Time, those func(*programs.Program) bool) error {
	began := time.Now()
	return programs.Each(w.programs, func(p *programs.Program) error {
		if !those(p) {
			return nil
		}
		was := p.State()
		err := programs.Until(recoverLimit, "it does not recover", func() bool {
			now := p.State()
			return now.Writes >= was.Writes+enough && now.Reads >= was.Reads+enough && time.Since(now.Failed) > quiet && time.Since(began) > quiet
		})
		now := p.State()
		if err != nil {
			return fmt.Errorf("%w: it has %d writes, %d reads and %d errors, the last of which is %s", err, now.Writes, now.Reads, now.Errors, now.Last)
		}
		last := "no errors"
		if now.Errors > 0 {
			last = fmt.Sprintf("%d errors, the last %.1f s after the kill: %s", now.Errors, now.Failed.Sub(killed).Seconds(), now.Last)
		}
		fmt.Printf("  %s: %d writes, %d reads, %s\n", p.Name, now.Writes, now.Reads, last)
		return nil
	})
}

// end ends the programs, which say whether a write was lost.
func (w *world) end() error {
	return programs.Each(w.programs, func(p *programs.Program) error { return p.End(progressLimit) })
}

// check stops the nodes that are left and checks all rows.
func (w *world) check() error {
	for _, n := range w.nodes[1:] {
		_ = n.process.Process.Signal(syscall.SIGTERM)
		if err := n.process.Wait(); err != nil {
			return fmt.Errorf("node at %s: %w", n.address, err)
		}
	}
	if out, err := exec.Command(w.binary, "check", "--engine", w.engine).CombinedOutput(); err != nil {
		return fmt.Errorf("mayfly check: %w: %s", err, out)
	}
	return nil
}

// close ends what still runs.
func (w *world) close() {
	for _, p := range w.programs {
		p.Kill()
	}
	for _, n := range w.nodes {
		_ = n.process.Process.Kill()
	}
	_ = os.RemoveAll(w.scratch)
}
