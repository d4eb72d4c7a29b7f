// SPDX-License-Identifier: MIT

package script

import "github.com/dop251/goja"

// match is what a replacement is told of a match: its text, its groups, where it
// is, in what, and its named groups if there are any.
type match struct {
	text, subject goja.String
	groups        []goja.Value
	at            int
	named         *goja.Object
}

func matchOf(args []goja.Value) match {
	var mt match
	if named, ok := args[len(args)-1].(*goja.Object); ok {
		mt.named = named
		args = args[:len(args)-1]
	}
	n := len(args)
	mt.subject = args[n-1].(goja.String)
	mt.at = int(args[n-2].ToInteger())
	mt.text = args[0].(goja.String)
	mt.groups = args[1 : n-2]
	return mt
}

// substitute fills in a template: $$, $&, $`, $', $1 to $99 and $<name>. What is
// none of these stays as it is.
func (m *machine) substitute(template goja.String, args []goja.Value) goja.String {
	mt := matchOf(args)
	t := text{m: m}
	from := 0 // what is before it has been written
	for i := 0; i+1 < template.Length(); i++ {
		if template.CharAt(i) != '$' {
			continue
		}
		s, used := mt.place(m, template, i+1)
		if used == 0 {
			continue
		}
		t.add(template.Substring(from, i))
		t.add(s)
		i += used
		from = i + 1
	}
	t.add(template.Substring(from, template.Length()))
	return t.b.String()
}

// place returns what stands for the characters after a $, and how many they are; 0
// if they mean nothing.
func (mt *match) place(m *machine, template goja.String, i int) (goja.String, int) {
	switch c := template.CharAt(i); {
	case c == '$':
		return template.Substring(i, i+1), 1
	case c == '&':
		return mt.text, 1
	case c == '`':
		return mt.subject.Substring(0, min(mt.at, mt.subject.Length())), 1
	case c == '\'':
		return mt.subject.Substring(min(mt.at+mt.text.Length(), mt.subject.Length()), mt.subject.Length()), 1
	case c == '<' && mt.named != nil:
		for end := i + 1; end < template.Length(); end++ {
			if template.CharAt(end) == '>' {
				return m.group(mt.named.Get(template.Substring(i+1, end).String())), end - i + 1
			}
		}
	case isDigit(c):
		if i+1 < template.Length() && isDigit(template.CharAt(i+1)) {
			if n := int(c-'0')*10 + int(template.CharAt(i+1)-'0'); n > 0 && n <= len(mt.groups) {
				return m.group(mt.groups[n-1]), 2
			}
		}
		if n := int(c - '0'); n > 0 && n <= len(mt.groups) {
			return m.group(mt.groups[n-1]), 1
		}
	}
	return nil, 0
}

func isDigit(c uint16) bool { return c >= '0' && c <= '9' }

// group returns the text of a group, which is empty if it took no part.
func (m *machine) group(v goja.Value) goja.String {
	if v == nil || goja.IsUndefined(v) {
		return m.ToValue("").(goja.String)
	}
	return m.chars(v)
}
