// SPDX-License-Identifier: MIT

package scripttest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
)

const (
	// startOfTime is where the test clock stands when a script begins. It is later than any
	// machine's clock.
	startOfTime = "2100-01-01T00:00:00Z"
	// fourPartitions is the throughput of a container with four physical partitions, and
	// onePartition that of a container with one.
	fourPartitions = "21000"
	onePartition   = "400"

	// allScripts is where the scripts are.
	allScripts = "testdata"
	// minFrames and minTTLFrames are fewer than the requests that go by direct mode, of all
	// scripts and of the scenarios of TTL.
	minFrames    = 5000
	minTTLFrames = 500

	defaultDatabase  = "db"
	defaultContainer = "c"
)

// scriptsAtOnce is how many scripts run at a time, unless -parallel says otherwise.
const scriptsAtOnce = 8

func TestMain(m *testing.M) {
	mayfly.RunScriptWorker()
	// A server on disk mostly waits for it, so more of them run than there are processors.
	if err := flag.Set("test.parallel", strconv.Itoa(scriptsAtOnce)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, moreRunning...)
}

// moreRunning ignores what clients of engines of other modules leave running. A module adds a
// file to this package when it runs the tests.
var moreRunning []goleak.Option

func TestScripts(t *testing.T) {
	runScripts(t, func(t *testing.T) *script {
		m := newMachine()
		return &script{server: &inProcess{machine: m}, machine: m, throughput: onePartition}
	})
}

func TestScriptsOnFourPartitions(t *testing.T) {
	runScripts(t, func(t *testing.T) *script {
		m := newMachine()
		return &script{server: &inProcess{machine: m}, machine: m, throughput: fourPartitions}
	})
}

func TestScriptsOverHTTP(t *testing.T) {
	runScripts(t, func(t *testing.T) *script {
		return &script{server: &overHTTP{dir: t.TempDir()}, throughput: onePartition}
	})
}

// TestScriptsOverDirectMode counts the requests that were sent in frames: a client that
// falls back to HTTP would prove nothing.
func TestScriptsOverDirectMode(t *testing.T) {
	var frames atomic.Int64
	dir, least := transportScripts(), int64(minFrames)
	if dir != allScripts {
		least = minTTLFrames
	}
	t.Run("scripts", func(t *testing.T) { // until all that run in parallel have ended
		runScriptsIn(t, dir, func(t *testing.T) *script {
			return &script{server: &overDirect{overHTTP: overHTTP{dir: t.TempDir()}, frames: &frames}, throughput: onePartition}
		})
	})
	if n := frames.Load(); n < least {
		t.Errorf("%d requests of all scripts were sent in frames", n)
	}
}

func TestScriptsOverHTTP2(t *testing.T) {
	runScriptsIn(t, transportScripts(), func(t *testing.T) *script {
		return &script{server: &overHTTP{dir: t.TempDir(), http2: true}, throughput: onePartition}
	})
}

// TestScriptsOnPostgres runs the scripts on a node of a cluster: some of them, and all if
// MAYFLY_REQUIRE_POSTGRES is set, since every one takes a second.
func TestScriptsOnPostgres(t *testing.T) {
	dir := filepath.Join(allScripts, "items")
	if os.Getenv(pgtest.Require) != "" {
		dir = allScripts
	}
	pgtest.Server(t)
	runScriptsIn(t, dir, func(t *testing.T) *script {
		return &script{server: onPostgres(pgtest.New(t)), throughput: onePartition}
	})
}

// TestScriptsOnPostgresPartitions is the same with four partitions in each container.
func TestScriptsOnPostgresPartitions(t *testing.T) {
	if os.Getenv(pgtest.Require) == "" {
		t.Skip("only if " + pgtest.Require + " is set")
	}
	runScripts(t, func(t *testing.T) *script {
		return &script{server: onPostgres(pgtest.New(t)), throughput: fourPartitions}
	})
}

// TestScriptsThroughAnotherNode runs the scripts on several nodes, through one that owns
// nothing: on two in this process with a model of a shared storage engine, or, if
// MAYFLY_REQUIRE_POSTGRES is set, on three processes with PostgreSQL.
func TestScriptsThroughAnotherNode(t *testing.T) {
	if os.Getenv(pgtest.Require) == "" {
		runScriptsIn(t, transportScripts(), func(t *testing.T) *script {
			model := kvtest.NewModel()
			another := func() (kv.DB, error) { return model.Another(), nil }
			return &script{server: &overNodes{another: another, owners: []string{"owner"}, launch: launchInside(another)}, throughput: onePartition}
		})
		return
	}
	program := buildProgram(t)
	runScriptsIn(t, transportScripts(), func(t *testing.T) *script {
		url := pgtest.New(t)
		return &script{server: &overProcesses{overNodes{
			another: func() (kv.DB, error) { return openPostgres(url) }, owners: []string{"a", "b"}, launch: launchProgram(program, url),
		}}, throughput: onePartition}
	})
}

// transportScripts returns where the scripts for direct mode and HTTP/2 are: the scenarios
// of TTL, and all if MAYFLY_TRANSPORTS or MAYFLY_LONG is set. All of them over every
// transport would take half of the time that all tests have.
func transportScripts() string {
	if os.Getenv("MAYFLY_TRANSPORTS") != "" || os.Getenv("MAYFLY_LONG") != "" {
		return allScripts
	}
	return filepath.Join(allScripts, "ttl")
}

func runScripts(t *testing.T, prepare func(t *testing.T) *script) {
	runScriptsIn(t, allScripts, prepare)
}

func runScriptsIn(t *testing.T, dir string, prepare func(t *testing.T) *script) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		t.Parallel()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("# ")) {
			t.Fatalf("%s does not begin with a comment that says what it shows", path)
		}
		s := prepare(t)
		for _, l := range leftOut {
			if l.needs.Match(text) && !l.has(s) {
				t.Skip(l.reason)
			}
		}
		t.Cleanup(func() {
			if err := s.server.stop(); err != nil {
				t.Errorf("stop the server: %v", err)
			}
		})
		datadriven.RunTest(t, path, s.run)
		if !s.begun {
			t.Fatalf("%s has no directive", path)
		}
		if got := s.checked(t); got != allIsWell {
			t.Errorf("at the end of the script:\n%s", got)
		}
	})
}

// leftOut is the scripts that do not run on every server, by what they need and why some
// servers do not have it.
var leftOut = []struct {
	needs  *regexp.Regexp
	has    func(*script) bool
	reason string
}{{
	regexp.MustCompile(`(?m)^wall\b`),
	func(s *script) bool { return s.machine != nil },
	"the script moves the clocks of the machine, which are in its hand under a server in this process alone, with its own data: whole servers read those of the system, and nodes that of the storage engine",
}, {
	regexp.MustCompile(`(?m)^crash\b`),
	func(s *script) bool { _, can := s.server.(crasher); return can || s.machine != nil },
	"the script crashes the server, which the process of this test would not survive: a disk in memory can lose what was not durable, and nodes with processes of their own can be killed",
}, {
	regexp.MustCompile(`(?m)^server .*regions=\([^=)]*,`),
	func(s *script) bool { _, nodes := s.server.(interface{ bystander() error }); return !nodes },
	"the script has several regions without endpoints, which only a server alone has: those of a cluster are where its nodes are",
}}

// script is one run of a script.
type script struct {
	server server
	// machine is the machine of an in-process server; nil over HTTP.
	machine    *machine
	throughput string // of containers for which the script gives none

	begun   bool
	keys    map[string]string // partition key definitions, by database and container
	kept    map[string]string // values that the script keeps, by name
	cursors map[string]string // where events of a container were last read to
	labels  labels
	// credential replaces the signature in requests; nil signs them.
	credential *string
}

// verb executes one directive and returns its output.
type verb func(s *script, d *directive) string

var verbs = map[string]verb{
	"database": createDatabase, "show-database": showDatabase, "drop-database": dropDatabase, "databases": listDatabases,
	"container": createContainer, "show": showContainer, "replace-container": replaceContainer, "drop": dropContainer,
	"containers": listContainers,
	"create":     createItems, "upsert": upsertItems, "replace": replaceItems, "read": readItems, "delete": deleteItems,
	"patch": patchItem, "batch": sendBatch, "delete-key": deleteKey,
	"list": listItems, "feed": readFeed,
	"query": runQuery, "where": whereItems, "value": valueOf,
	"udf": udfs.create, "show-udf": udfs.show, "replace-udf": udfs.replace, "drop-udf": udfs.drop, "udfs": udfs.list,
	"sproc": procedures.create, "show-sproc": procedures.show, "replace-sproc": procedures.replace, "drop-sproc": procedures.drop, "sprocs": procedures.list,
	"trigger": triggers.create, "show-trigger": triggers.show, "replace-trigger": triggers.replace, "drop-trigger": triggers.drop, "triggers": triggers.list,
	"run":        runProcedure,
	"throughput": showThroughput, "set-throughput": setThroughput, "offers": listOffers, "query-offers": queryOffers,
	"split": splitRange,
	"now":   now, "freeze": freeze, "advance": advance, "set": set, "release": release, "confirm": confirm, "wall": wall,
	"purge": purge, "drain": drain, "pause": pause, "resume": resume, "limit": limit,
	"usage": usage, "lag": lag, "ttl": expiryOf, "whatif": whatIf, "forecast": forecast, "explain": explain, "undelete": undelete, "undeletable": undeletable, "history": history, "events": events,
	"user": usersOf.create, "users": usersOf.list, "show-user": usersOf.show, "replace-user": usersOf.replace, "drop-user": usersOf.drop,
	"permission": permissionsOf.create, "permissions": permissionsOf.list, "show-permission": permissionsOf.show,
	"replace-permission": permissionsOf.replace, "drop-permission": permissionsOf.drop,
	"as": makeAs, "send": sendAny, "account": showAccount,
	"server": startServer, "restart": restart, "crash": crash, "rewind": rewind, "check": check,
}

func (s *script) run(t *testing.T, data *datadriven.TestData) string {
	d := &directive{T: t, data: data, used: map[string]bool{}}
	v, known := verbs[data.Cmd]
	if !known {
		d.fatalf("there is no verb %q", data.Cmd)
	}
	if !s.begun {
		d.first = true
		s.begin(d)
	}
	out := v(s, d)
	if unknown := d.unused(); len(unknown) > 0 {
		d.fatalf("%s does not take %s", data.Cmd, strings.Join(unknown, ", "))
	}
	return out
}

// begin starts the server. A script that begins with the verb wall moves the machine's
// clocks. All others have a test clock, which stands still. A script that begins with the
// verb server sets up the server.
func (s *script) begin(d *directive) {
	s.begun = true
	s.keys, s.kept, s.cursors = map[string]string{}, map[string]string{}, map[string]string{}
	switch d.data.Cmd {
	case "wall":
		s.takeClocks(d)
	case "server":
		s.setUp(d)
	}
	if err := s.server.start(); err != nil {
		d.fatalf("start the server: %v", err)
	}
	if d.data.Cmd != "wall" {
		s.clock(d, `{"freeze":true}`)
		s.clock(d, fmt.Sprintf(`{"set":%q}`, startOfTime))
	}
	if a := s.send(d, request{method: "POST", path: []string{"dbs"}, body: fmt.Appendf(nil, `{"id":%q}`, defaultDatabase)}); a.status != 201 {
		d.fatalf("create database %s: %d %s", defaultDatabase, a.status, a.body)
	}
}

// directive is a line of a script with the lines below it.
type directive struct {
	*testing.T
	data  *datadriven.TestData
	used  map[string]bool
	first bool // in its script
}

func (d *directive) fatalf(format string, args ...any) {
	d.Helper()
	d.Fatalf("%s: %s", d.data.Pos, fmt.Sprintf(format, args...))
}

// option returns the value of key=value, empty if it is not given.
func (d *directive) option(key string) string {
	arg, ok := d.data.Arg(key)
	if !ok || len(arg.Vals) == 0 {
		return ""
	}
	d.used[key] = true
	return d.expand(strings.Join(arg.Vals, ","))
}

// options returns the values of key=(a, b).
func (d *directive) options(key string) []string {
	if d.option(key) == "" {
		return nil
	}
	arg, _ := d.data.Arg(key)
	return arg.Vals
}

// flag reports whether a bare word is among the arguments.
func (d *directive) flag(word string) bool {
	arg, ok := d.data.Arg(word)
	if !ok || len(arg.Vals) > 0 {
		return false
	}
	d.used[word] = true
	return true
}

// words returns the bare words that are not flags. Verbs read their flags first.
func (d *directive) words() []string {
	var words []string
	for _, arg := range d.data.CmdArgs {
		if len(arg.Vals) == 0 && !d.used[arg.Key] {
			words = append(words, d.expand(arg.Key))
		}
	}
	for _, arg := range d.data.CmdArgs {
		if len(arg.Vals) == 0 {
			d.used[arg.Key] = true
		}
	}
	return words
}

// word returns the only bare word, or the given default if there is none.
func (d *directive) word(otherwise string) string {
	words := d.words()
	switch len(words) {
	case 0:
		return otherwise
	case 1:
		return words[0]
	}
	d.fatalf("%s takes one name, not %q", d.data.Cmd, words)
	return ""
}

// lines returns the lines below the directive.
func (d *directive) lines() []string {
	if d.data.Input == "" {
		return nil
	}
	lines := strings.Split(d.data.Input, "\n")
	for i := range lines {
		lines[i] = d.expand(lines[i])
	}
	return lines
}

func (d *directive) unused() []string {
	var unknown []string
	for _, arg := range d.data.CmdArgs {
		if !d.used[arg.Key] {
			unknown = append(unknown, arg.Key)
		}
	}
	slices.Sort(unknown)
	return unknown
}
