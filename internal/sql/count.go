// SPDX-License-Identifier: MIT

package sql

// CountRows takes n rows into a group of which nothing is asked but how many rows it
// has.
func (r *Runner) CountRows(g *Group, n int64) {
	for i := range g.accumulators {
		g.accumulators[i].count += n
	}
}

// Over runs a program over the rows of its input, which the caller has: all in
// memory.
func Over(p *Program, rows [][]byte, cx *Context) ([][]byte, error) {
	outer := *p
	outer.input = nil
	return Naive(&outer, rows, cx)
}
