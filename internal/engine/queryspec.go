// SPDX-License-Identifier: MIT

// Queries as clients and scripts send them: text, parameters, and where to resume.

package engine

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// maxQueryParameters bounds the parameters of a query.
const maxQueryParameters = 10_000

// ParseQuery parses {"query": …, "parameters": [{"name": …, "value": …}, …]}.
func ParseQuery(body []byte) (Query, error) {
	refused := func(what string) error {
		return invalid("%s", "The input content is invalid: a query is {\"query\":\"SELECT …\",\"parameters\":[{\"name\":\"@x\",\"value\":1}]}, and "+what+".")
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return Query{}, err
	}
	raw, _ := o.Lookup("query")
	text, _ := value.FromJSON(raw)
	q := Query{}
	var ok bool
	if q.Text, ok = text.Text(); !ok {
		return Query{}, refused("'query' must be a string")
	}
	if raw, found := o.Lookup("resumeFilter"); found && string(raw) != "null" {
		if q.Resume, ok = parseResumeFilter(datum.Raw(raw)); !ok {
			return Query{}, invalid("The input content is invalid: a resume filter is {\"value\":[…],\"rid\":\"…\",\"exclude\":false}, with null, booleans, numbers and strings as they are, [] for undefined, and {\"type\":\"array\",\"low\":1,\"high\":2} for an array or an object.")
		}
	}
	list, found := o.Lookup("parameters")
	if !found || string(list) == "null" {
		return q, nil
	}
	elements, ok := value.Elements(list)
	if !ok || len(elements) > maxQueryParameters {
		return Query{}, refused("'parameters' must be a list")
	}
	q.Params = make(map[string]datum.Value, len(elements))
	for _, raw := range elements {
		p := datum.Raw(raw)
		if p.Kind() != datum.KindObject {
			return Query{}, refused("each of the parameters must be an object")
		}
		name, ok := p.Member("name").AsString()
		if !ok || !strings.HasPrefix(name, "@") {
			return Query{}, refused("the name of a parameter must be a string that begins with @")
		}
		q.Params[name] = p.Member("value")
	}
	return q, nil
}

// parseResumeFilter parses where a client resumes an ordered query.
func parseResumeFilter(v datum.Value) (*ResumeFilter, bool) {
	f := &ResumeFilter{}
	if v.Kind() != datum.KindObject {
		return nil, false
	}
	for name, member := range v.Properties {
		ok := false
		switch name {
		case "value":
			f.Values, ok = resumeValues(member)
		case "rid":
			f.RID, ok = member.AsString()
			ok = ok || member.Kind() == datum.KindNull
		case "exclude":
			f.Exclude, ok = member.AsBool()
		}
		if !ok {
			return nil, false
		}
	}
	return f, len(f.Values) > 0
}

func resumeValues(list datum.Value) ([]datum.Value, bool) {
	var values []datum.Value
	for v := range list.Elements {
		resumed, ok := datum.Resumed(v)
		if values = append(values, resumed); !ok || len(values) > maxResumeValues {
			return nil, false
		}
	}
	return values, list.Kind() == datum.KindArray
}

// maxResumeValues is more than an ORDER BY may have expressions.
const maxResumeValues = 64
