// SPDX-License-Identifier: MIT

// Package tikvtest starts PD and unistore, a small store that speaks TiKV's protocol, for the
// tests of one process.
package tikvtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/engine/tikv/tikvkv"
)

const (
	// Servers is the environment variable with the directory of the programs, which engine/tikv/run builds.
	Servers = "MAYFLY_TIKV_SERVERS"
	// Engine is the environment variable with the URL of a cluster to use instead. Each test
	// makes a store of its own in it, and leaves it there.
	Engine = "MAYFLY_TIKV_ENGINE"
)

// startLimit is how long the servers may take to start.
const startLimit = time.Minute

var errAbsent = errors.New("no TiKV")

// stores counts the stores that were made.
var stores atomic.Int64

// New returns the URL of an empty store. It skips the test, visibly, if the servers are not
// there. They serve all tests of the process, and end with it.
func New(t testing.TB) string {
	t.Helper()
	return newOn(t, server)
}

// NewSmall is New on servers of their own, whose store writes and merges files from half a
// megabyte on, so that a test meets that soon.
func NewSmall(t testing.TB) string {
	t.Helper()
	return newOn(t, small)
}

func newOn(t testing.TB, server func() (url string, err error)) string {
	t.Helper()
	return fmt.Sprintf("%s/t%d_%d", cluster(t, server), os.Getpid(), stores.Add(1))
}

// Prepare starts the servers before the first test, if they are there. New returns the error.
// A client that finds no PD leaves connections behind, for which a test must not be blamed.
func Prepare() {
	if os.Getenv(Engine) == "" {
		_, _ = server()
	}
}

func cluster(t testing.TB, server func() (url string, err error)) string {
	t.Helper()
	if url := os.Getenv(Engine); url != "" {
		return url
	}
	url, err := server()
	switch {
	case errors.Is(err, errAbsent):
		fmt.Fprintf(os.Stderr, "SKIPPED: no TiKV: %s\n", t.Name())
		t.Skip("SKIPPED: no TiKV, as make tikv starts it")
	case err != nil:
		t.Fatal(err)
	}
	return url
}

var (
	server = sync.OnceValues(func() (string, error) { return start() })
	small  = sync.OnceValues(func() (string, error) { return start("-memory-table=500000", "-table=50000") })
)

// start starts the servers in a temporary directory, and the store with flags.
func start(flags ...string) (url string, err error) {
	bin := os.Getenv(Servers)
	if bin == "" {
		return "", errAbsent
	}
	dir, err := os.MkdirTemp("", "tikv")
	if err != nil {
		return "", err
	}
	ports, err := freePorts(3)
	if err != nil {
		return "", err
	}
	// The servers end when the other end of the pipe is closed: when this process ends, in
	// whatever way.
	const script = `
bin=$1 dir=$2 pd_at=$3 peer_at=$4 store_at=$5; shift 5
"$bin/pd-server" -name pd -data-dir "$dir/pd" -client-urls "http://$pd_at" -peer-urls "http://$peer_at" -log-file "$dir/pd.log" -L error >"$dir/pd.out" 2>&1 </dev/null &
pd=$!
"$bin/unistore" -pd "$pd_at" -addr "$store_at" -data "$dir/unistore" "$@" >"$dir/unistore.out" 2>&1 </dev/null &
store=$!
cat >/dev/null; kill -KILL $store $pd; wait; rm -rf "$dir"`
	shell := exec.Command("sh", append([]string{"-c", script, "sh", bin, dir, ports[0], ports[1], ports[2]}, flags...)...)
	shell.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1") // PD's patterns are older than those of today
	shell.Dir = "/"
	in, out, err := os.Pipe()
	if err != nil {
		return "", err
	}
	shell.Stdin = in
	if err := shell.Start(); err != nil {
		return "", err
	}
	_ = in.Close()
	ends = append(ends, out)
	url = tikvkv.Scheme + "://" + ports[0]
	return url, ready(url, dir)
}

// ends keeps the ends of the pipes open that keep servers running.
var ends []*os.File

// freePorts returns addresses on which nobody listens now.
func freePorts(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// ready waits until the servers answer.
func ready(url, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		db, err := tikvkv.Open(ctx, tikvkv.Options{URL: url + "/ready", Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			return db.Close()
		}
		if ctx.Err() != nil {
			text := fmt.Sprintf("PD and unistore do not start: %v", err)
			for _, name := range []string{"pd.out", "pd.log", "unistore.out"} {
				out, _ := os.ReadFile(filepath.Join(dir, name))
				text += fmt.Sprintf("\n%s: %s", name, out)
			}
			return errors.New(text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
