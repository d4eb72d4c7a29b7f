// SPDX-License-Identifier: MIT

// Package docs makes a site of the project's pages: HTML of the Markdown that is read as files
// too. Links between pages lead to pages of the site.
package docs

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

const (
	// Prefix is the path below which the pages are served, and explorer that of the explorer,
	// which has their style.
	Prefix   = explorer + "docs/"
	explorer = "/_explorer/"
	// index is the file with the list of all pages, which is the site's first.
	index = "docs/README.md"
)

// File is a page, or a picture of one.
type File struct {
	ContentType string
	Body        []byte
}

// Site is a site, made when its first page is asked for.
type Site struct {
	files func() (map[string]File, error)
}

// New returns the site of files: Markdown and PNG.
func New(files fs.FS) *Site {
	return &Site{sync.OnceValues(func() (map[string]File, error) { return build(files) })}
}

// File returns the file at a path below Prefix, and whether there is one.
func (s *Site) File(name string) (File, bool, error) {
	files, err := s.files()
	f, ok := files[name]
	return f, ok, err
}

// Files returns all files by their paths below Prefix.
func (s *Site) Files() (map[string]File, error) { return s.files() }

// page is a page while the site is made.
type page struct {
	file, name string // in the project, and below Prefix
	title      string
	blocks     []block
}

// entry is a line of a list of links.
type entry struct{ text, to string }

// group is a part of the list of pages.
type group struct {
	title   string
	entries []entry
}

// nameOf returns where the site has a file: docs/ttl.md is ttl, and deploy/README.md is deploy.
func nameOf(file string) string {
	if file == index {
		return ""
	}
	name, isPage := strings.CutSuffix(strings.TrimPrefix(file, "docs/"), ".md")
	if dir, ok := strings.CutSuffix(name, "/README"); ok && isPage {
		return dir
	}
	return name
}

// maker makes a site.
type maker struct {
	pages  map[string]*page // by their files
	groups []group
	site   map[string]File
}

func build(files fs.FS) (map[string]File, error) {
	m := maker{pages: map[string]*page{}, site: map[string]File{}}
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		if path.Ext(file) == ".png" {
			m.site[nameOf(file)] = File{"image/png", body}
			return nil
		}
		p := &page{file: file, name: nameOf(file)}
		if p.blocks, err = parse(string(body)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(p.blocks) == 0 || p.blocks[0].kind != heading {
			return fmt.Errorf("%s does not begin with a title", file)
		}
		p.title = plain(p.blocks[0].texts[0])
		m.pages[file] = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	first := m.pages[index]
	if first == nil {
		return nil, fmt.Errorf("there is no %s", index)
	}
	m.contents(first)
	for _, p := range m.pages {
		m.site[p.name] = File{"text/html; charset=utf-8", m.frame(p)}
	}
	return m.site, nil
}

// target returns where a link of a page leads to in the site; nothing if the site does not have
// that file. The page is nil if it is a picture.
func (m *maker) target(from *page, to string) (string, *page) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
		return to, nil
	}
	file, anchor, hasAnchor := strings.Cut(to, "#")
	file = path.Join(path.Dir(from.file), file)
	p, name := m.pages[file], nameOf(file)
	if p != nil {
		name = p.name
	} else if _, ok := m.site[name]; !ok {
		return "", nil
	}
	if hasAnchor {
		name += "#" + anchor
	}
	return Prefix + name, p
}

// contents makes the list of pages of the tables of the first page. A table's first head is the
// name of a group, and the first cell of each row has a link to a page.
func (m *maker) contents(first *page) {
	for _, b := range first.blocks {
		if b.kind != table {
			continue
		}
		g := group{title: plain(b.rows[0][0])}
		for _, row := range b.rows[1:] {
			for _, s := range spans(row[0]) {
				if s.kind == linkText {
					to, _ := m.target(first, s.to)
					g.entries = append(g.entries, entry{plain(s.text), to})
				}
			}
		}
		m.groups = append(m.groups, g)
	}
}

// frame returns a page with what all pages have around them.
func (m *maker) frame(p *page) []byte {
	var b bytes.Buffer
	title := escape(p.title)
	if p.file != index {
		title += " · Mayfly"
	}
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%[1]s</title>
<link rel="icon" href="%[2]sicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="%[2]sstyle.css">
<link rel="stylesheet" href="%[2]sdocs.css">
<script src="%[2]sdocs.js"></script>
</head>
<body class="docs">
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<a class="brand" href="%[3]s"><img src="%[2]sicon.svg" alt="">Mayfly’s pages</a>
<span class="space"></span>
<a class="narrow" href="#pages">All pages</a>
<a href="%[2]s">Explorer</a>
</header>
<main id="main" tabindex="-1">
`, title, explorer, Prefix)
	for _, block := range p.blocks {
		m.render(&b, p, block)
	}
	b.WriteString("</main>\n<nav id=\"pages\" aria-label=\"All pages\">\n")
	for _, g := range m.groups {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<ul>\n", escape(g.title))
		for _, e := range g.entries {
			if e.to != Prefix+p.name {
				fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", escape(e.to), escape(e.text))
				continue
			}
			fmt.Fprintf(&b, "<li><a href=\"%s\" aria-current=\"page\">%s</a>\n", escape(e.to), escape(e.text))
			p.parts(&b)
			b.WriteString("</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</nav>\n</body>\n</html>\n")
	return b.Bytes()
}

// parts writes the list of a page's parts, if it has any.
func (p *page) parts(b *bytes.Buffer) {
	before, after := "<ul>\n", ""
	for _, part := range p.blocks {
		if part.kind == heading && part.level == 2 {
			fmt.Fprintf(b, "%s<li><a href=\"#%s\">%s</a></li>\n", before, escape(part.id), escape(plain(part.texts[0])))
			before, after = "", "</ul>\n"
		}
	}
	b.WriteString(after)
}
