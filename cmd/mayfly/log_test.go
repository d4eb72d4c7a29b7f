// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// testLog: with --log-format=json every line on standard error is a JSON object, and the log
// tells of refusals, of every request if asked to, and of the keys, without showing them.
func testLog(t *testing.T, b binary) {
	p := b.start(t, []string{"MAYFLY_KEY=" + ownKey}, "serve", anyPort, "--memory", "--log-format=json", "--log-requests", "--read-only-key="+strings.Repeat("c2Vjb25k", 6))
	p.get(t, "/", ownKey)
	p.get(t, "/", strings.Repeat("d3Jvbmch", 6))
	p.stop(t, syscall.SIGTERM)
	lines := map[any]map[string]any{}
	for text := range strings.Lines(p.stderr.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("a line is no JSON: %q", text)
		}
		lines[line["msg"]] = line
	}
	if line := lines["request"]; line["path"] != "/" || line["status"] != 200.0 {
		t.Errorf("the request is logged as %v", line)
	}
	if line := lines["a request was refused: its credential is missing or wrong"]; line["status"] != 401.0 || line["level"] != "WARN" {
		t.Errorf("the refusal is logged as %v", line)
	}
	if line := lines["audit"]; line["what"] != "keys" || len(line["fingerprints"].([]any)) != 2 {
		t.Errorf("the keys are logged as %v", line)
	}
	if log := p.stderr.String(); strings.Contains(log, ownKey) || strings.Contains(log, "c2Vjb25k") || lines["stopping after the requests under way"] == nil {
		t.Errorf("the log is %s", log)
	}
	b.fails(t, nil, "--log-format", "serve", anyPort, "--memory", "--log-format=xml")
}
