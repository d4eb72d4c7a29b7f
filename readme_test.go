// SPDX-License-Identifier: MIT

package mayfly

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The programs in the README are those that test/compat runs with the real SDKs.
func TestReadmeShowsTheExamplesThatAreRun(t *testing.T) {
	readme := read(t, "README.md")
	for _, name := range []string{"test/compat/js/example.mjs", "test/compat/go/example/main.go"} {
		_, program, _ := strings.Cut(read(t, name), "\n") // without the licence line
		if !strings.Contains(readme, strings.TrimSpace(program)) {
			t.Errorf("README.md does not show %s as it is", name)
		}
	}
}

// The README has the two commands that a newcomer needs.
func TestReadmeShowsTheCommands(t *testing.T) {
	readme := read(t, "README.md")
	for _, command := range []string{"    go run ./cmd/mayfly\n", "    go test ./...\n"} {
		if !strings.Contains(readme, command) {
			t.Errorf("README.md does not show %q", command)
		}
	}
	if !strings.Contains(readme, WellKnownKey) {
		t.Error("README.md does not show the connection string that the server prints")
	}
}

// The page on the SDKs names the versions that are installed.
func TestCompatNamesTheVersions(t *testing.T) {
	page := read(t, "test/compat/README.md")
	for name, version := range map[string]*regexp.Regexp{
		"go/go.mod":               regexp.MustCompile(`sdk/data/(azcosmos v\S+)`),
		"js/package.json":         regexp.MustCompile(`"(@azure/cosmos": "[^"]+)"`),
		"python/requirements.txt": regexp.MustCompile(`(?m)^(azure-cosmos==.+)$`),
		"java/pom.xml":            regexp.MustCompile(`<artifactId>(azure-cosmos</artifactId>\s+<version>[^<]+)<`),
	} {
		found := version.FindStringSubmatch(read(t, "test/compat/"+name))
		if found == nil {
			t.Errorf("%s names no SDK", name)
			continue
		}
		words := regexp.MustCompile(`"?: "|==|</artifactId>\s+<version>`).ReplaceAllString(found[1], " ")
		if !strings.Contains(page, "| "+words+" |") {
			t.Errorf("test/compat/README.md does not name %s", words)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
