// SPDX-License-Identifier: MIT

// Command split has programs of several SDKs use one container while its partitions are split,
// and the partitions that were made so, again. The programs keep their clients, and must go on
// by themselves:
//
//   - No call fails.
//   - Reads and queries show what was acknowledged, each item once, as the programs check.
//   - At the end each item is there as it was acknowledged last, and no other.
//   - Programs that follow the change feed are told each item as it is at the end, and never an
//     older version after a newer one. Those that go by a continuation are told nothing twice.
//
// With PostgreSQL there is a second node. Some partitions move to it, and all at once after the
// last split, so that clients in direct mode look for the addresses of ranges that are gone.
//
// Its arguments are the server's binary, the flag that says where its data is, NAME=COMMAND for
// each program, follow:NAME=COMMAND for each that follows the feed by a continuation, and
// process:NAME=COMMAND for each that has a change feed processor. See load/mixed.go for what a
// program does. One that follows prints
//
//	change ID VERSION
//
// for each change that it is told. test/compat/split/run starts it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/mayflydb/mayfly/test/compat/go/programs"
)

const (
	key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

	// enough is how many rounds each program must do before the first split, and after each.
	enough = 8
	// end is how many ranges there are at the end.
	end = 6
	// limit bounds each wait, also on a busy machine.
	limit = 3 * time.Minute
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "split:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: split BINARY --data=DIR|--engine=URL [follow:|process:]NAME=COMMAND…")
	}
	w := &world{binary: args[0], store: args[1], acknowledged: map[string]int{}}
	defer w.close()
	var err error
	if w.scratch, err = os.MkdirTemp("", "split"); err != nil {
		return err
	}
	nodes := [][]string{nil}
	if strings.HasPrefix(w.store, "--engine=") {
		nodes = [][]string{{"--node", "a"}, {"--node", "b"}}
	}
	for _, flags := range nodes {
		if err := w.startServer(flags); err != nil {
			return err
		}
	}
	if err := errors.Join(w.export(), w.create()); err != nil {
		return err
	}
	for _, text := range args[2:] {
		name, command, _ := strings.Cut(text, "=")
		if err := w.startProgram(name, command); err != nil {
			return err
		}
	}
	if err := w.goOn("the programs begin"); err != nil {
		return err
	}
	// Each range is split after the one that it was made from.
	for ranges := []string{"0"}; len(ranges) < end; {
		split, err := w.split(ranges[0])
		if err != nil {
			return err
		}
		ranges = append(ranges[1:], split...)
		if len(w.servers) > 1 && len(ranges) == end {
			if out, err := exec.Command(w.binary, "cluster", "--endpoint", "http://"+w.address, "drain", "a").CombinedOutput(); err != nil {
				return fmt.Errorf("mayfly cluster drain: %w: %s", err, out)
			}
		}
		if err := w.goOn(fmt.Sprintf("split into %s and %s", split[0], split[1])); err != nil {
			return err
		}
	}
	if err := w.end(w.loads); err != nil {
		return err
	}
	if err := errors.Join(w.checkItems(), w.checkFeeds()); err != nil {
		return err
	}
	return errors.Join(w.end(w.feeds), w.check())
}

type world struct {
	binary, store, scratch string
	servers                []*exec.Cmd
	address                string // of the first
	loads, feeds           []*programs.Program
	told                   []*feed

	mu           sync.Mutex
	acknowledged map[string]int // the version of each item
}

// startServer starts a server, or a node of a cluster.
func (w *world) startServer(flags []string) error {
	log, err := os.CreateTemp(w.scratch, "server")
	if err != nil {
		return err
	}
	server := exec.Command(w.binary, append([]string{"serve", "--listen", "127.0.0.1:0", w.store}, flags...)...)
	server.Env, server.Stderr = []string{}, log
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	w.servers = append(w.servers, server)
	lines := bufio.NewReader(out)
	greeting, _ := lines.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	var address string
	if _, err := fmt.Sscanf(greeting, "Mayfly listens on http://%s and", &address); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the server did not say where it listens: %q\n%s", greeting, text)
	}
	if w.address == "" {
		w.address = address
	}
	return nil
}

// export exports the certificate to trust.
func (w *world) export() error {
	pem, err := exec.Command(w.binary, "cert", w.store).Output()
	if err != nil {
		return fmt.Errorf("mayfly cert: %w", err)
	}
	return os.WriteFile(w.certificate(), pem, 0o600)
}

func (w *world) certificate() string { return filepath.Join(w.scratch, "cert.pem") }

// client returns a client that has seen no split.
func (w *world) client() (*azcosmos.Client, error) {
	return azcosmos.NewClientFromConnectionString("AccountEndpoint=http://"+w.address+"/;AccountKey="+key+";", nil)
}

// create creates the container of all programs, which has one partition, and that of leases.
func (w *world) create() error {
	client, err := w.client()
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "split"}, nil); err != nil {
		return err
	}
	database, err := client.NewDatabase("split")
	if err != nil {
		return err
	}
	for id, path := range map[string]string{"c": "/pk", "leases": "/id"} {
		p := azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{path}, Version: 2}}
		if _, err := database.CreateContainer(ctx, p, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startProgram(name, command string) error {
	// The Java SDK makes names of hosts from that of the account, so it must not be an address.
	_, port, err := net.SplitHostPort(w.address)
	if err != nil {
		return err
	}
	list, heard := &w.loads, w.heard
	if kind, of, ok := strings.Cut(name, ":"); ok {
		f := &feed{name: of, repeats: kind == "process", last: map[string]int{}}
		w.told = append(w.told, f)
		name, list, heard = of, &w.feeds, f.heard
	}
	p, err := programs.Start(name, command, programs.Environment("https://localhost:"+port+"/", key, w.certificate()), heard)
	if err == nil {
		*list = append(*list, p)
	}
	return err
}

// heard notes what a program says was acknowledged.
func (w *world) heard(line string) {
	text, ok := strings.CutPrefix(line, "acknowledged ")
	var items map[string]int
	if !ok || json.Unmarshal([]byte(text), &items) != nil {
		return // a line of the SDK
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.acknowledged, items)
}

// goOn waits until all programs have done some more, without errors.
func (w *world) goOn(what string) error {
	began := time.Now()
	var slowest atomic.Value
	err := programs.Each(w.loads, func(p *programs.Program) error {
		err := errors.Join(p.Progress(enough, limit), p.NoErrors())
		slowest.Store(p.Name)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Printf("  %s: all go on within %.1f s, the last of them %s\n", what, time.Since(began).Seconds(), slowest.Load())
	return programs.Each(w.feeds, (*programs.Program).NoErrors)
}

var into = regexp.MustCompile(`split range \d+ into (\d+) and (\d+)`)

// split splits a range, and returns those that were made from it.
func (w *world) split(id string) ([]string, error) {
	out, err := exec.Command(w.binary, "cluster", "--endpoint", "http://"+w.address, "split", "split", "c", id).CombinedOutput()
	made := into.FindSubmatch(out)
	if err != nil || made == nil {
		return nil, fmt.Errorf("mayfly cluster split: %w: %s", err, out)
	}
	return []string{string(made[1]), string(made[2])}, nil
}

// end ends programs, which say whether what they saw was right.
func (w *world) end(all []*programs.Program) error {
	return programs.Each(all, func(p *programs.Program) error {
		if err := errors.Join(p.End(limit), p.NoErrors()); err != nil {
			return err
		}
		now := p.State()
		fmt.Printf("  %s: %d writes, %d rounds of reads, no errors\n", p.Name, now.Writes, now.Reads)
		return nil
	})
}

// checkItems reports items that are not as they were acknowledged.
func (w *world) checkItems() error {
	client, err := w.client()
	if err != nil {
		return err
	}
	container, err := client.NewContainer("split", "c")
	if err != nil {
		return err
	}
	there := map[string]int{}
	for pages := container.NewQueryItemsPager("SELECT c.id, c.v FROM c", azcosmos.NewPartitionKey(), nil); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			return err
		}
		for _, body := range page.Items {
			var item struct {
				ID string
				V  int
			}
			if err := json.Unmarshal(body, &item); err != nil {
				return err
			}
			if _, twice := there[item.ID]; twice {
				return fmt.Errorf("the container has %s twice", item.ID)
			}
			there[item.ID] = item.V
		}
	}
	if !maps.Equal(there, w.acknowledged) {
		return fmt.Errorf("the container has %v, and %v was acknowledged", there, w.acknowledged)
	}
	fmt.Printf("  %d items are there as they were acknowledged\n", len(there))
	return nil
}

// checkFeeds waits until all feeds have told each item as it is, and reports what they told wrong.
func (w *world) checkFeeds() error {
	for _, f := range w.told {
		if err := programs.Until(limit, f.name+" is not told each item as it is", func() bool { return f.at(w.acknowledged) }); err != nil {
			return errors.Join(err, f.wrong)
		}
		f.mu.Lock()
		err := f.wrong
		fmt.Printf("  %s was told %d changes, %d of them again\n", f.name, f.changes, f.again)
		f.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// check stops the servers and checks all rows.
func (w *world) check() error {
	for _, server := range w.servers {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			return fmt.Errorf("the server is to stop in peace: %w", err)
		}
	}
	if out, err := exec.Command(w.binary, "check", w.store).CombinedOutput(); err != nil {
		return fmt.Errorf("mayfly check: %w: %s", err, out)
	}
	return nil
}

// close ends what still runs.
func (w *world) close() {
	for _, p := range append(w.loads, w.feeds...) {
		p.Kill()
	}
	for _, server := range w.servers {
		_ = server.Process.Kill()
	}
	_ = os.RemoveAll(w.scratch)
}

// feed is what a program that follows the change feed is told.
type feed struct {
	name    string
	repeats bool // after a lease has changed hands, a processor tells again what it told

	mu             sync.Mutex
	last           map[string]int // the version of each item that was told last
	seen           map[change]bool
	changes, again int
	wrong          error
}

type change struct {
	id      string
	version int
}

func (f *feed) heard(line string) {
	var c change
	if n, _ := fmt.Sscanf(line, "change %s %d", &c.id, &c.version); n < 2 {
		return // a line of the SDK
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[change]bool{}
	}
	f.changes++
	switch {
	case f.seen[c] && f.repeats:
		f.again++
	case c.version <= f.last[c.id]:
		f.wrong = errors.Join(f.wrong, fmt.Errorf("it is told version %d of %s after version %d", c.version, c.id, f.last[c.id]))
	}
	f.seen[c] = true
	f.last[c.id] = max(f.last[c.id], c.version)
}

// at reports whether the feed has told all items in these versions.
func (f *feed) at(versions map[string]int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Equal(f.last, versions)
}
