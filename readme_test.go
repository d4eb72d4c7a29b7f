// SPDX-License-Identifier: MIT

package mayfly

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programsOf are the programs of each page, by their languages, with what runs them: a file that
// has them as they are, test/compat/shown, which takes them out of the page, or a sentence of
// the page that says that nothing does.
var programsOf = map[string]map[string]string{
	"README.md":                    {"js": "test/compat/shown", "go": "test/compat/shown mayflytest/mayflytest_test.go"},
	"docs/start.md":                {"js": "test/compat/js/example.mjs", "go": "test/compat/go/example/main.go", "python": "test/compat/python/example.py", "java": "test/compat/shown", "rust": "test/compat/shown", "csharp": "**The .NET SDK has not been run against Mayfly.**"},
	"docs/changefeed.md":           {"js": "test/compat/js/feed.mjs"},
	"docs/scripts.md":              {"js": "test/compat/js/script.mjs"},
	"docs/ci.md":                   {"python": "test/compat/shown"},
	"clients/javascript/README.md": {"js": "test/compat/shown"},
	"clients/python/README.md":     {"python": "test/compat/shown"},
	"clients/java/README.md":       {"java": "test/compat/shown"},
	"clients/dotnet/README.md":     {"csharp": "has neither been compiled nor run by our own tests"},
}

var program = regexp.MustCompile("(?ms)^```(js|go|python|java|rust|csharp|ts|bash)\n(.*?)\n```$")

// Every program of a page is run.
func TestProgramsOfPagesAreRun(t *testing.T) {
	taken := read(t, "test/compat/shown")
	for _, page := range allPages(t) {
		text, n := read(t, page), map[string]int{}
		for _, m := range program.FindAllStringSubmatch(text, -1) {
			language, source := m[1], m[2]
			runs := programsOf[page][language]
			n[language]++
			inFile := func(name string) bool {
				file, err := os.ReadFile(name)
				return err == nil && strings.Contains(string(file), source)
			}
			switch names := strings.Fields(runs); {
			case runs == "":
				t.Errorf("%s: nothing runs this program:\n%s", page, source)
			case slices.ContainsFunc(names, inFile):
			case names[0] == "test/compat/shown":
				// Its calls name the page, which is a variable for the README and the first page.
				block := regexp.MustCompile(fmt.Sprintf(`(?m)^( *)block ("\$page"|%s) .* %s\b`, regexp.QuoteMeta(page), language))
				if !strings.Contains(taken, page) || len(block.FindAllString(taken, -1)) < n[language] {
					t.Errorf("test/compat/shown does not run this program of %s:\n%s", page, source)
				}
			case !strings.Contains(text, runs):
				t.Errorf("%s does not show %s as it is, or say %[2]q:\n%s", page, runs, source)
			}
		}
		for language := range programsOf[page] {
			if n[language] == 0 {
				t.Errorf("%s has no program in %s", page, language)
			}
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
	page, start := read(t, "test/compat/README.md"), read(t, "docs/start.md")
	for name, version := range map[string]*regexp.Regexp{
		"go/go.mod":               regexp.MustCompile(`sdk/data/(azcosmos v\S+)`),
		"js/package.json":         regexp.MustCompile(`"(@azure/cosmos": "[^"]+)"`),
		"python/requirements.txt": regexp.MustCompile(`(?m)^(azure-cosmos==.+)$`),
		"rust/Cargo.toml":         regexp.MustCompile(`(?m)^(azure_data_cosmos = \{ version = "[^"]+)"`),
		"java/pom.xml":            regexp.MustCompile(`<artifactId>(azure-cosmos</artifactId>\s+<version>[^<]+)<`),
	} {
		found := version.FindStringSubmatch(read(t, "test/compat/"+name))
		if found == nil {
			t.Errorf("%s names no SDK", name)
			continue
		}
		words := regexp.MustCompile(`"?: "|==| = \{ version = "|</artifactId>\s+<version>`).ReplaceAllString(found[1], " ")
		if !strings.Contains(page, "| "+words+" |") {
			t.Errorf("test/compat/README.md does not name %s", words)
		}
		if !strings.Contains(start, "| "+words+" |") {
			t.Errorf("docs/start.md does not name %s", words)
		}
	}
}

// The page on compatibility has the versions and figures of the pages that it sums up.
func TestCompatibilityHasTheFigures(t *testing.T) {
	sources := read(t, "test/compat/README.md") + read(t, "test/compat/KNOWN.md")
	page := read(t, "docs/compatibility.md")
	known := strings.Count(strings.Split(read(t, "test/compat/KNOWN.md"), "\n## ")[1], ".spec.ts`") // of JavaScript
	figures := 0
	for _, figure := range regexp.MustCompile(`v?[0-9][0-9.,]*[0-9](?:-beta\.[0-9]+)?%?`).FindAllString(page, -1) {
		figures++
		if !strings.Contains(sources, figure) && figure != fmt.Sprint(known) {
			t.Errorf("docs/compatibility.md has %s, which test/compat does not", figure)
		}
	}
	if figures < 25 {
		t.Errorf("docs/compatibility.md has %d figures", figures)
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// headings returns the names that the headings of a page have in links to them.
func headings(page string) map[string]bool {
	names := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		first := name
		for n := 1; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		names[name] = true
	}
	return names
}

// allPages returns the names of all pages.
func allPages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, names := range []string{"docs/*.md", "*.md", "deploy/*.md", "clients/*/README.md", "test/compat/*.md"} {
		found, err := filepath.Glob(names)
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no pages %s: %v", names, err)
		}
		all = append(all, found...)
	}
	return all
}

// Every link within the project leads to a file that is there, and to a heading that it has;
// and the index of the pages leads to each of them.
func TestReadmeAndDocsLinkToWhatThereIs(t *testing.T) {
	all := allPages(t)
	linked := map[string][]string{} // what each page links to
	for _, page := range all {
		text := read(t, page)
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			name, anchor, _ := strings.Cut(l[1], "#")
			file := page
			if name != "" {
				file = filepath.Join(filepath.Dir(page), name)
			}
			linked[page] = append(linked[page], file)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, l[1], err)
			} else if anchor != "" && !headings(read(t, file))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", page, l[1])
			}
		}
	}
	for _, page := range all {
		if path.Dir(page) == "docs" && page != "docs/README.md" && !slices.Contains(linked["docs/README.md"], page) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
	if !slices.Contains(linked["README.md"], "docs/README.md") {
		t.Error("README.md does not link to docs/README.md")
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
