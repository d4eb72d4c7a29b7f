// SPDX-License-Identifier: MIT

// Package pgtest starts a PostgreSQL server for the tests of one process.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Require is the environment variable that makes tests fail instead of skip where PostgreSQL
// is absent.
const Require = "MAYFLY_REQUIRE_POSTGRES"

// startLimit is how long the server may take to start.
const startLimit = 30 * time.Second

var errAbsent = errors.New("no PostgreSQL")

// schemas counts the stores that were made.
var schemas atomic.Int64

// New returns the URL of an empty store, which is removed when the test ends. It skips the
// test, visibly, if PostgreSQL is not installed. The server is one for all tests of the
// process, listens on a socket in a temporary directory, and ends with the process.
func New(t testing.TB) string {
	t.Helper()
	dir := Server(t)
	name := fmt.Sprintf("store_%d", schemas.Add(1))
	run(t, dir, "CREATE SCHEMA "+name)
	t.Cleanup(func() { run(t, dir, "DROP SCHEMA "+name+" CASCADE") })
	return address(dir, "search_path="+name)
}

// Server starts the server if it does not run yet, and returns the directory of its socket.
func Server(t testing.TB) (dir string) {
	t.Helper()
	dir, err := server()
	switch {
	case errors.Is(err, errAbsent) && os.Getenv(Require) == "":
		fmt.Fprintf(os.Stderr, "SKIPPED: no PostgreSQL: %s\n", t.Name())
		t.Skip("SKIPPED: no PostgreSQL")
	case err != nil:
		t.Fatal(err)
	}
	return dir
}

// address returns the URL of the database, as its administrator.
func address(dir, more string) string {
	return "postgres://postgres@/postgres?host=" + url.QueryEscape(dir) + "&" + more
}

func run(t testing.TB, dir, text string) {
	t.Helper()
	c, err := pgconn.Connect(context.Background(), address(dir, "application_name=pgtest"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(context.Background(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

var server = sync.OnceValues(start)

// start makes a database in a temporary directory and starts its server.
func start() (dir string, err error) {
	bin, err := programs()
	if err != nil {
		return "", err
	}
	attr, owner, err := account()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "pg"); err != nil {
		return "", err
	}
	if err := owner(dir); err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	// The server ends when the other end of the pipe is closed: when this process ends, in
	// whatever way.
	const script = `"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c full_page_writes=off \
 -c max_connections=200 -c shared_buffers=64MB >"$2/log" 2>&1 </dev/null &
cat >/dev/null; kill -QUIT $!; wait; rm -rf "$2"`
	shell := exec.Command("sh", "-c", script, "sh", bin, dir)
	shell.SysProcAttr, shell.Dir = attr, "/"
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
	return dir, ready(dir)
}

// ends keeps the ends of the pipes open that keep servers running.
var ends []*os.File

// programs finds the directory of the server's programs.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errAbsent
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// ready waits until the server accepts connections.
func ready(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		c, err := pgconn.Connect(ctx, address(dir, "application_name=pgtest"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			return fmt.Errorf("PostgreSQL does not start: %w: %s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
