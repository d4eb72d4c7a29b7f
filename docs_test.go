// SPDX-License-Identifier: MIT

package mayfly

import (
	"html"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/docs"
)

var (
	pageID   = regexp.MustCompile(` id="([^"]+)"`)
	pageLink = regexp.MustCompile(` (?:href|src)="([^"]+)"`)
	pageTag  = regexp.MustCompile(`<[^>]*>`)
)

// builtSite returns the site's files.
func builtSite(t *testing.T) map[string]docs.File {
	t.Helper()
	files, err := site.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every page is in the site, and what it links to is there: pages, headings and pictures.
func TestDocsSiteLinks(t *testing.T) {
	files, names := builtSite(t), 0
	for name, file := range files {
		if file.ContentType == "image/png" {
			continue
		}
		names++
		for _, to := range pageLink.FindAllStringSubmatch(string(file.Body), -1) {
			address := html.UnescapeString(to[1])
			if strings.HasPrefix(address, "https://") {
				continue
			}
			path, anchor, _ := strings.Cut(address, "#")
			target := name
			if path != "" {
				var ours bool
				if target, ours = strings.CutPrefix(path, docs.Prefix); !ours {
					if !slices.Contains([]string{"/_explorer/", "/_explorer/icon.svg", "/_explorer/style.css", "/_explorer/docs.css", "/_explorer/docs.js"}, address) {
						t.Errorf("page %q leads to %s, outside of the site", name, address)
					}
					continue
				}
			}
			other, ok := files[target]
			if !ok {
				t.Errorf("page %q leads to %s, and there is no such page", name, address)
				continue
			}
			if anchor != "" && !slices.ContainsFunc(pageID.FindAllStringSubmatch(string(other.Body), -1), func(id []string) bool { return html.UnescapeString(id[1]) == anchor }) {
				t.Errorf("page %q leads to %s, and there is no such heading", name, address)
			}
		}
	}
	all := 0
	if err := fs.WalkDir(pages, ".", func(name string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			all++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if names != all || names < 25 {
		t.Errorf("the site has %d pages of %d files", names, all)
	}
}

// Every page can be found: in the list of all pages, or by a link of a page that is there.
func TestDocsSiteHasNoLostPage(t *testing.T) {
	files := builtSite(t)
	found, next := map[string]bool{"": true}, []string{""}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		for _, to := range pageLink.FindAllStringSubmatch(string(files[name].Body), -1) {
			path, _, _ := strings.Cut(to[1], "#")
			if target, ours := strings.CutPrefix(path, docs.Prefix); ours && !found[target] {
				found[target] = true
				next = append(next, target)
			}
		}
	}
	for name := range files {
		if !found[name] {
			t.Errorf("nothing leads to %q", name)
		}
	}
}

// The pages keep to the explorer's policy: no styles and no scripts but those of files.
func TestDocsSiteKeepsToThePolicy(t *testing.T) {
	for name, file := range builtSite(t) {
		if file.ContentType == "image/png" {
			continue
		}
		text := string(file.Body)
		if n := strings.Count(text, "<script"); n != 1 || !strings.Contains(text, `<script src="/_explorer/docs.js"></script>`) {
			t.Errorf("page %q has %d scripts", name, n)
		}
		for _, tag := range pageTag.FindAllString(text, -1) {
			if strings.Contains(tag, " style=") || strings.Contains(tag, "javascript:") || regexp.MustCompile(` on[a-z]+=`).MatchString(tag) || strings.HasPrefix(tag, "<style") {
				t.Errorf("page %q has %s", name, tag)
			}
		}
	}
}

// A person reads the pages in a browser, signed in or not, on a large screen and on a phone.
func TestExplorerDocs(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	b.press("Docs")
	b.await(`document.title === "Mayfly's pages" && document.readyState === "complete"`)
	b.shoot("docs")
	for name, file := range builtSite(t) {
		if file.ContentType == "image/png" {
			continue
		}
		b.visit("http://" + s.addr + docs.Prefix + name)
		b.await(`document.readyState === "complete" && document.querySelector("main h1").checkVisibility() && [...document.images].every(i => i.complete && i.naturalWidth > 0)`)
		b.resize(390, 800, true)
		b.shoot("docs-" + strings.ReplaceAll(name, "/", "-"))
		if wide := b.eval(`document.documentElement.scrollWidth`); wide.(float64) > 390 {
			t.Errorf("on a phone page %q is %v wide", name, wide)
		}
	}

	// On a large screen the list of all pages is beside them.
	b.resize(1280, 800, false)
	for _, name := range []string{"start", "operations", "explorer"} {
		b.visit("http://" + s.addr + docs.Prefix + name)
		b.await(`document.readyState === "complete" && document.querySelector("nav").getBoundingClientRect().right <= document.querySelector("main").getBoundingClientRect().left`)
		b.shoot("docs-" + name + "-large")
	}

	// On a phone the list of pages is below, and the header leads there.
	b.resize(390, 800, true)
	b.visit("http://" + s.addr + docs.Prefix + "ttl")
	b.press("All pages")
	b.await(`location.hash === "#pages"`)
	b.press("Start in five minutes")
	b.await(`document.querySelector("h1").textContent === "Start in five minutes"`)
	b.press("Java")
	b.await(`location.hash === "#java" && Math.abs(document.querySelector("#java").getBoundingClientRect().top) < 100`)

	// The colours are those that were chosen in the explorer.
	b.eval(`localStorage.setItem("theme", '"light"')`)
	b.reload()
	b.await(`getComputedStyle(document.documentElement).colorScheme === "light"`)

	// Nobody need sign in.
	b.visit("http://" + s.addr + "/")
	b.press("Sign out")
	b.shows("Open this server")
	b.press("Docs")
	b.await(`document.title === "Mayfly's pages"`)
}

// An image is built from a copy of the project without what .dockerignore names. The pages are
// in it.
func TestDocsArePartOfImages(t *testing.T) {
	var left, kept []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "!"); ok {
			kept = append(kept, name)
		} else if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "*") {
			left = append(left, line)
		}
	}
	if err := fs.WalkDir(pages, ".", func(name string, d fs.DirEntry, err error) error {
		out := slices.ContainsFunc(left, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
		if !d.IsDir() && out && !slices.Contains(kept, name) {
			t.Errorf(".dockerignore leaves out %s, which the binary serves", name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) == 0 {
		t.Error("nothing was read of .dockerignore")
	}
}
