// SPDX-License-Identifier: MIT

package sql

import "github.com/mayflydb/mayfly/internal/sql/syntax"

// codeUngrouped is the code of a path in a select list that needs a group's key.
const codeUngrouped = "SC2102"

// maxErrors is how many errors of a query are reported at once.
const maxErrors = 16

// errorList collects errors of a query.
type errorList struct{ errs []*syntax.Error }

func (l *errorList) add(err *syntax.Error) {
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, err)
	}
}

// err returns the first error with those others that can stand beside it, or
// nil.
func (l *errorList) err() error {
	if len(l.errs) == 0 {
		return nil
	}
	first := *l.errs[0]
	for _, other := range l.errs[1:] {
		if first.Code != "" && other.Code != "" {
			first.More = append(first.More, other)
		}
	}
	return &first
}
