// SPDX-License-Identifier: MIT

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	// codeLine is a line of a block of code, codeSpan a piece of code in a text.
	codeLine = regexp.MustCompile("(?m)^    .*$|^```[^`]*^```$")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	// commandLine is what follows the program's name, up to what is no more part of it.
	commandLine = regexp.MustCompile(`(?m)(?:^|[\s/$(` + "`" + `])mayfly(?:-tikv)? ((?:--)?[a-z][^|;>#&` + "`" + `\n]*)`)
	quoted      = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"`)
	remark      = regexp.MustCompile(`\s{2,}.*$`)
	aFlag       = regexp.MustCompile(`^--[a-z-]+`)
)

// unknown returns what a command line names that the program does not have; empty for nothing.
func unknown(app *kong.Node, line string) string {
	node := app
	line = remark.ReplaceAllString(quoted.ReplaceAllString(line, "TEXT"), "")
	words := strings.Fields(line)
	flags := slices.Clone(app.Flags)
	for _, word := range words {
		if flag := aFlag.FindString(word); flag != "" {
			flags := slices.Clone(flags)
			if node.DefaultCmd != nil {
				flags = append(flags, node.DefaultCmd.Flags...)
			}
			if !slices.ContainsFunc(flags, func(f *kong.Flag) bool { return "--"+f.Name == flag || "--no-"+f.Name == flag }) {
				return fmt.Sprintf("%s has no flag %s", node.FullPath(), flag)
			}
			continue
		}
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		if i >= 0 {
			node = node.Children[i]
			flags = append(flags, node.Flags...)
		} else if len(node.Children) > 0 && !strings.HasPrefix(word, "-") {
			return fmt.Sprintf("%s has no command %s", node.FullPath(), word)
		}
	}
	return ""
}

// Every command line in the docs names a command, and flags, that there are.
func TestDocsNameCommands(t *testing.T) {
	var c commands
	k, err := kong.New(&c, options("mayfly")...)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`MAYFLY_[A-Z_]*[A-Z]`).FindAllString(string(text), -1) {
			if !slices.Contains(variables(k.Model.Node), name) && !slices.Contains(append(notSettings, "MAYFLY_BINARY", "MAYFLY_FROM"), name) {
				t.Errorf("%s: there is no setting %s", filepath.Base(page), name)
			}
		}
		code := codeLine.FindAllString(string(text), -1)
		for _, piece := range append(code, codeSpan.FindAllString(codeLine.ReplaceAllString(string(text), ""), -1)...) {
			for _, line := range commandLine.FindAllStringSubmatch(piece, -1) {
				found++
				if what := unknown(k.Model.Node, line[1]); what != "" {
					t.Errorf("%s: %s: %s", filepath.Base(page), strings.TrimSpace(line[0]), what)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d command lines were found", found)
	}
	// The check itself finds what is wrong.
	for line, right := range map[string]bool{
		"serve --memory --test-clock": true, "ttl status shop  --what-it-does": true, "ttl --json": true, "query shop carts 'a --b'": true,
		"server": false, "ttl erase --now": false, "ttl stat": false, "serve --in-memory": false, "--memories": false,
	} {
		if what := unknown(k.Model.Node, line); (what == "") != right {
			t.Errorf("mayfly %s: %q", line, what)
		}
	}
}
