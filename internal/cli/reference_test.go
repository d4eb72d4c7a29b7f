// SPDX-License-Identifier: MIT

package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The page has every command, and every flag with its variable and default.
func TestReference(t *testing.T) {
	var c commands
	k, err := kong.New(&c, options("mayfly")...)
	if err != nil {
		t.Fatal(err)
	}
	page := reference(k.Model)
	for _, want := range []string{"| `--listen` | `MAYFLY_LISTEN` | `127.0.0.1:8081` |", "\n## mayfly ttl whatif\n", "\n## mayfly serve\n", "| `--ttl` |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, name := range variables(k.Model.Node) {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, name+",") && !strings.Contains(page, ", "+name) {
			t.Errorf("the page lacks %s", name)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|")-strings.Count(line, `\|`) != 5 {
			t.Errorf("the row %q has not four cells", line)
		}
	}
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page {
		t.Error("docs/configuration.md is not what the program says: go run ./cmd/mayfly help --markdown > docs/configuration.md")
	}
	if strings.Contains(page, "${") {
		t.Error("the page has a placeholder")
	}
}
