// SPDX-License-Identifier: MIT

// Settling: a script sees the etags, rids and times that its draft gave out. In what it
// answers they become those that the items got when the draft was committed.

package store

import (
	"bytes"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// settlement is what became of what a draft gave out.
type settlement struct {
	texts map[string]string // etags, rids and links
	times map[string][]byte // the _ts of items, by the etags of the draft
}

// Settle returns the JSON text with which a script answers, settled. Whole values are
// replaced, never a part of a string; but a string that is JSON itself, as
// JSON.stringify makes it, is settled inside.
func (d *Draft) Settle(text []byte, results []Result) []byte {
	s := d.settlement(results)
	settled, ok := value.Compact(text)
	if !ok || len(s.texts) == 0 {
		return text
	}
	return s.appendValue(nil, settled, true)
}

func (d *Draft) settlement(results []Result) settlement {
	s := settlement{map[string]string{}, map[string][]byte{}}
	links := d.r.Container().ItemLinks
	for i, was := range d.stamps {
		if was.etag == "" {
			continue
		}
		is := &results[i]
		s.texts[was.etag] = is.ETag
		s.texts[strings.Trim(was.etag, `"`)] = strings.Trim(is.ETag, `"`)
		o, err := value.ParseObject(is.Body)
		if err != nil {
			continue
		}
		s.times[was.etag], _ = o.Lookup("_ts")
		if rid, err := textOf(is.Body, "_rid"); was.rid != "" && err == nil {
			s.texts[was.rid] = rid
			s.texts[links+was.rid+"/"] = links + rid + "/"
		}
	}
	return s
}

// appendValue appends a value, settled. In strings it looks for JSON if inside is true.
func (s *settlement) appendValue(dst, raw []byte, inside bool) []byte {
	if elements, ok := value.Elements(raw); ok {
		dst = append(dst, '[')
		for i, e := range elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.appendValue(dst, e, inside)
		}
		return append(dst, ']')
	}
	if members, ok := value.Members(raw); ok {
		return s.appendMembers(dst, members, inside)
	}
	v, _ := value.FromJSON(raw)
	text, ok := v.Text()
	if !ok {
		return append(dst, raw...)
	}
	if is, known := s.texts[text]; known {
		return value.AppendString(dst, is)
	}
	if inside && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
		if was, ok := value.Compact([]byte(text)); ok {
			if is := s.appendValue(nil, was, false); !bytes.Equal(is, was) {
				return value.AppendString(dst, string(is))
			}
		}
	}
	return append(dst, raw...)
}

// appendMembers appends an object, settled. Its _ts is known by its _etag.
func (s *settlement) appendMembers(dst []byte, members []value.Member, inside bool) []byte {
	var ts []byte
	for i := range members {
		if members[i].Name == "_etag" {
			v, _ := value.FromJSON(members[i].Raw)
			etag, _ := v.Text()
			ts = s.times[etag]
		}
	}
	dst = append(dst, '{')
	for i := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := &members[i]
		dst = append(dst, m.Head()...)
		if m.Name == "_ts" && ts != nil {
			dst = append(dst, ts...)
		} else {
			dst = s.appendValue(dst, m.Raw, inside)
		}
	}
	return append(dst, '}')
}
