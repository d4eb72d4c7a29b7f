// SPDX-License-Identifier: MIT

// Package dapr runs Dapr's state store for the service, from Dapr's own module, against the
// real binary: the tests that Dapr has for every state store, and what docs/start.md says of
// it. The command and the component are those of the page. It is a module of its own, since
// Dapr names another version of the SDK than the programs beside. MAYFLY_BINARY names a binary
// that is built already.
package dapr

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dapr/components-contrib/metadata"
	"github.com/dapr/components-contrib/state"
	"github.com/dapr/components-contrib/state/azure/cosmosdb"
	conformance "github.com/dapr/components-contrib/tests/conformance/state"
	"github.com/dapr/kit/logger"
)

const root = "../../.." // the repository

var listens = regexp.MustCompile(`^Mayfly listens on http://(\S+) and https://`)

// binary returns the path of the server's binary.
func binary(t *testing.T) string {
	t.Helper()
	if name := os.Getenv("MAYFLY_BINARY"); name != "" {
		return name
	}
	name := filepath.Join(t.TempDir(), "mayfly")
	build := exec.Command("go", "build", "-o", name, "./cmd/mayfly")
	build.Dir, build.Env = root, append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// section returns what docs/start.md says of Dapr.
func section(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/start.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## Dapr\n")
	text, _, ends := strings.Cut(text, "\n## ")
	if !found || !ends {
		t.Fatal("docs/start.md has no section on Dapr")
	}
	return text
}

// start starts a server, makes the container with the command of the page, and returns the
// program and the server's address.
func start(t *testing.T, page string) (program, address string) {
	t.Helper()
	program = binary(t)
	server := exec.Command(program, "serve", "--memory", "--test-clock", "--listen=127.0.0.1:0")
	server.Env, server.Stderr = []string{}, os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		t.Fatal("the server does not say where it listens")
	}
	command := regexp.MustCompile("(?s)```sh\nmayfly (.*?)\n```").FindStringSubmatch(page)
	if command == nil {
		t.Fatal("the page has no command")
	}
	run(t, program, address, strings.Fields(command[1])...)
	return program, address
}

// run runs a command for the server.
func run(t *testing.T, program, address string, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	c.Env = []string{"MAYFLY_ENDPOINT=http://" + address}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("mayfly %q: %v\n%s", args, err, out)
	}
}

// settings returns the metadata of the component that the page shows.
func settings(t *testing.T, page, address string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    - \{name: (\w+), value: "?([^"}]+)"?\}$`).FindAllStringSubmatch(page, -1) {
		found[m[1]] = strings.Replace(m[2], "localhost:8081", address, 1)
	}
	if len(found) != 4 || !strings.Contains(page, "\n  type: state.azure.cosmosdb\n") {
		t.Fatalf("the page's component has %v", found)
	}
	return found
}

func newStore() state.Store {
	log := logger.NewLogger("mayfly")
	log.SetOutputLevel(logger.ErrorLevel)
	return cosmosdb.NewCosmosDBStateStore(log)
}

// Dapr's own tests of a state store, with the operations that it lists for this one.
func TestDaprsOwn(t *testing.T) {
	page := section(t)
	_, address := start(t, page)
	config, err := conformance.NewTestConfig("azure.cosmosdb", []string{"transaction", "etag", "first-write", "query", "ttl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, settings(t, page, address), newStore(), config)
}

// A state that is saved with ttlInSeconds is gone at that time, for every way to read it.
func TestStateExpires(t *testing.T) {
	page := section(t)
	program, address := start(t, page)
	run(t, program, address, "clock", "freeze")
	store, ctx := newStore(), t.Context()
	if err := store.Init(ctx, state.Metadata{Base: metadata.Base{Properties: settings(t, page, address)}}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"app||brief", "app||lasting"} {
		set := &state.SetRequest{Key: key, Value: map[string]string{"kind": "cart"}}
		if key == "app||brief" {
			set.Metadata = map[string]string{"ttlInSeconds": "5"}
		}
		if err := store.Set(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	query := func(text string) (*state.QueryResponse, error) {
		var asked state.QueryRequest
		if err := json.Unmarshal([]byte(text), &asked.Query); err != nil {
			t.Fatal(err)
		}
		return store.(state.Querier).Query(ctx, &asked)
	}
	// found says which of the two a single read, a bulk read and a query find.
	found := func() string {
		var names []string
		for _, key := range []string{"app||brief", "app||lasting"} {
			got, err := store.Get(ctx, &state.GetRequest{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			if got.Data != nil {
				names = append(names, "get "+key)
			}
		}
		bulk, err := store.BulkGet(ctx, []state.GetRequest{{Key: "app||brief"}, {Key: "app||lasting"}}, state.BulkGetOpts{})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"app||brief", "app||lasting"} {
			for _, got := range bulk {
				if got.Key == key && got.Data != nil {
					names = append(names, "bulk "+key)
				}
			}
		}
		rows, err := query(`{"filter": {"EQ": {"kind": "cart"}}}`)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(rows.Results, func(a, b state.QueryItem) int { return strings.Compare(a.Key, b.Key) })
		for _, row := range rows.Results {
			names = append(names, "query "+row.Key)
		}
		return strings.Join(names, ", ")
	}
	if got := found(); got != "get app||brief, get app||lasting, bulk app||brief, bulk app||lasting, query app||brief, query app||lasting" {
		t.Errorf("at first there are: %s", got)
	}
	run(t, program, address, "clock", "advance", (5 * time.Second).String())
	if got := found(); got != "get app||lasting, bulk app||lasting, query app||lasting" {
		t.Errorf("five seconds later there are: %s", got)
	}

	// As in the service, which leaves the merge to the client.
	if _, err := query(`{"sort": [{"key": "kind"}]}`); err == nil || !strings.Contains(err.Error(), "cross partition query") {
		t.Errorf("a query in order over all partitions: %v", err)
	}
}
