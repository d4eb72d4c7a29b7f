// SPDX-License-Identifier: MIT

// A page's blocks as HTML. What scrolls can be reached with the keyboard, and no head of a table
// is empty.

package docs

import (
	"bytes"
	"fmt"
	"html"
	"path"
	"strings"
)

func escape(text string) string { return html.EscapeString(text) }

func (m *maker) render(b *bytes.Buffer, p *page, part block) {
	switch part.kind {
	case heading:
		fmt.Fprintf(b, "<h%d id=\"%s\">%s</h%[1]d>\n", part.level, escape(part.id), m.inline(p, part.texts[0]))
	case paragraph:
		fmt.Fprintf(b, "<p>%s</p>\n", m.inline(p, part.texts[0]))
	case bullets, numbers:
		list := map[blockKind]string{bullets: "ul", numbers: "ol"}[part.kind]
		fmt.Fprintf(b, "<%s>\n", list)
		for _, text := range part.texts {
			fmt.Fprintf(b, "<li>%s</li>\n", m.inline(p, text))
		}
		fmt.Fprintf(b, "</%s>\n", list)
	case code:
		fmt.Fprintf(b, "<pre class=\"block\" tabindex=\"0\"><code>%s\n</code></pre>\n", escape(strings.Join(part.texts, "\n")))
	case table:
		m.table(b, p, part.rows)
	}
}

// table writes a table. If its head has no text, the first cell of each row is the row's head.
func (m *maker) table(b *bytes.Buffer, p *page, rows [][]string) {
	bare := strings.Join(rows[0], "") == ""
	b.WriteString("<div class=\"scroll\" tabindex=\"0\">\n<table>\n")
	for i, row := range rows {
		switch i {
		case 0:
			if bare {
				b.WriteString("<tbody>\n")
				continue
			}
			b.WriteString("<thead>\n")
		case 1:
			if !bare {
				b.WriteString("</thead>\n<tbody>\n")
			}
		}
		b.WriteString("<tr>")
		for n, text := range row {
			switch {
			case i == 0 && text != "":
				fmt.Fprintf(b, "<th scope=\"col\">%s</th>", m.inline(p, text))
			case bare && n == 0:
				fmt.Fprintf(b, "<th scope=\"row\">%s</th>", m.inline(p, text))
			default:
				fmt.Fprintf(b, "<td>%s</td>", m.inline(p, text))
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n</div>\n")
}

// inline returns a text as HTML. What the site does not have, such as a source file, is named
// and not linked. A link whose text is a page's file has that page's title in its place.
func (m *maker) inline(p *page, text string) string {
	var b strings.Builder
	for _, s := range spans(text) {
		switch s.kind {
		case plainText:
			b.WriteString(escape(html.UnescapeString(s.text)))
		case codeText:
			b.WriteString("<code>" + escape(s.text) + "</code>")
		case boldText:
			b.WriteString("<strong>" + m.inline(p, s.text) + "</strong>")
		case picture:
			to, _ := m.target(p, s.to)
			fmt.Fprintf(&b, "<img src=\"%s\" alt=\"%s\">", escape(to), escape(s.text))
		case linkText:
			to, other := m.target(p, s.to)
			inner := m.inline(p, s.text)
			if file, _, _ := strings.Cut(s.to, "#"); other != nil && s.text == path.Base(file) {
				inner = escape(other.title)
			}
			if to == "" {
				b.WriteString(inner)
				continue
			}
			fmt.Fprintf(&b, "<a href=\"%s\">%s</a>", escape(to), inner)
		}
	}
	return b.String()
}
