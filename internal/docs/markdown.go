// SPDX-License-Identifier: MIT

// The Markdown that the pages use: headings, paragraphs, lists of one level, tables, blocks of
// code, and in a text code, bold, links and pictures. Whatever else Markdown has is an error,
// so that no page is shown in another way than as a file. A library for all of Markdown would
// be larger than all pages.

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

type blockKind int

const (
	heading blockKind = iota
	paragraph
	bullets
	numbers
	table
	code
)

// block is a part of a page.
type block struct {
	kind  blockKind
	level int      // of a heading
	id    string   // of a heading
	texts []string // the items of a list, the lines of code; otherwise one
	rows  [][]string
}

var (
	headingLine = pattern(`^(#{1,4}) (.+)$`)
	numberLine  = pattern(`^[0-9]+\. (.+)$`)
	ruleLine    = pattern(`^\|( ?:?-+:? ?\|)+$`)
	// otherLine begins something of Markdown that the pages do not use.
	otherLine = pattern(`^( {1,3}\S|\t|[>*+<] ?|~~~|===|---|\[[^\]]*\]:)`)
	notOfName = pattern(`[^\p{L}\p{N} _-]`)
)

// pattern returns a regular expression that is compiled when it is first used: most servers
// never show a page, and all expressions would take 70 KB of each.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

const codeIndent = "    "

// parse returns the blocks of a page.
func parse(source string) ([]block, error) {
	lines := strings.Split(strings.TrimRight(source, "\n"), "\n")
	names, level := map[string]bool{}, 0
	var blocks []block
	for i := 0; i < len(lines); {
		b, n, err := parseBlock(lines[i:], blocks)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if i += n; n == 0 {
			i++ // an empty line
			continue
		}
		if b.kind == heading {
			if b.level > level+1 || (b.level == 1) != (len(blocks) == 0) {
				return nil, fmt.Errorf("line %d: a page has one title, and each heading is at most a level below the one before", i)
			}
			b.id, level = nameOfHeading(plain(b.texts[0]), names), b.level
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		if err := b.check(); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// nameOfHeading returns a heading's name in links, as GitHub has it.
func nameOfHeading(text string, names map[string]bool) string {
	first := strings.ReplaceAll(notOfName().ReplaceAllString(strings.ToLower(text), ""), " ", "-")
	name := first
	for n := 1; names[name]; n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	names[name] = true
	return name
}

// parseBlock returns the block that begins with the first line, and how many lines it has; none
// if the line is empty.
func parseBlock(lines []string, before []block) (block, int, error) {
	line := lines[0]
	while := func(in func(string) bool) []string {
		n := 0
		for n < len(lines) && in(lines[n]) {
			n++
		}
		return lines[:n]
	}
	switch {
	case line == "":
		return block{}, 0, nil
	case strings.HasPrefix(line, "```"):
		for n := 1; n < len(lines); n++ {
			if lines[n] == "```" {
				return block{kind: code, texts: lines[1:n]}, n + 1, nil
			}
		}
		return block{}, 0, fmt.Errorf("the block of code has no end")
	case strings.HasPrefix(line, codeIndent):
		if len(before) > 0 && (before[len(before)-1].kind == bullets || before[len(before)-1].kind == numbers) {
			return block{}, 0, fmt.Errorf("code after a list would be a part of its last item: fence it")
		}
		found := while(func(l string) bool { return strings.HasPrefix(l, codeIndent) || l == "" })
		n := len(found)
		for found[len(found)-1] == "" {
			found = found[:len(found)-1]
		}
		b := block{kind: code}
		for _, l := range found {
			b.texts = append(b.texts, strings.TrimPrefix(l, codeIndent))
		}
		return b, n, nil
	case strings.HasPrefix(line, "|"):
		found := while(func(l string) bool { return strings.HasPrefix(l, "|") })
		if len(found) < 2 || !ruleLine().MatchString(found[1]) {
			return block{}, 0, fmt.Errorf("the table has no line below its head")
		}
		b := block{kind: table}
		for i, l := range found {
			if i != 1 {
				b.rows = append(b.rows, cells(l))
			}
			if got, want := len(b.rows[len(b.rows)-1]), len(b.rows[0]); got != want {
				return block{}, 0, fmt.Errorf("the row %.60q has %d cells, and its table %d", l, got, want)
			}
		}
		return b, len(found), nil
	case strings.HasPrefix(line, "- "):
		found := while(func(l string) bool { return strings.HasPrefix(l, "- ") })
		b := block{kind: bullets}
		for _, l := range found {
			b.texts = append(b.texts, l[len("- "):])
		}
		return b, len(found), nil
	case numberLine().MatchString(line):
		found := while(numberLine().MatchString)
		b := block{kind: numbers}
		for _, l := range found {
			b.texts = append(b.texts, numberLine().FindStringSubmatch(l)[1])
		}
		return b, len(found), nil
	case strings.HasPrefix(line, "#"):
		m := headingLine().FindStringSubmatch(line)
		if m == nil {
			return block{}, 0, fmt.Errorf("%.40q is no heading", line)
		}
		return block{kind: heading, level: len(m[1]), texts: m[2:]}, 1, nil
	}
	found := while(func(l string) bool {
		return l != "" && !strings.HasPrefix(l, "```") && !strings.HasPrefix(l, "- ") && !strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "#")
	})
	for _, l := range found {
		if otherLine().MatchString(l) && !strings.HasPrefix(l, "**") {
			return block{}, 0, fmt.Errorf("%.40q is something that the site does not show", l)
		}
	}
	return block{kind: paragraph, texts: []string{strings.Join(found, "\n")}}, len(found), nil
}

// cells returns the cells of a row. A bar that belongs to a cell has a backslash before it.
func cells(row string) []string {
	var all []string
	var cell strings.Builder
	row = strings.TrimPrefix(strings.TrimRight(row, " "), "|")
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case row[i] == '|':
			all = append(all, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	if rest := strings.TrimSpace(cell.String()); rest != "" {
		all = append(all, rest)
	}
	return all
}

// check reports what the texts of a block have that the site does not show.
func (b block) check() error {
	texts := b.texts
	if b.kind == code {
		return nil
	}
	for _, r := range b.rows {
		texts = append(texts, r...)
	}
	for _, text := range texts {
		for _, s := range spans(text) {
			if s.kind == plainText && (strings.Contains(s.text, "**") || strings.Contains(s.text, "](") || strings.Contains(s.text, "`")) {
				return fmt.Errorf("%.60q has a mark without its other half", s.text)
			}
		}
	}
	return nil
}

type spanKind int

const (
	plainText spanKind = iota
	codeText
	boldText
	linkText
	picture
)

// span is a piece of a text.
type span struct {
	kind spanKind
	text string // of a link or of bold text a text with pieces of its own
	to   string // of a link or a picture
}

var (
	codeSpan = pattern("^`([^`]+)`")
	boldSpan = pattern(`^\*\*((?:[^*` + "`" + `]|` + "`[^`]*`" + `)+)\*\*`)
	linkSpan = pattern(`^!?\[((?:[^\]` + "`" + `]|` + "`[^`]*`" + `)*)\]\(([^)\s]+)\)`)
)

// spans takes a text to pieces.
func spans(text string) []span {
	var all []span
	from := 0 // of the plain text that was not added yet
	add := func(at, n int, s span) {
		if at > from {
			all = append(all, span{kind: plainText, text: text[from:at]})
		}
		all = append(all, s)
		from = at + n
	}
	for i := 0; i < len(text); i = max(i+1, from) {
		rest := text[i:]
		switch rest[0] {
		case '`':
			if m := codeSpan().FindStringSubmatch(rest); m != nil {
				add(i, len(m[0]), span{kind: codeText, text: m[1]})
			}
		case '*':
			if m := boldSpan().FindStringSubmatch(rest); m != nil {
				add(i, len(m[0]), span{kind: boldText, text: m[1]})
			}
		case '[', '!':
			if m := linkSpan().FindStringSubmatch(rest); m != nil {
				kind := linkText
				if rest[0] == '!' {
					kind = picture
				}
				add(i, len(m[0]), span{kind: kind, text: m[1], to: m[2]})
			}
		}
	}
	if from < len(text) {
		all = append(all, span{kind: plainText, text: text[from:]})
	}
	return all
}

// plain returns a text without its form.
func plain(text string) string {
	var b strings.Builder
	for _, s := range spans(text) {
		if s.kind == boldText || s.kind == linkText {
			s.text = plain(s.text)
		}
		b.WriteString(s.text)
	}
	return b.String()
}
