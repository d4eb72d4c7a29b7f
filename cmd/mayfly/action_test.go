// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly"
)

// testAction runs the program of the action for GitHub with the binary in place of a release,
// and uses what it leaves to later steps.
func testAction(t *testing.T, b binary) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	env, output := filepath.Join(dir, "env"), filepath.Join(dir, "output")
	c := exec.Command("../../deploy/action/start")
	c.Env = append(os.Environ(), "RUNNER_TEMP="+dir, "GITHUB_ENV="+env, "GITHUB_OUTPUT="+output,
		"INPUT_BINARY="+string(b), "INPUT_LISTEN=127.0.0.1:0", "INPUT_ARGUMENTS=--test-clock --log-level=warn")
	out, err := c.CombinedOutput()
	m := regexp.MustCompile(`process (\d+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid, _ := strconv.Atoi(string(m[1]))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGTERM) })
	values := map[string]string{}
	for _, file := range []string{env, output} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[name] = value
		}
	}
	if values["connection"] != values["MAYFLY_CONNECTION"] || !strings.HasSuffix(values["connection"], ";AccountKey="+mayfly.WellKnownKey+";") {
		t.Errorf("later steps get %v", values)
	}
	if pem, err := os.ReadFile(values["MAYFLY_CERTIFICATE"]); err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the certificate: %v: %s", err, pem)
	}
	// The clock can be moved.
	if o := b.run(t, []string{"MAYFLY_ENDPOINT=" + strings.TrimSuffix(values["endpoint"], "/")}, "clock", "advance", "1h"); o.code != 0 {
		t.Errorf("clock advance: %+v", o)
	}
	// One that cannot start fails the step, with the reason.
	c = exec.Command("../../deploy/action/start")
	c.Env = append(os.Environ(), "RUNNER_TEMP="+t.TempDir(), "INPUT_BINARY="+string(b), "INPUT_LISTEN="+strings.TrimPrefix(strings.TrimSuffix(values["endpoint"], "/"), "http://"))
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("a port that is taken: %v: %s", err, out)
	}
}
