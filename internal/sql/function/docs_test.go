// SPDX-License-Identifier: MIT

package function

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page on the query language lists every function, and none that there is not.
func TestDocsListFunctions(t *testing.T) {
	text, err := os.ReadFile("../../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## Functions\n")
	part, _, _ = strings.Cut(part, "\n## ")
	listed := map[string]bool{}
	for _, name := range regexp.MustCompile("`([A-Z][A-Z0-9_]+)`").FindAllStringSubmatch(part, -1) {
		listed[name[1]] = true
		if functions[name[1]] == nil && !strings.HasPrefix(name[1], "ORDER") {
			t.Errorf("docs/query.md lists %s, which is no function", name[1])
		}
	}
	for _, f := range functions {
		// Names with an underscore before them are for the queries that clients merge.
		if !strings.HasPrefix(f.Name, "_") && !listed[f.Name] {
			t.Errorf("docs/query.md does not list %s", f.Name)
		}
	}
}
