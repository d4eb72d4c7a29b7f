// SPDX-License-Identifier: MIT

// The PostgreSQL server of a trial.

package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresLimit is how long the server may take to start.
const postgresLimit = 60 * time.Second

// postgres is a running PostgreSQL server with fresh data.
type postgres struct {
	dir   string // of its socket and its data
	alive *os.File
	shell *exec.Cmd
}

// programs finds the directory of the server's programs.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%w: no PostgreSQL", errAbsent)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// account returns how to run the server, which refuses to run as root.
func account(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: it does not run as root, and there is no user postgres", errAbsent)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, uid, gid)
}

// startPostgres makes a database in a temporary directory and starts its server, with enough
// in its log that the audit can read all commits in their order.
func startPostgres() (*postgres, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	attr, err := account(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	// The server ends when the other end of the pipe is closed: when this process ends, in
	// whatever way.
	const script = `"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c full_page_writes=off \
 -c max_connections=1200 -c shared_buffers=64MB -c wal_level=logical -c max_wal_size=256MB >"$2/log" 2>&1 </dev/null &
cat >/dev/null; kill -QUIT $!; wait; rm -rf "$2"`
	p := &postgres{dir: dir, shell: exec.Command("sh", "-c", script, "sh", bin, dir)}
	p.shell.SysProcAttr, p.shell.Dir = attr, "/"
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.shell.Stdin, p.alive = in, out
	if err := p.shell.Start(); err != nil {
		return nil, err
	}
	_ = in.Close()
	return p, p.ready()
}

// stop ends the server, and removes its data.
func (p *postgres) stop() {
	_ = p.alive.Close()
	_ = p.shell.Wait()
}

func (p *postgres) socket() string { return filepath.Join(p.dir, ".s.PGSQL.5432") }

// url returns the address of the database for tools of the trial.
func (p *postgres) url(name string) string {
	return "postgres://postgres@/postgres?host=" + url.QueryEscape(p.dir) + "&application_name=" + name
}

// places: nodes are given the address of a proxy, so they need none.
func (p *postgres) places(count int) []*place { return make([]*place, count) }

func (p *postgres) links(_ *node, port func() (string, error)) (proxies, error) {
	at, err := port()
	if err != nil {
		return nil, err
	}
	link, err := newProxyIn([]*place{nil}, at, func() (net.Conn, error) { return net.DialTimeout("unix", p.socket(), dialLimit) })
	return proxies{link}, err
}

// node has the name of the process, by which the audit knows it.
func (p *postgres) node(n *node) string {
	return "postgres://postgres@" + n.engine[0].address + "/postgres?" + url.Values{"sslmode": {"disable"}, "application_name": {n.writer()}}.Encode()
}

func (*postgres) patience() time.Duration { return 0 }

func (*postgres) lag() time.Duration { return 0 }

func (p *postgres) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, p.url("trial"))
}

func (p *postgres) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), postgresLimit)
	defer cancel()
	for {
		c, err := p.connect(ctx)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			return fmt.Errorf("PostgreSQL does not start: %w: %s", err, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
