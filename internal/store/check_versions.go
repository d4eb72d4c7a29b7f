// SPDX-License-Identifier: MIT

// Checking the log of all versions. If there is one, it must be in order, and its last rows
// must agree with the items. The data does not say whether there should be one: a flag of
// the server may ask for it in all containers.

package store

import (
	"hash/maphash"

	"github.com/mayflydb/mayfly/internal/kv"
)

// logCheck is the state of the check after the rows so far.
type logCheck struct {
	state  logState
	found  bool
	lastMs int64
	// last has each item's last row, by identity. names has identities by rid, since an
	// item may change its id.
	last  map[string]lastChange
	names map[string]string
	seed  maphash.Seed
}

// lastChange is a row of the log, with a hash of its image.
type lastChange struct {
	kind          logKind
	lsn, previous uint64
	image         uint64 // hash
}

// startLog reads the state of the log.
func (k *checker) startLog() (err error) {
	k.log.last, k.log.names, k.log.seed = map[string]lastChange{}, map[string]string{}, maphash.MakeSeed()
	k.log.state, k.log.found, err = k.logState()
	return err
}

// logRow checks a row of the log against the item's row before it.
func (k *checker) logRow(e kv.Entry, r logRow) error {
	l := &k.log
	if !l.found || r.lsn <= l.state.From || r.lsn > k.meta.LSN || r.atMs < l.lastMs {
		k.report("row %x of the log, of lsn %d at %d ms, is not between lsn %d and %d, or not in order", e.Key, r.lsn, r.atMs, l.state.From, k.meta.LSN)
	}
	l.lastMs = r.atMs
	if r.kind == logCreate || r.kind == logReplace {
		k.logName(e, &r)
	}
	was, known := l.last[string(r.identity)]
	gone := was.kind == logDelete || was.kind == logExpiry
	switch {
	case r.kind == logCreate && (r.previous != 0 || known && !gone):
		k.report("row %x of the log creates an item that exists", e.Key)
	case r.kind != logCreate && !known && r.previous > l.state.From:
		k.report("row %x of the log follows lsn %d, which is not there", e.Key, r.previous)
	case r.kind != logCreate && known && (gone || r.previous != was.lsn):
		k.report("row %x of the log follows lsn %d, but the item's last was %d", e.Key, r.previous, was.lsn)
	}
	l.last[string(r.identity)] = lastChange{r.kind, r.lsn, r.previous, maphash.Bytes(l.seed, r.image)}
	return nil
}

// logName records the identity of an item. If it has changed, the item's last row moves to
// the new identity.
func (k *checker) logName(e kv.Entry, r *logRow) {
	rid, err := textOf(r.image, "_rid")
	if err != nil {
		k.report("row %x of the log has an image that is not an item: %v", e.Key, err)
		return
	}
	l := &k.log
	identity := string(r.identity)
	from, known := l.names[rid]
	l.names[rid] = identity
	if r.kind == logCreate || from == identity {
		return
	}
	there, taken := l.last[identity]
	if taken && (there.kind == logCreate || there.kind == logReplace) {
		k.report("row %x of the log gives an item the id of another", e.Key)
	}
	delete(l.last, identity)
	if known {
		l.last[identity] = l.last[from]
		delete(l.last, from)
	}
}

// logged checks that the last row of an item in the log agrees with the item.
func (k *checker) logged(c *current) {
	l := &k.log
	if !l.found {
		return
	}
	was, known := l.last[string(c.header.identity)]
	delete(l.last, string(c.header.identity))
	lsn := c.header.wroteAt().LSN
	logged := c.header.kind() != kindNever && l.state.hasExpiry(&c.header)
	switch {
	case !known && lsn > l.state.From:
		k.report("item %d, lsn %d, is not in the log", c.ordinal, lsn)
	case !known, was.kind == logExpiry && logged && was.previous == lsn:
	case was.lsn != lsn || was.image != maphash.Bytes(l.seed, c.body):
		k.report("item %d, lsn %d, is in the log as of lsn %d, or as another", c.ordinal, lsn, was.lsn)
	case logged:
		k.report("item %d, lsn %d, has no expiry in the log, which has passed it", c.ordinal, lsn)
	}
}

// logEnds reports items that exist only in the log.
func (k *checker) logEnds() {
	for identity, r := range k.log.last {
		if r.kind == logCreate || r.kind == logReplace {
			k.report("the log ends with lsn %d of item %x, which does not exist", r.lsn, identity)
		}
	}
}
