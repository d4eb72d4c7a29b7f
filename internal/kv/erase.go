// SPDX-License-Identifier: MIT

package kv

// Range is the keys k with Lower <= k < Upper. A nil bound is open.
type Range struct {
	Lower, Upper []byte
}

// Remains is what the files of a store may still hold of data that was deleted: the bytes of
// deleted rows, and the deletes themselves, which name keys. A row that is deleted and set
// again in one batch counts as deleted. One that is only set again does not, and may hide
// deletes of the same key: where values have to be erased, every batch that sets a key again
// has to delete it first.
type Remains struct {
	// Oldest is the position of the oldest delete of which something may be left, or a lower
	// one; 0 if nothing is left.
	Oldest uint64
	// Tables is how many files have to be rewritten to erase what is left, and Bytes is their
	// size. Both are estimates: more may have to be rewritten with them.
	Tables int
	Bytes  uint64
	// InCheckpoint says that nothing has to be rewritten any more: what is left is in a
	// checkpoint, until that is closed.
	InCheckpoint bool
}

// Add returns the remains of two ranges together.
func (r Remains) Add(o Remains) Remains {
	if r.Oldest == 0 || o.Oldest != 0 && o.Oldest < r.Oldest {
		r.Oldest = o.Oldest
	}
	r.Tables += o.Tables
	r.Bytes += o.Bytes
	r.InCheckpoint = r.InCheckpoint || o.InCheckpoint
	return r
}
