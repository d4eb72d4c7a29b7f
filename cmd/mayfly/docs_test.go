// SPDX-License-Identifier: MIT

// The commands that the docs show, run.
//
// The rule, for all pages: a block of code marked sh is run with bash, the blocks of a page one
// after the other, in one directory, beside a server with shop/carts and its item 1 of ada,
// unless the page makes these itself. A block marked text behind it is what it prints, where …
// stands for anything, and a time to the millisecond for any such time. A line that begins with
// "mayfly serve" starts a server, in place of the one that had its port; the ports 8081 and 8082
// are others in the test. Lines that export something hold for the blocks after them. Every
// other block with a command is listed in notRun, with the reason.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly"
)

// notRun has the beginnings of lines that are not run, by their pages.
var notRun = map[string]map[string]string{
	"README.md": {
		"go run ./cmd/mayfly":        "it is what the tests build and start",
		"go run ./cmd/mayfly serve ": "the regions are those of scripttest and of test/compat/python",
		"go test":                    "it is what runs this",
		"npm install":                "it needs a registry: test/compat/shown",
		"go mod init":                "the same",
		"go get":                     "the same",
	},
	"docs/start.md": {
		"go run ./cmd/mayfly": "it is what the tests build and start",
		"npm install":         "it needs a registry: test/compat/shown",
		"go mod init":         "the same",
		"go get":              "the same",
		"pip install":         "the same",
		"cargo ":              "the same",
		"keytool":             "it needs a JDK: test/compat/shown",
	},
	"docs/ci.md": {
		"mayfly serve --memory --test-clock &": "it is for a project with tests of its own: test/compat/shown has one",
		"until mayfly health":                  "the same",
		"npm test":                             "the same",
	},
	"docs/cli.md": {
		"mayfly ls --endpoint https://db.example":       "it is for another machine",
		"mayfly import --from 'AccountEndpoint=":        "it is for an account: testTransfer moves one",
		"MAYFLY_FROM='AccountEndpoint=…' mayfly import": "the same",
		"mayfly bench": "it takes long: testBench",
		"mayfly man":   "it needs man, or writes to a directory of the system: testManual",
	},
	"docs/cluster.md": {
		"mayfly serve --engine":   "it needs PostgreSQL: test/compose starts such nodes",
		"mayfly cluster failover": "the same: test/compat/cluster",
		"mayfly cluster finalize": "the same: testEngine",
		"mayfly cluster split":    "scripttest splits",
		"bin/mayfly-tikv":         "it needs TiKV: engine/tikv/run",
		"(cd engine/tikv":         "the same",
		"test/cluster/run":        "it measures, with PostgreSQL: .ci/run runs the program without -costs",
	},
	"docs/coming-from.md": {
		"mayfly serve --listen 8082": "it is beside the emulator",
		"mayfly import":              "it is for the emulator's data, and MongoDB's: testTransfer",
	},
	"docs/configuration.md": {"": "it is made from the program"},
	"docs/docker.md":        {"docker ": "it needs a container engine", "openssl": "it is for that"},
	"docs/operating.md": {
		"openssl":                       "it makes a key: testKeyFile takes such a file",
		"mayfly serve --listen 0.0.0.0": "it listens for all machines: testKeyFile",
		"mayfly doctor":                 "the same: testDoctor",
		"mayfly backup":                 "it writes to a directory of the system: docs/cli.md has the same, and it is run",
		"mayfly restore":                "the same",
	},
	"docs/operations.md": {"curl -H": "it takes half a minute: testPprof", "go tool pprof": "the same"},
	"docs/ttl.md": {
		"mayfly clock": "the machine's clock must be wrong: testClock runs both, and internal/scripttest after a jump",
	},
}

// empty are the pages that make shop/carts themselves.
var empty = []string{"docs/start.md", "docs/cli.md", "docs/ttl.md"}

// docsBlock is a block of code of a page.
type docsBlock struct {
	language string // empty for an indented one
	line     int    // of its first line in the page
	lines    []string
}

// docsBlocks returns the blocks of code of a page.
func docsBlocks(text string) []docsBlock {
	var blocks []docsBlock
	fenced, indented := false, false
	for i, line := range strings.Split(text, "\n") {
		language, isFence := strings.CutPrefix(line, "```")
		code, isIndented := strings.CutPrefix(line, "    ")
		switch {
		case isFence && !fenced:
			blocks = append(blocks, docsBlock{language: language, line: i + 2})
			fenced = true
		case isFence:
			fenced = false
		case fenced:
			blocks[len(blocks)-1].lines = append(blocks[len(blocks)-1].lines, line)
		case isIndented && !indented:
			blocks = append(blocks, docsBlock{line: i + 1, lines: []string{code}})
		case isIndented:
			blocks[len(blocks)-1].lines = append(blocks[len(blocks)-1].lines, code)
		}
		indented = isIndented && !fenced
	}
	return blocks
}

// docsPages returns the pages by their names below the project's root.
func docsPages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("there are %d pages: %v", len(names), err)
	}
	pages := map[string]string{}
	for _, name := range append(names, "../../README.md", "../../deploy/README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.ToSlash(strings.TrimPrefix(name, "../../"))] = string(text)
	}
	return pages
}

// isCommand is a line that is one, in a block that is not run.
var isCommand = regexp.MustCompile(`(^|[|(;$&] ?|' |until |^bin/)(mayfly(-tikv)?|curl|docker|go (run|build|test|mod|get|tool)|npm|pip|cargo|keytool|openssl|test/\S+)( |$)`)

func testDocs(t *testing.T, b binary) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	for page, text := range docsPages(t) {
		blocks, runs := docsBlocks(text), false
		reasons := map[string]bool{}
		for _, block := range blocks {
			if block.language == "sh" {
				runs = true
				continue
			}
			for i, line := range block.lines {
				if !isCommand.MatchString(line) || block.language != "" && block.language != "text" && block.language != "bash" {
					continue
				}
				found := false
				for prefix := range notRun[page] {
					if strings.HasPrefix(line, prefix) {
						found, reasons[prefix] = true, true
					}
				}
				if !found {
					t.Errorf("%s:%d: %q is not run: mark its block sh, or give a reason", page, block.line+i, line)
				}
			}
		}
		for prefix := range notRun[page] {
			if !reasons[prefix] {
				t.Errorf("%s has no line %q that is not run", page, prefix)
			}
		}
		if runs {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				runDocs(t, b, page, blocks)
			})
		}
	}
	for page := range notRun {
		if _, ok := docsPages(t)[page]; !ok {
			t.Errorf("there is no page %s", page)
		}
	}
}

// docsRun is a page whose blocks are run.
type docsRun struct {
	t       *testing.T
	filled  bool // whether servers have shop/carts
	dir     string
	ports   *strings.Replacer
	env     []string
	exports []string
	servers map[string]*exec.Cmd // by their ports
}

const anyTime = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`

// quotedTime is a time in text that is quoted for a regular expression.
var quotedTime = regexp.MustCompile(strings.Replace(anyTime, `\.`, `\\\.`, 1))

func runDocs(t *testing.T, b binary, page string, blocks []docsBlock) {
	first, second := freePort(t), freePort(t)
	r := &docsRun{t: t, filled: !slices.Contains(empty, page), dir: t.TempDir(), ports: strings.NewReplacer("8081", first, "8082", second), servers: map[string]*exec.Cmd{}}
	r.env = []string{"HOME=" + r.dir, "PATH=" + filepath.Dir(string(b)) + string(os.PathListSeparator) + os.Getenv("PATH"), "MAYFLY_LISTEN=127.0.0.1:" + first, "MAYFLY_KEY=" + mayfly.WellKnownKey}
	t.Cleanup(func() {
		for _, s := range r.servers {
			r.stop(s)
		}
	})
	r.serve("mayfly serve")
	for i, block := range blocks {
		if block.language != "sh" {
			continue
		}
		got := r.block(block)
		if t.Failed() {
			t.Fatalf("in the block at %s:%d", page, block.line)
		}
		if i+1 < len(blocks) && blocks[i+1].language == "text" {
			want := strings.Join(blocks[i+1].lines, "\n")
			parts := strings.Split(quotedTime.ReplaceAllString(regexp.QuoteMeta(want), anyTime), "…")
			if !regexp.MustCompile(`^(?s:` + strings.Join(parts, `.*?`) + `)\s*$`).MatchString(trimLines(got)) {
				t.Errorf("%s:%d prints\n%s\nand not\n%s", page, block.line, got, want)
			}
		}
	}
}

// trimLines returns a text without spaces at the ends of its lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// block runs a block and returns what it prints.
func (r *docsRun) block(block docsBlock) string {
	r.t.Helper()
	var printed strings.Builder
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			printed.WriteString(r.script(strings.Join(lines, "\n")))
			lines = nil
		}
	}
	for _, line := range block.lines {
		line = strings.Replace(line, "go run ./cmd/mayfly", "mayfly", 1)
		switch {
		case strings.HasPrefix(line, "mayfly serve"):
			flush()
			r.serve(line)
		case strings.HasPrefix(line, "export "):
			flush()
			r.exports = append(r.exports, line)
		default:
			lines = append(lines, line)
		}
	}
	flush()
	return printed.String()
}

// bash prepares a script.
func (r *docsRun) bash(ctx context.Context, script string) *exec.Cmd {
	text := "set -euo pipefail\n" + strings.Join(append(r.exports, script), "\n")
	c := exec.CommandContext(ctx, "bash", "-c", r.ports.Replace(text))
	c.Dir, c.Env = r.dir, r.env
	return c
}

// script runs a script to its end, and returns what it prints.
func (r *docsRun) script(text string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	c := r.bash(ctx, text)
	var stderr journal
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		r.t.Errorf("%s\nends with %v and prints\n%s%s", text, err, out, stderr.String())
	}
	return string(out)
}

var listenFlag = regexp.MustCompile(`--listen[= ](?:\S*:)?([0-9]+)`)

// serve starts a server, and waits until it is ready.
func (r *docsRun) serve(line string) {
	r.t.Helper()
	port := "8081"
	if m := listenFlag.FindStringSubmatch(line); m != nil {
		port = m[1]
	}
	if before := r.servers[port]; before != nil {
		r.stop(before)
	}
	c := r.bash(context.Background(), "exec "+line)
	var stderr journal
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.servers[port] = c
	r.script(fmt.Sprintf("for _ in {1..300}; do mayfly health --endpoint http://127.0.0.1:%s >/dev/null 2>&1 && exit; kill -0 %d; sleep 0.1; done; exit 1", port, c.Process.Pid))
	if r.t.Failed() {
		r.t.Fatalf("%s does not start: %s", line, stderr.String())
	}
	if r.filled && !strings.Contains(line, "--init") {
		r.script(`mayfly get shop carts >/dev/null 2>&1 && exit
mayfly put shop carts --key-path /customer --ttl 1h
mayfly put shop carts '{"id":"1","customer":"ada","total":12.5}'`)
	}
}

func (r *docsRun) stop(c *exec.Cmd) {
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Error(err)
	}
	_ = c.Wait() // it ends by the signal, or well
}
