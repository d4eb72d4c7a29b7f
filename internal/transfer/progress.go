// SPDX-License-Identifier: MIT

package transfer

import (
	"sync/atomic"
)

// Progress is how far a transfer is. It may be read at any time.
type Progress struct {
	// Done is how much was done in this run and those before: bytes of a file, or items; All
	// is how much there is, 0 if that is not known.
	Done, All atomic.Int64
	// Bytes says that Done and All are bytes.
	Bytes atomic.Bool
	// Items is how many items were moved in this run, Rejected how many were refused, Expired
	// how many were left out since their time is over, and Deleted how many deletes followed.
	Items, Rejected, Expired, Deleted atomic.Int64
	// Before is how much of Done is from runs before.
	Before atomic.Int64
	// What is under way, and Followed that the source has no more at present.
	what     atomic.Pointer[string]
	Followed atomic.Bool
}

// What names what is under way.
func (p *Progress) What() string {
	if s := p.what.Load(); s != nil {
		return *s
	}
	return ""
}

func (p *Progress) setWhat(text string) { p.what.Store(&text) }

// before notes what earlier runs did.
func (p *Progress) before(n int64) {
	p.Before.Add(n)
	p.Done.Add(n)
}
