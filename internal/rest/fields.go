// SPDX-License-Identifier: MIT

// The headers of an answer, from where they are set to the connection. A lane writes them
// as they are. net/http has a map for them.

package rest

import "strings"

// fieldsAtOnce is how many headers an exchange has room for without an allocation.
const fieldsAtOnce = 16

// field is a header of the answer, its name as it is sent.
type field struct{ name, value string }

// set sets a response header; the name is in net/http's spelling.
func (x *exchange) set(name, value string) { x.setWire(wireName(name), value) }

// setWire is set with the name as it is sent.
func (x *exchange) setWire(name, value string) {
	for i := range x.fields {
		if x.fields[i].name == name {
			x.fields[i].value = value
			return
		}
	}
	if x.fields == nil {
		x.fields = x.fieldRoom[:0]
	}
	x.fields = append(x.fields, field{name, value})
}

// placeFields passes the headers on, to the lane or to net/http. Nothing can be set after it.
func (x *exchange) placeFields() {
	if lane, ok := x.w.(*laneAnswer); ok {
		lane.place(x.fields)
		return
	}
	all, values := x.w.Header(), make([]string, 0, len(x.fields))
	for _, f := range x.fields {
		values = append(values, f.value)
		all[f.name] = values[len(values)-1 : len(values) : len(values)]
	}
}

// appendField appends a header as a line. A value cannot end its line: as in net/http, a
// line end in it becomes a space.
func appendField(to []byte, name, value string) []byte {
	to = append(append(to, name...), ": "...)
	start := len(to)
	to = append(to, strings.Trim(value, " \t\r\n")...)
	for i, c := range to[start:] {
		if c == '\r' || c == '\n' {
			to[start+i] = ' '
		}
	}
	return append(to, "\r\n"...)
}
