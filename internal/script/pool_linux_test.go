// SPDX-License-Identifier: MIT

package script

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker has no files, arguments or environment of the server.
func TestWorkersHaveNothing(t *testing.T) {
	t.Setenv("MAYFLY_KEY", "secret")
	name := filepath.Join(t.TempDir(), "data")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := NewPool(testPool())
	defer p.Close()
	s := enter(t, p)
	mustCall(t, s)
	dir := fmt.Sprintf("/proc/%d/", s.worker.cmd.Process.Pid)
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(dir + name)
		if err != nil || bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("HOME=")) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		if err != nil || to == name || strings.HasPrefix(to, "/sys/") {
			t.Errorf("file %s is %s, %v", fd.Name(), to, err)
		}
	}
	if adj, err := os.ReadFile(dir + "oom_score_adj"); err != nil || strings.TrimSpace(string(adj)) != "1000" {
		t.Errorf("oom_score_adj is %s, %v", adj, err)
	}
}

// The memory of a script is bounded, however it takes it.
func TestMemoryOfWorkers(t *testing.T) {
	// The program itself needs some, most of it shared, and the race detector needs more.
	const bound = 3*smallMemory + 64<<20
	o := testPool()
	o.Memory = smallMemory
	p := NewPool(o)
	defer p.Close()
	for _, body := range []string{
		`const a = []; for (;;) a.push({})`, `let s = "x"; for (;;) s += s`, `return "x".repeat(2 ** 30)`, `const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))`,
		`return 2n ** (2n ** 31n)`, `const s = "x".repeat(1 << 20); for (const all = [];;) all.push(s.toUpperCase(), s.split(""))`,
	} {
		s := enter(t, p)
		mustCall(t, s)
		worker := s.worker
		_, err := s.sandbox(Options{}).Call(t.Context(), &Function{"f", "function() {" + body + "}"})
		if !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", body, err)
			continue
		}
		usage, ok := worker.cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if ok && usage.Maxrss<<10 > bound {
			t.Errorf("%s took %d MiB", body, usage.Maxrss>>10)
		}
		mustCall(t, s)
	}
}
