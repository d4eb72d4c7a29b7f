// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layer is one row of the table in ARCHITECTURE.md: the packages of this module, and the
// third-party modules, that a package may import.
type layer struct {
	ours  string
	third string
}

// layers is the architecture. A package imports only packages of rows above its own. Test
// files may import any package of this module, and the testing libraries.
var layers = map[string]layer{
	"internal/value":               {"", "github.com/go-json-experiment/json github.com/twmb/murmur3"},
	"internal/invariant":           {"", ""},
	"internal/analysis":            {"", ""},
	"internal/geo":                 {"internal/value", ""},
	"internal/clock":               {"", "golang.org/x/sys"},
	"internal/memory":              {"", ""},
	"internal/ru":                  {"", ""},
	"internal/binaryjson":          {"internal/value", "github.com/go-json-experiment/json"},
	"internal/rntbd":               {"internal/value", ""},
	"internal/kv":                  {"", ""},
	"internal/kv/pebblekv":         {"internal/kv", "github.com/cockroachdb/pebble/v2"},
	"internal/kv/pebblekv/rawtest": {"", "github.com/cockroachdb/pebble/v2"},
	"internal/kv/pgkv":             {"internal/kv", "github.com/jackc/pgx/v5"},
	"internal/kv/pgkv/pgtest":      {"", "github.com/jackc/pgx/v5"},
	"internal/kv/kvtest":           {"internal/kv", "pgregory.net/rapid"},
	"internal/catalog":             {"internal/kv internal/value", ""},
	"internal/cluster":             {"internal/catalog internal/clock internal/kv", ""},
	"internal/peer":                {"", ""},
	"internal/client":              {"internal/value", ""},
	"internal/transfer":            {"internal/client internal/value", ""},
	"internal/rowcache":            {"", ""},
	"internal/index":               {"internal/analysis internal/catalog internal/geo internal/kv internal/memory internal/value", ""},
	"internal/store":               {"internal/catalog internal/clock internal/index internal/invariant internal/kv internal/memory internal/rowcache internal/ru internal/value", ""},
	"internal/sql/syntax":          {"internal/value", ""},
	"internal/sql/datum":           {"internal/value", ""},
	"internal/sql":                 {"internal/sql/datum internal/sql/function internal/sql/syntax internal/value", ""},
	"internal/sql/function": {
		"internal/analysis internal/geo internal/sql/datum internal/sql/syntax internal/value", ""},
	"internal/oracle": {"internal/sql/datum internal/sql/function internal/sql/syntax", ""},
	"internal/sql/clientplan": {
		"internal/sql internal/sql/datum internal/sql/function internal/sql/syntax internal/value", ""},
	"internal/query":               {"internal/analysis internal/catalog internal/geo internal/index internal/kv internal/memory internal/ru internal/sql internal/sql/datum internal/sql/function internal/sql/syntax internal/store internal/value", ""},
	"internal/script":              {"internal/value", "github.com/dop251/goja"},
	"internal/purge":               {"internal/catalog internal/clock internal/kv internal/ru internal/store", ""},
	"internal/erase":               {"internal/catalog internal/clock internal/kv", ""},
	"internal/engine":              {"internal/catalog internal/clock internal/cluster internal/erase internal/kv internal/memory internal/purge internal/query internal/ru internal/script internal/sql internal/sql/clientplan internal/sql/datum internal/sql/function internal/sql/syntax internal/store internal/value", ""},
	"internal/api":                 {"internal/binaryjson internal/catalog internal/cluster internal/engine internal/memory internal/query internal/ru internal/sql internal/sql/clientplan internal/sql/function internal/sql/syntax internal/store internal/value", ""},
	"internal/docs":                {"", ""},
	"internal/rest":                {"internal/api internal/catalog internal/clock internal/cluster internal/docs internal/engine internal/kv internal/memory internal/peer internal/purge internal/query internal/rntbd internal/ru internal/sql internal/store internal/value", "github.com/prometheus/client_golang golang.org/x/sync golang.org/x/sys"},
	"internal/direct/directclient": {"internal/rntbd", ""},
	"internal/direct":              {"internal/api internal/catalog internal/engine internal/kv internal/memory internal/rntbd", ""},
	".": {"internal/api internal/catalog internal/clock internal/cluster internal/direct internal/docs internal/engine internal/invariant internal/kv internal/kv/pebblekv internal/memory " +
		"internal/erase internal/purge internal/query internal/rest internal/ru internal/script internal/sql internal/store internal/value", ""},
	"mayflytest":          {".", ""},
	"internal/scripttest": {"*", "github.com/cockroachdb/datadriven"},
	"internal/cli":        {". internal/catalog internal/client internal/clock internal/engine internal/kv internal/kv/pgkv internal/store internal/transfer internal/value", "github.com/alecthomas/kong golang.org/x/term"}, // the shapes of the answers that it prints, and durations
	"cmd/mayfly":          {"internal/cli", ""},
}

// testLibraries may be imported by test files, and by no other.
var testLibraries = []string{
	"github.com/anishathalye/porcupine",
	"github.com/cockroachdb/datadriven",
	"github.com/cockroachdb/pebble/v2/vfs", // the file system that crashes
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// wallClock lists the packages that may call time.Now outside of tests, with the reason.
// Database time comes only from package clock.
var wallClock = map[string]string{
	"internal/script":              "measures how long scripts take",
	"internal/clock":               "it is the database's time",
	"internal/kv/pebblekv":         "the engine's time is the machine's",
	"internal/kv/pgkv":             "limits of connections; the engine's time is the server's",
	"internal/kv/kvtest":           "the engine's time is the machine's, unless a test sets it",
	"internal/api":                 "lines in the log are limited in rate",
	"internal/store":               "clients that were answered are awaited for a moment",
	"internal/cluster":             "other nodes are watched by this node's own watch, which costs availability only",
	"internal/engine":              "throughput is a rate of real time, not of the database's",
	"internal/direct/directclient": "it signs requests",
	"internal/transfer":            "the time between two saves, and the time of servers that do not tell theirs",
	"internal/client":              "it signs requests, and repeats them for a time",
	"internal/direct":              "signature dates and time limits of connections",
	"internal/rest":                "signature dates are compared with the wall clock, not with the database's time",
	"internal/cli":                 "start-up figures",
	".":                            "validity of the certificate",
	"mayflytest":                   "deadlines of a test's client",
}

const (
	module       = "github.com/mayflydb/mayfly"
	maxFileLines = 800
	licenceLine  = "// SPDX-License-Identifier: MIT\n"
)

// sourceFile is one Go file of the module.
type sourceFile struct {
	name string // relative to the module's root
	dir  string
	test bool
	text []byte
	tree *ast.File
}

// sourceFiles parses every Go file of this module. Directories with a go.mod of their own
// belong to other modules.
func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, other := os.Stat(filepath.Join(name, "go.mod"))
			hidden := strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"
			if name != "." && (hidden || other == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		files = append(files, sourceFile{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), text, tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, f := range sourceFiles(t) {
		l, known := layers[f.dir]
		if !known {
			t.Errorf("%s: package %s has no row in the table: add one with a reason, or find it a home", f.name, f.dir)
			continue
		}
		for _, spec := range f.tree.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if !allowed(l, f.test, imported) {
				t.Errorf("%s imports %s, which its row in the table does not allow", f.name, imported)
			}
		}
	}
}

func allowed(l layer, test bool, imported string) bool {
	if imported == module || strings.HasPrefix(imported, module+"/") {
		own := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if own == "" {
			own = "."
		}
		return test || l.ours == "*" || slices.Contains(strings.Fields(l.ours), own)
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	modules := strings.Fields(l.third)
	if test {
		modules = append(modules, testLibraries...)
	}
	return slices.ContainsFunc(modules, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	})
}

// A program that embeds the database does not carry the client of an engine that it does not
// use, and the default binary carries that of PostgreSQL alone.
func TestImportsOfTheLibraryHaveNoSharedEngine(t *testing.T) {
	deps := func(pkg, client string) []string {
		list := exec.Command("go", "list", "-deps", pkg)
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(strings.Fields(string(out)), func(dep string) bool {
			return !strings.HasPrefix(dep, client)
		})
	}
	const postgres = "github.com/jackc/"
	for _, pkg := range []string{".", "./mayflytest"} {
		if found := deps(pkg, postgres); len(found) > 0 {
			t.Errorf("package %s links %s", pkg, found)
		}
	}
	if len(deps("./internal/kv/pgkv", postgres)) == 0 {
		t.Error("the engine has another client than this test looks for")
	}
	for _, client := range []string{"github.com/tikv/", "github.com/pingcap/", "google.golang.org/grpc"} {
		if found := deps("./cmd/mayfly", client); len(found) > 0 {
			t.Errorf("the default binary links %s", found)
		}
	}
}

var headerName = regexp.MustCompile(`^"(?i:x-ms-[a-z0-9-]+)"$`)

// ofHTTP are the packages that speak HTTP, as a server or as a client.
var ofHTTP = []string{"internal/rest", "internal/scripttest", "internal/client", "internal/transfer", "internal/cli"}

// HTTP is one transport of several: the packages below it neither import it nor name its
// headers.
func TestHTTPStaysInItsTransport(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if f.test || !strings.HasPrefix(f.dir, "internal/") || slices.Contains(ofHTTP, f.dir) {
			continue
		}
		for _, spec := range f.tree.Imports {
			if strings.HasPrefix(spec.Path.Value, `"net/http`) {
				t.Errorf("%s imports net/http: the transport fills a request with fields", f.name)
			}
		}
		// A message may mention a header, as some of the service's do; a literal that is
		// just a header's name may not occur.
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && headerName.MatchString(text.Value) {
				t.Errorf("%s has the header %s", f.name, text.Value)
			}
			return true
		})
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string]int{}
	for _, f := range sourceFiles(t) {
		if f.test {
			continue
		}
		comments[f.dir] += 0
		if f.tree.Doc != nil {
			comments[f.dir]++
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want one", dir, n)
		}
	}
}

func TestFilesAreShortAndLicensed(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by subject", f.name, n, maxFileLines)
		}
		if !bytes.HasPrefix(f.text, []byte(licenceLine)) && !bytes.HasPrefix(f.text, []byte("//go:build")) {
			t.Errorf("%s does not begin with %q", f.name, strings.TrimSpace(licenceLine))
		}
	}
}

func TestDatabaseTimeComesFromTheClock(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if f.test || wallClock[f.dir] != "" {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Now" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s calls time.Now: take the time from package clock, or give the package a reason", f.name)
				}
			}
			return true
		})
	}
}

func TestArchitecturePageHasTheTable(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range layers {
		name := strings.TrimPrefix(pkg, "internal/")
		if !bytes.Contains(page, []byte("| `"+name+"`")) {
			t.Errorf("ARCHITECTURE.md has no row for `%s`", name)
		}
	}
}
