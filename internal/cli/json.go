// SPDX-License-Identifier: MIT

// What commands print: text or a table for people, or JSON for programs.

package cli

import (
	"encoding/json"
	"os"
)

// printed is the flag of commands that print text for people, and JSON if it is asked for.
type printed struct {
	JSON bool `name:"json" help:"Print JSON, for programs."`
}

// show prints values, a line of JSON for each, or has the text printed.
func (p printed) show(text func() error, values ...any) error {
	if !p.JSON {
		return text()
	}
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// anys returns values as show takes them.
func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
