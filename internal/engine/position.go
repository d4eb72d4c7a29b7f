// SPDX-License-Identifier: MIT

package engine

// Position returns the position of the partition with the request's key or range. Clients
// of direct mode ask for it, and nothing else, while they wait for a write to arrive.
func (e *Engine) Position(r *Request) (a Answer, err error) {
	defer e.observe(e.begin())
	if _, err := e.lookUp(r, &a, 0); err != nil {
		return a, err
	}
	scope, err := pageScope(a.Container, r)
	if err != nil {
		return a, err
	}
	a.Partition = a.Container.Ranges[scope.first].ID
	p, err := e.partition(a.Container, a.Partition)
	if err != nil {
		return a, err
	}
	a.LSN, a.Answered = p.LSN(), true
	return a, nil
}
