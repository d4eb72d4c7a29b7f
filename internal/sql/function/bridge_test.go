// SPDX-License-Identifier: MIT

package function_test

import (
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

func init() {
	function.Compute = func(expr string, cx *function.Context) ([]byte, error) {
		q, err := syntax.Parse("SELECT VALUE " + expr)
		if err != nil {
			return nil, err
		}
		p, err := sql.Compile(q, sql.CompileOptions{})
		if err != nil {
			return nil, err
		}
		rows, err := sql.Evaluate(p, nil, cx)
		if len(rows) == 0 {
			return nil, err
		}
		return rows[0], err
	}
}
