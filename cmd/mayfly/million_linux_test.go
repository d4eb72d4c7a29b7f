// SPDX-License-Identifier: MIT

// Transfers of a million items, and a backup of a busy server. They take minutes.

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	encoding "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// manyItems is how many items are moved, and manyBytes about how large they are.
	manyItems = 1_000_000
	manyBytes = 300
	// fewItems are moved before, to see what memory a transfer takes whatever its length.
	fewItems = 50_000
	// moreMemory is how much more memory a transfer of manyItems may take than one of fewItems.
	moreMemory = 64 << 20
	// mostMemory is how much memory a transfer may take.
	mostMemory = 256 << 20
	// leastShare is the share of the benchmark's speed that transfers must have at least.
	leastShare = 0.5
	// writeEvery is the pause between two writes to the source of a move.
	writeEvery = 5 * time.Millisecond
	// manyWait bounds how long a move may take to catch up.
	manyWait = 30 * time.Minute
)

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("MAYFLY_LONG") == "" {
		t.Skip("it takes minutes; set MAYFLY_LONG")
	}
}

// timed runs the binary to its end, and returns how long it took and the most memory it had.
func (b binary) timed(t *testing.T, env []string, args ...string) (time.Duration, int64) {
	t.Helper()
	c := b.command(t, env, args...)
	var said bytes.Buffer
	c.Stderr = &said
	began := time.Now()
	if err := c.Run(); err != nil {
		t.Fatalf("mayfly %q: %v\n%s", args, err, &said)
	}
	return time.Since(began), mostResident(c)
}

// mostResident returns the most memory that a process had, which has ended.
func mostResident(c *exec.Cmd) int64 {
	return c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// speeds returns what the benchmark says of a server: requests a second, by their kind.
func (b binary) speeds(t *testing.T, env []string) map[string]float64 {
	t.Helper()
	speeds := map[string]float64{}
	for line := range strings.Lines(b.ok(t, env, "bench", "--json", "--seconds=10", fmt.Sprint("--bytes=", manyBytes))) {
		var m struct {
			What      string
			PerSecond float64
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		speeds[m.What] = m.PerSecond
	}
	return speeds
}

// writeMany writes a file of items.
func writeMany(t *testing.T, name string, n int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	pad := strings.Repeat("x", manyBytes-70)
	for i := range n {
		fmt.Fprintf(w, `{"id":"%d","customer":"c%d","n":%d,"pad":"%s"`, i, i%5000, i, pad)
		if i%3 == 0 {
			fmt.Fprintf(w, `,"ttl":%d`, 100_000+i)
		}
		if _, err := w.WriteString("}\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// content is what a stream of items comes to, whatever their order: how many there are, and
// the sum of their hashes without what differs from server to server.
type content struct {
	items int
	sum   [4]uint64
}

func contentOf(t *testing.T, from io.Reader) (all content) {
	t.Helper()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		o, err := value.ParseObject(lines.Bytes())
		if err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		h := sha256.Sum256(o.AppendMembers(nil, func(name string) bool {
			return name == "_ts" || name == "_etag" || name == "_rid" || name == "ttl"
		}))
		for i := range all.sum {
			all.sum[i] += encoding.BigEndian.Uint64(h[8*i:])
		}
		all.items++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func contentOfFile(t *testing.T, name string) content {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return contentOf(t, f)
}

// contentOfServer exports the items of shop/carts.
func (b binary) contentOfServer(t *testing.T, env []string) content {
	t.Helper()
	c := b.command(t, env, "export", "shop", "carts")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	all := contentOf(t, out)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// judge checks the speed and memory of a transfer of a million items.
func judge(t *testing.T, what string, took time.Duration, memory, before int64, speed float64) {
	t.Helper()
	rate := manyItems / took.Seconds()
	t.Logf("%s of %d items: %.0f a second, %d MiB; the benchmark has %.0f a second", what, manyItems, rate, memory>>20, speed)
	if rate < leastShare*speed {
		t.Errorf("%s has %.0f items a second, and the benchmark %.0f", what, rate, speed)
	}
	if memory > mostMemory || memory > before+moreMemory {
		t.Errorf("%s takes %d MiB; for %d items it took %d MiB", what, memory>>20, fewItems, before>>20)
	}
}

// A million items are imported and exported at half the speed of the benchmark at least, and
// in the same memory as a few. Then they move to another server, which follows what is
// written meanwhile, until both are equal.
func TestMillionItems(t *testing.T) {
	long(t)
	b := build(t)
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "one"))
	one := []string{"MAYFLY_CONNECTION=" + p.connection}
	speeds := b.speeds(t, one)
	many, few := filepath.Join(dir, "many.jsonl"), filepath.Join(dir, "few.jsonl")
	writeMany(t, many, manyItems)
	writeMany(t, few, fewItems)
	b.ok(t, one, "put", "shop", "few", "--key-path=/customer")
	b.ok(t, one, "put", "shop", "carts", "--key-path=/customer", "--ttl=30d", "--throughput=18000")

	_, ofFew := b.timed(t, one, "import", "shop", "few", "--from="+few)
	took, memory := b.timed(t, one, "import", "shop", "carts", "--from="+many)
	judge(t, "import", took, memory, ofFew, speeds["create"])

	_, before := b.timed(t, one, "export", "shop", "few", "--to="+filepath.Join(dir, "few.out"))
	out := filepath.Join(dir, "many.out")
	took, memory = b.timed(t, one, "export", "shop", "carts", "--to="+out)
	judge(t, "export", took, memory, before, speeds["read"])
	want := contentOfFile(t, many)
	if got := contentOfFile(t, out); got != want || got.items != manyItems {
		t.Fatalf("the export has %+v, want %+v", got, want)
	}
	b.ok(t, one, "rm", "shop", "few", "--yes")

	// What is written during the move: items that are there, and new ones.
	c, err := client.New(client.Options{Endpoint: "http://" + p.addr, Key: mayfly.WellKnownKey})
	if err != nil {
		t.Fatal(err)
	}
	q := b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "two"))
	two := []string{"MAYFLY_CONNECTION=" + q.connection}
	move := b.command(t, append([]string{"MAYFLY_FROM=" + p.connection}, two...), "import", "shop", "--follow")
	said := &journal{} // of the move, a line now and then
	move.Stderr = said
	if err := move.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- move.Wait() }()
	t.Cleanup(func() { _ = move.Process.Kill() })
	carts := client.Name{Database: "shop", Container: "carts"}
	write := func(i int, id string) {
		t.Helper()
		customer := fmt.Sprint("c", i%5000)
		item := fmt.Appendf(nil, `{"id":%q,"customer":%q,"written":%d,"ttl":%d}`, id, customer, i, 200_000+i)
		if _, err := c.WriteItem(t.Context(), carts, item, value.PartitionKey{value.String(customer)}, client.Upsert); err != nil {
			t.Fatal(err)
		}
	}
	written := 0
	for ; !strings.Contains(said.String(), "in step"); written++ {
		select {
		case err := <-ended:
			t.Fatalf("the move has ended: %v\n%s", err, said)
		case <-time.After(writeEvery):
		}
		if time.Since(began) > manyWait {
			t.Fatalf("the move takes more than %v\n%s", manyWait, said)
		}
		i := written * 7919 % manyItems
		write(i, fmt.Sprint(i))        // one that is there
		write(i, fmt.Sprint("new", i)) // and one that is not
	}
	copied := time.Since(began)
	// What comes after them in each partition, so that nothing is left to read.
	const lasts = 100
	for i := range lasts {
		write(i, "last")
	}
	for began, i := time.Now(), 0; i < lasts; {
		if b.run(t, two, "get", "shop", "carts", "last", fmt.Sprint("c", i)).code == 0 {
			i++
		} else if time.Since(began) > manyWait {
			t.Fatalf("the last writes do not follow\n%s", said)
		}
	}
	if err := move.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("the move: %v\n%s", err, said)
	}
	judge(t, "move", copied, mostResident(move), ofFew, speeds["create"])
	t.Logf("%d items were written meanwhile; the move says: %s", 2*written, lastLine(said.String()))
	want = b.contentOfServer(t, one)
	if got := b.contentOfServer(t, two); got != want || got.items < manyItems {
		t.Fatalf("the other server has %+v, want %+v", got, want)
	}
	if got, want := b.ok(t, two, "get", "shop", "carts"), `"defaultTtl": 2592000`; !strings.Contains(got, want) {
		t.Errorf("the definition lacks %s:\n%s", want, got)
	}
	if got, want := b.ok(t, two, "ls"), "18000 RU/s"; !strings.Contains(got, want) {
		t.Errorf("the list lacks %s:\n%s", want, got)
	}
}

// A backup that is taken while 16 clients write has every write that was acknowledged before
// it began, and its rows agree.
func TestBackupUnderLoad(t *testing.T) {
	long(t)
	const (
		writers  = 16
		loadTime = 30 * time.Second
	)
	b := build(t)
	dir := t.TempDir()
	p := b.start(t, nil, "serve", anyPort, "--data="+filepath.Join(dir, "data"))
	env := []string{"MAYFLY_CONNECTION=" + p.connection}
	b.ok(t, env, "put", "shop", "carts", "--key-path=/id", "--ttl=30d")
	carts := client.Name{Database: "shop", Container: "carts"}
	id := func(w int, i int64) string { return fmt.Sprintf("%d-%d", w, i) }
	var stop atomic.Bool
	var wait sync.WaitGroup
	var counts [writers]atomic.Int64 // all items of a writer up to this one are acknowledged
	for w := range writers {
		c, err := client.New(client.Options{Endpoint: "http://" + p.addr, Key: mayfly.WellKnownKey})
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for i := int64(1); !stop.Load(); i++ {
				item := fmt.Appendf(nil, `{"id":%q,"pad":%q}`, id(w, i), strings.Repeat("x", manyBytes))
				if _, err := c.WriteItem(t.Context(), carts, item, value.PartitionKey{value.String(id(w, i))}, client.Create); err != nil {
					t.Errorf("write %s: %v", id(w, i), err)
					return
				}
				counts[w].Store(i)
			}
		})
	}
	defer func() { stop.Store(true); wait.Wait() }()
	var last string
	var had [writers]int64
	backups, bytes := 0, int64(0)
	for began := time.Now(); time.Since(began) < loadTime; backups++ {
		time.Sleep(time.Second) // names have seconds
		for w := range writers {
			had[w] = counts[w].Load()
		}
		last, _ = b.backUp(t, env, filepath.Join(dir, "backups"))
	}
	stop.Store(true)
	wait.Wait()
	all, acknowledged := int64(0), int64(0)
	for w := range writers {
		all += counts[w].Load()
		acknowledged += had[w]
	}
	t.Logf("%d writes in %v beside %d backups; %d were acknowledged before the last", all, loadTime, backups, acknowledged)
	if backups < 2 || acknowledged == 0 {
		t.Fatalf("%d backups of %d writes show nothing", backups, acknowledged)
	}
	p.stop(t, syscall.SIGTERM)
	data := filepath.Join(dir, "restored")
	b.ok(t, nil, "restore", "--from="+last, "--data="+data)
	if o := b.run(t, nil, "check", "--data="+data); o.code != 0 {
		t.Fatalf("check: %+v", o)
	}
	p = b.start(t, nil, "serve", anyPort, "--data="+data)
	c := b.command(t, []string{"MAYFLY_CONNECTION=" + p.connection}, "export", "shop", "carts")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		bytes += int64(len(line))
		there[client.ID([]byte(line))] = true
	}
	for w := range writers {
		for i := int64(1); i <= had[w]; i++ {
			if !there[id(w, i)] {
				t.Fatalf("the backup has lost %s", id(w, i))
			}
		}
	}
	t.Logf("the backup has %d items of %d bytes", len(there), bytes)
}
