// SPDX-License-Identifier: MIT

// Scripts: stored procedures, triggers and user-defined functions, resources of a
// container with a name and a text. The engine compiles and runs the text.

package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Script is a script at one moment.
type Script struct {
	Resource
	Text string // JavaScript
	// Type and Operation are a trigger's, as the client spells them: Pre or Post; All,
	// Create, Replace, Delete, Update or Upsert.
	Type, Operation string
}

type scriptRecord struct {
	Version   int    `json:"v"`
	Kind      Kind   `json:"kind,omitempty"` // counted from UDFs on
	ID        string `json:"id"`
	Text      string `json:"text"`
	Type      string `json:"type,omitempty"`
	Operation string `json:"operation,omitempty"`
	Revision  uint64 `json:"revision"`
	TS        int64  `json:"ts"`
}

func parseScript(w *Write) (Any, error) {
	required := []string{"id", "body"}
	if w.Kind == Triggers {
		required = append(required, "triggerType", "triggerOperation")
	}
	o, r, err := parseResource(w.Body, required...)
	if err != nil {
		return nil, err
	}
	s := &Script{Resource: r}
	if s.Text, err = stringMember(o, "body"); err != nil || w.Kind != Triggers {
		return s, err
	}
	if s.Type, err = oneOf(o, "triggerType", "Pre", "Post"); err != nil {
		return nil, err
	}
	s.Operation, err = oneOf(o, "triggerOperation", "All", "Create", "Replace", "Delete", "Update", "Upsert")
	return s, err
}

// oneOf returns a property that has one of the allowed values, in any case.
func oneOf(o *value.Object, name string, allowed ...string) (string, error) {
	text, err := stringMember(o, name)
	if err == nil && !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, text) }) {
		err = invalid("The '%s' of a trigger must be one of %s, not '%s'.", name, strings.Join(allowed, ", "), value.Clip(text))
	}
	return text, err
}

// follow refuses another name.
func (s *Script) follow(_, was Any) error {
	if was != nil && was.Common().ID != s.ID {
		return invalid("The 'id' of a script cannot be changed: it is '%s', not '%s'.", was.Common().ID, value.Clip(s.ID))
	}
	return nil
}

func decodeScript(row []byte) (Any, error) {
	var r scriptRecord
	err := decodeRecord(row, &r, &r.Version)
	if err == nil && (r.Kind < 0 || r.Kind > Triggers-UDFs) {
		err = fmt.Errorf("there are no scripts of kind %d", r.Kind)
	}
	n := Resource{ID: r.ID, TS: r.TS, kind: UDFs + r.Kind, revision: r.Revision}
	return &Script{n, r.Text, r.Type, r.Operation}, err
}

func (s *Script) record() any {
	return scriptRecord{recordVersion, s.kind - UDFs, s.ID, s.Text, s.Type, s.Operation, s.revision, s.TS}
}

func (s *Script) render(Any, Options) {
	b := value.AppendString([]byte(`{"body":`), s.Text)
	b = value.AppendString(append(b, `,"id":`...), s.ID)
	if s.kind == Triggers {
		b = value.AppendString(append(b, `,"triggerType":`...), s.Type)
		b = value.AppendString(append(b, `,"triggerOperation":`...), s.Operation)
	}
	s.Body = append(s.appendSystem(b), '}')
}
