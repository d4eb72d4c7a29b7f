// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system in memory for the test.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// freeBytes returns how many bytes of the disk are free.
func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// noise does not compress to less than half.
var noise = sync.OnceValue(func() string {
	b := make([]byte, 512<<10)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
})

// ballast fills the disk, as other programs may, up to a number of free bytes.
func ballast(t *testing.T, disk string, left int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range ballastTries {
		n := freeBytes(t, disk) - left
		if n <= 0 {
			return
		}
		err := syscall.Fallocate(int(f.Fd()), 0, 0, n)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.ENOSPC) { // the server has taken some of it meanwhile
			t.Fatal(err)
		}
	}
	t.Fatalf("the disk is written to all the time: %d bytes are free", freeBytes(t, disk))
}

// ballastTries is how often ballast tries again after the server has written meanwhile.
const ballastTries = 100

// A disk is filled until writes are refused. Deletes and purge go on and free space, so
// that writes are accepted again. A stop at any point is clean, and no item is lost.
func TestNearlyFullDisk(t *testing.T) {
	disk := smallDisk(t, 256)
	dir := filepath.Join(disk, "data")
	var log bytes.Buffer
	o := Options{Dir: dir, TestClock: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := serveTest(t, o)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}`, nil)
	s.move(t, `{"freeze":true}`)

	written := s.fill(t, 0)
	if a := s.send(t, "PUT", items+"/0", `{"id":"0","pk":"keep","n":1}`, pk("keep")); a.status != 403 || !strings.Contains(a.message(t), "reads and deletes") {
		t.Errorf("a replace: status %d: %s", a.status, a.body)
	}
	s.must(t, 204, "DELETE", items+"/1", "", pk("delete"))
	s.must(t, 200, "POST", "/dbs/d/colls/c/operations/partitionkeydelete", "", pk("delete"))
	s.writesAgain(t)

	written = s.fill(t, written)
	s.move(t, `{"advance":"2h"}`)
	s.writesAgain(t)

	written = s.fill(t, written)
	s.await(t, "a delete without space", func() bool {
		ballast(t, disk, 20<<20)                                // again, since the engine deletes files meanwhile
		a := s.send(t, "DELETE", items+"/none", "", pk("keep")) // 404 as long as it is accepted
		return a.status == 403 && strings.Contains(a.message(t), "nothing but reads")
	})
	s.stop(t)
	ballast(t, disk, 60<<20) // other programs free some space
	s = serveTest(t, o)
	for i := range written {
		if i%3 == 0 {
			s.must(t, 200, "GET", fmt.Sprint(items, "/", i), "", pk("keep"))
		}
	}
	s.stop(t)
	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	checkClean(t, dir)
	t.Logf("%s", &log)
	if strings.Contains(log.String(), "cannot be written") || strings.Contains(log.String(), "a commit failed") {
		t.Errorf("the log of the store has failed:\n%s", &log)
	}
}

// await waits until a condition holds.
func (s *testServer) await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for until := time.Now().Add(waitLimit); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// fill writes items, numbered from a start, until one is refused. A third of them expire
// in an hour, a third can be deleted, and a third stay.
func (s *testServer) fill(t *testing.T, from int) int {
	t.Helper()
	for i := from; ; i++ {
		key := []string{"keep", "delete", "expire"}[i%3]
		item := fmt.Sprintf(`{"id":"%d","pk":"%s","ttl":%d,"noise":"%s"}`, i, key, []int{-1, -1, 3600}[i%3], noise())
		a := s.send(t, "POST", items, item, pk(key))
		if a.status == 403 {
			return i
		}
		if a.status != 201 {
			t.Fatalf("item %d: status %d: %s", i, a.status, a.body)
		}
	}
}

// writesAgain waits until an item can be written.
func (s *testServer) writesAgain(t *testing.T) {
	t.Helper()
	upsert := map[string]string{"x-ms-documentdb-partitionkey": `["again"]`, "x-ms-documentdb-is-upsert": "true"}
	s.await(t, "writes", func() bool {
		a := s.send(t, "POST", items, `{"id":"again","pk":"again"}`, upsert)
		if a.status >= 300 && a.status != 403 {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		return a.status < 300
	})
}
