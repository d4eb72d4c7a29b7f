// SPDX-License-Identifier: MIT

// The PD and the unistore of a trial.

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// tikvServers is the environment variable with the directory of the programs, which
	// engine/tikv/run builds.
	tikvServers = "MAYFLY_TIKV_SERVERS"

	tikvLimit = 60 * time.Second
	// lockTime is how long the lock of a dead process holds others up.
	lockTime = 3 * time.Second
	// pdLag is how far PD's time may be behind: it moves in steps of 50 ms, and later on a
	// busy machine.
	pdLag = time.Second
)

// tikv is a running PD with a store.
type tikv struct {
	dir       string
	pd, store string // their addresses, as PD tells them
	alive     *os.File
	shell     *exec.Cmd
}

func startTiKV() (*tikv, error) {
	bin := os.Getenv(tikvServers)
	if bin == "" {
		return nil, fmt.Errorf("%w: engine/tikv/run cluster builds PD and unistore and runs this", errAbsent)
	}
	dir, err := os.MkdirTemp("", "tikv")
	if err != nil {
		return nil, err
	}
	var at [3]string
	for i := range at {
		if at[i], err = freePort(rand.IntN); err != nil {
			return nil, err
		}
	}
	// The servers end when the other end of the pipe is closed: when this process ends, in
	// whatever way.
	const script = `
"$1/pd-server" -name pd -data-dir "$2/pd" -client-urls "http://$3" -peer-urls "http://$4" -log-file "$2/pd.log" -L error >"$2/pd.out" 2>&1 </dev/null &
pd=$!
"$1/unistore" -pd "$3" -addr "$5" -data "$2/store" >"$2/store.out" 2>&1 </dev/null &
store=$!
cat >/dev/null; kill -KILL $store $pd; wait; rm -rf "$2"`
	k := &tikv{dir: dir, pd: at[0], store: at[2], shell: exec.Command("sh", "-c", script, "sh", bin, dir, at[0], at[1], at[2])}
	k.shell.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1") // PD's patterns are older than those of today
	k.shell.Dir = "/"
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k.shell.Stdin, k.alive = in, out
	if err := k.shell.Start(); err != nil {
		return nil, err
	}
	_ = in.Close()
	if err := k.ready(); err != nil {
		k.stop()
		return nil, err
	}
	return k, nil
}

// ready waits until the store says that it listens, which it does once it knows PD.
func (k *tikv) ready() error {
	for began := time.Now(); time.Since(began) < tikvLimit; time.Sleep(50 * time.Millisecond) {
		said, _ := os.ReadFile(filepath.Join(k.dir, "store.out"))
		if bytes.Contains(said, []byte("unistore listens on")) {
			return nil
		}
	}
	text := ""
	for _, name := range []string{"pd.out", "pd.log", "store.out"} {
		said, _ := os.ReadFile(filepath.Join(k.dir, name))
		text += fmt.Sprintf("\n%s: %s", name, said)
	}
	return fmt.Errorf("PD and unistore do not start within %v:%s", tikvLimit, text)
}

// places: a node is told the store's address by PD, so that its links can be cut only where
// its process has a network of its own.
func (k *tikv) places(count int) []*place {
	all := make([]*place, count)
	for i := range all {
		p, err := newPlace()
		if err != nil {
			fmt.Println("LEFT OUT: bad links between nodes and the engine, which need root on Linux:", err)
			for _, made := range all[:i] {
				made.close()
			}
			return make([]*place, count)
		}
		all[i] = p
	}
	return all
}

func (k *tikv) links(n *node, _ func() (string, error)) (all proxies, err error) {
	if n.place == nil {
		return nil, nil
	}
	for _, at := range []string{k.pd, k.store} {
		p, err := newProxyIn([]*place{n.place}, at, func() (net.Conn, error) { return net.DialTimeout("tcp", at, dialLimit) })
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (k *tikv) url(string) string { return "tikv://" + k.pd + "/trial" }

func (k *tikv) node(*node) string { return k.url("") }

func (*tikv) patience() time.Duration { return lockTime }

func (*tikv) lag() time.Duration { return pdLag }

// stop ends the servers, and removes their data.
func (k *tikv) stop() {
	_ = k.alive.Close()
	_ = k.shell.Wait()
}
