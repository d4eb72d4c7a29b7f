// SPDX-License-Identifier: MIT

// Settling: the etags, rids and times that a draft gives to items are provisional. In the
// answer of a script they are replaced by those that the items got at the commit.

package store

import (
	"bytes"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// settlement maps what a draft gave out to what the commit made of it.
type settlement struct {
	texts map[string]string // etags, rids and links
	times map[string][]byte // the _ts of items, by their etags in the draft
}

// Settle returns the JSON text that a script answers with, settled. It replaces whole
// values, never a part of a string. A string that is itself JSON, as JSON.stringify returns
// it, is settled inside.
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

// appendValue appends a value, settled. With inside, strings that are JSON are settled too.
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

// appendMembers appends an object, settled. Its _etag determines its _ts.
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
