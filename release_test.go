// SPDX-License-Identifier: MIT

package mayfly

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// THIRD_PARTY_NOTICES has every module that is linked into the binary, in its version. The
// checks for other platforms, and of the texts, are those of deploy/notices -check.
func TestNoticesAreCurrent(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/mayfly").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("THIRD_PARTY_NOTICES")
	if err != nil {
		t.Fatal(err)
	}
	listed, _, _ := strings.Cut(string(text), "\n====")
	lines := strings.Split(listed, "\n")
	for module := range strings.Lines(string(out)) {
		if module = strings.TrimSpace(module); module != "" && !slices.Contains(lines, module) {
			t.Errorf("%s is linked, and not in THIRD_PARTY_NOTICES: run go run -C deploy/notices .", module)
		}
	}
}

// What a release makes before it builds is ignored by git: else Go takes the tree for changed,
// and the version for a dirty one.
func TestReleaseLeavesTreeClean(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("this is no repository of git")
	}
	for _, made := range []string{"dist/artifacts.json", "release/man/mayfly.1.gz"} {
		if out, err := exec.Command(git, "check-ignore", "-q", made).CombinedOutput(); err != nil {
			t.Errorf("git does not ignore %s: %v %s", made, err, out)
		}
	}
	text, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, hooks, _ := strings.Cut(string(text), "hooks:\n")
	hooks, _, _ = strings.Cut(hooks, "builds:")
	if !strings.Contains(hooks, "- deploy/release-files\n") || strings.Contains(hooks, ">") {
		t.Errorf("the hooks write elsewhere than deploy/release-files:\n%s", hooks)
	}
}

// systemd accepts the unit.
func TestUnitIsValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit, err := os.ReadFile("deploy/mayfly.service")
	if err != nil {
		t.Fatal(err)
	}
	const binary = "/usr/local/bin/mayfly"
	if !strings.Contains(string(unit), "ExecStart="+binary+" serve") {
		t.Error("the unit does not start the server")
	}
	file := filepath.Join(t.TempDir(), "mayfly.service")
	// systemd wants the binary to be there.
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(unit), binary, "/bin/true")), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}
