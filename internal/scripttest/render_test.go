// SPDX-License-Identifier: MIT

// How answers are written into scripts: without what differs from run to run.

package scripttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// labels replace rids and etags with names that are the same in every run.
type labels map[string]string

// of returns the label of a value: the next of its kind if the value is new.
func (l *labels) of(kind, value string) string {
	if *l == nil {
		*l = labels{}
	}
	if (*l)[value] == "" {
		n := 1
		for _, label := range *l {
			if strings.HasPrefix(label, kind) {
				n++
			}
		}
		(*l)[value] = kind + strconv.Itoa(n)
	}
	return (*l)[value]
}

// added are the system properties.
var added = []string{
	"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn",
	"_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "_colls", "_users",
	"_permissions", "_token",
}

// filledIn are the parts of a container's definition that scripts do not show when they
// have the default of the server, or of the verb container.
var filledIn = map[string]string{
	"partitionKey":             defaultKey,
	"indexingPolicy":           `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`,
	"uniqueKeyPolicy":          `{"uniqueKeys":[]}`,
	"conflictResolutionPolicy": `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`,
	"geospatialConfig":         `{"type":"Geography"}`,
}

// view is which properties of a resource a script shows.
type view struct {
	full bool
	with []string
}

// view parses the arguments of all verbs that show a resource:
//
//	read a with=(_ts, _etag)
//	show full
func (d *directive) view() view { return view{full: d.flag("full"), with: d.options("with")} }

func (v view) shows(m member) bool {
	switch {
	case v.full || slices.Contains(v.with, m.name):
		return true
	case slices.Contains(added, m.name):
		return false
	}
	return filledIn[m.name] == "" || filledIn[m.name] != string(m.raw)
}

// resource writes a database, a container or an item.
func (s *script) resource(body []byte, v view) string {
	var out bytes.Buffer
	for _, m := range members(body) {
		if v.shows(m) {
			fmt.Fprintf(&out, ",%s:%s", quoted(m.name), s.stable(m))
		}
	}
	return "{" + strings.TrimPrefix(collapse(out.String()), ",") + "}"
}

// stable renders a property's value with labels in place of rids and etags.
func (s *script) stable(m member) string {
	switch m.name {
	case "_rid":
		return quoted(s.labels.of("rid", unquoted(m.raw)))
	case "_etag":
		return quoted(s.labels.of("etag", unquoted(m.raw)))
	case "_token":
		return quoted(s.labels.of("token", unquoted(m.raw)))
	case "_self":
		segments := strings.Split(unquoted(m.raw), "/")
		for i := 1; i < len(segments); i += 2 {
			segments[i] = s.labels.of("rid", segments[i])
		}
		return quoted(strings.Join(segments, "/"))
	}
	return string(m.raw)
}

// quoted returns a JSON string without escapes for HTML.
func quoted(text string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string can always be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// unquoted returns the text of a JSON string, and any other value as it is.
func unquoted(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// line renders an answer: the status, and the resource or the error's text.
func (s *script) line(d *directive, a answer, v view) string {
	d.Helper()
	out := strconv.Itoa(a.status)
	if sub := a.header.Get("X-Ms-Substatus"); sub != "" {
		out += "/" + sub
	}
	switch {
	case a.status >= 400:
		text, err := a.errorText()
		if err != nil {
			d.fatalf("%v", err)
		}
		out += " " + collapse(text)
	case len(a.body) > 0:
		out += " " + s.resource(a.body, v)
	}
	return out
}

// shortestRun is the shortest run of one character that is written as a number.
const shortestRun = 40

// collapse writes <x*1000> for a long run of one character.
func collapse(text string) string {
	var out strings.Builder
	for from := 0; from < len(text); {
		char, size := utf8.DecodeRuneInString(text[from:])
		to := from + size
		for to < len(text) {
			next, size := utf8.DecodeRuneInString(text[to:])
			if next != char {
				break
			}
			to += size
		}
		if n := (to - from) / size; n >= shortestRun {
			fmt.Fprintf(&out, "<%c*%d>", char, n)
		} else {
			out.WriteString(text[from:to])
		}
		from = to
	}
	return out.String()
}

var run = regexp.MustCompile(`<([^<>*])\*(\d+)>`)

// longestRun is the longest run that a script can write.
const longestRun = 8 << 20

// expand undoes collapse.
func (d *directive) expand(text string) string {
	return run.ReplaceAllStringFunc(text, func(m string) string {
		parts := run.FindStringSubmatch(m)
		n, err := strconv.Atoi(parts[2])
		if err != nil || n > longestRun {
			d.fatalf("%s is too long", m)
		}
		return strings.Repeat(parts[1], n)
	})
}
