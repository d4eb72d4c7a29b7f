// SPDX-License-Identifier: MIT

package compat

import (
	"os/exec"
	"regexp"
	"testing"
)

// TestExample runs the program that the README shows, by the real time.
func TestExample(t *testing.T) {
	s := startData(t, t.TempDir())
	cmd := exec.CommandContext(limited(t), "go", "run", "./example")
	cmd.Env = append(cmd.Environ(), "MAYFLY_CONNECTION="+s.connection(s.http()))
	out, err := cmd.CombinedOutput()
	want := regexp.MustCompile(`(?s)^now: \{"id":"1","customer":"ada","goods":\["tea"\],.*\}\nsix seconds later: .*RESPONSE 404: 404 Not Found.*$`)
	if err != nil || !want.Match(out) {
		t.Errorf("the example ended with %v and printed:\n%s", err, out)
	}
}
