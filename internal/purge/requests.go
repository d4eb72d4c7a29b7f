// SPDX-License-Identifier: MIT

package purge

// Requests returns how many requests have begun.
func (t *Traffic) Requests() int64 { return t.requests.Load() }
