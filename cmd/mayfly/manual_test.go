// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every command has help with examples or needs none, and a manual page; shells complete
// commands and flags.
func testManual(t *testing.T, b binary) {
	dir := t.TempDir()
	b.ok(t, nil, "man", dir)
	for page, want := range map[string]string{
		"mayfly.1": ".SH COMMANDS", "mayfly-import.1": `\-\-follow`, "mayfly-ttl-events.1": `\-\-cursor=CURSOR`, "mayfly-serve.1": "MAYFLY_LISTEN", "mayfly-backup.1": "mayfly backup \\-\\-to /backups/mayfly",
	} {
		raw, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s lacks %q, %v:\n%s", page, want, err, raw)
		}
	}
	if man, err := exec.LookPath("mandoc"); err == nil {
		pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
		if out, err := exec.Command(man, append([]string{"-T", "lint", "-W", "error"}, pages...)...).CombinedOutput(); err != nil {
			t.Errorf("mandoc: %v\n%s", err, out)
		}
	}
	if got := b.ok(t, nil, "completion", "fish"); !strings.Contains(got, "complete -c mayfly") || !strings.Contains(got, "-l follow") {
		t.Errorf("fish:\n%s", got)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not here to complete anything")
	}
	script := b.ok(t, nil, "completion", "bash")
	for line, want := range map[string][]string{
		"mayfly im":                {"import"},
		"mayfly import --fol":      {"--follow"},
		"mayfly ttl ev":            {"events"},
		"mayfly ttl events a b --": {"--follow", "--cursor=", "--json"},
		"mayfly --lis":             {"--listen="},
		"mayfly clock ":            {"advance", "freeze"},
	} {
		words := strings.Split(line, " ")
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+w+"'")
		}
		out, err := exec.Command(bash, "-c", script+"\nCOMP_WORDS=("+strings.Join(quoted, " ")+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _mayfly; echo \"${COMPREPLY[@]}\"").CombinedOutput()
		got := strings.Fields(string(out))
		for _, w := range want {
			if err != nil || !slices.Contains(got, w) {
				t.Errorf("%q is completed with %q, %v, want %s", line, got, err, w)
			}
		}
		if slices.Contains(want, "--follow") && len(words) == 3 && len(got) != 1 {
			t.Errorf("%q is completed with %q", line, got)
		}
	}
}
