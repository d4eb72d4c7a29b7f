// SPDX-License-Identifier: MIT

// Command notices writes THIRD_PARTY_NOTICES: the licences of everything that is linked into a
// released binary, on any platform. With -check it only says whether the file is current.
//
//	go run -C deploy/notices . [-check]
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	binary = "./cmd/mayfly"
	file   = "THIRD_PARTY_NOTICES"
	head   = `Mayfly is linked with the software below. Its own licence is in the file LICENSE.
This file is made by deploy/notices from what is linked on all platforms of a release.
`
)

// platforms are those of a release. Only on Linux a build may use cgo.
var platforms = []struct{ os, arch, cgo string }{
	{"linux", "amd64", "0"}, {"linux", "amd64", "1"}, {"linux", "arm64", "0"},
	{"darwin", "amd64", "0"}, {"darwin", "arm64", "0"}, {"windows", "amd64", "0"}, {"windows", "arm64", "0"},
}

// isLicence matches the names of files with the terms of a module, or of a part of it.
var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "only say whether the file is current")
	root := flag.String("root", "../..", "the repository")
	flag.Parse()
	text, err := notices(*root)
	if err != nil {
		log.Fatal(err)
	}
	name := filepath.Join(*root, file)
	if !*check {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			log.Fatal(err)
		}
		return
	}
	if present, err := os.ReadFile(name); err != nil || !bytes.Equal(present, text) {
		log.Fatalf("%s is not current (%v): run go run -C deploy/notices .", file, err)
	}
}

// notices returns the text of the file.
func notices(root string) ([]byte, error) {
	modules := map[string]bool{}     // with their versions
	texts := map[string][]string{}   // the modules that have a text
	seen := map[[2]string]struct{}{} // modules and files
	for _, p := range platforms {
		c := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{end}}{{end}}{{.Dir}}", binary)
		c.Dir, c.Stderr = root, os.Stderr
		c.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED="+p.cgo)
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("list what is linked on %s/%s: %w", p.os, p.arch, err)
		}
		for line := range strings.Lines(string(out)) {
			part := strings.Split(strings.TrimSpace(line), "\t")
			if len(part) != 3 {
				continue // the standard library, or the project itself
			}
			modules[part[0]] = true
			if err := collect(texts, seen, part[0], part[1], part[2]); err != nil {
				return nil, err
			}
		}
	}
	goRoot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	const library = "The Go standard library"
	if err := collect(texts, seen, library, strings.TrimSpace(string(goRoot)), strings.TrimSpace(string(goRoot))); err != nil {
		return nil, err
	}
	for m := range modules {
		if !slices.ContainsFunc(slices.Collect(maps.Values(texts)), func(of []string) bool { return slices.Contains(of, m) }) {
			return nil, fmt.Errorf("no licence found for %s", m)
		}
	}
	return render(slices.Sorted(maps.Keys(modules)), texts), nil
}

// collect reads the licences of a module that hold for one of its packages: those in the
// package's directory and above it.
func collect(texts map[string][]string, seen map[[2]string]struct{}, module, root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if e.IsDir() || !isLicence.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			if _, known := seen[[2]string{module, name}]; known {
				continue
			}
			seen[[2]string{module, name}] = struct{}{}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			key := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
			if !slices.Contains(texts[key], module) {
				texts[key] = append(texts[key], module)
			}
		}
		if dir == root {
			return nil
		}
		up := filepath.Dir(dir)
		if up == dir || !strings.HasPrefix(dir, root) {
			return errors.New(dir + " is outside its module")
		}
		dir = up
	}
}

// render writes the modules, and then each text once.
func render(modules []string, texts map[string][]string) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	b.WriteString("\n")
	for _, m := range modules {
		fmt.Fprintln(&b, m)
	}
	for _, of := range texts {
		slices.Sort(of)
	}
	all := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(slices.Compare(texts[a], texts[b]), strings.Compare(a, b))
	})
	for _, text := range all {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(texts[text], "\n"), text)
	}
	return b.Bytes()
}
