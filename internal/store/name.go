// SPDX-License-Identifier: MIT

package store

import "github.com/mayflydb/mayfly/internal/value"

// NameOf returns the partition key and the id of the item with the given ordinal. The
// error is ErrNotFound if there is no such item at nowMs, whether it was purged or not.
func (p *Partition) NameOf(ordinal uint64, nowMs int64) (value.PartitionKey, string, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, "", err
	}
	defer p.release(v)
	key := p.prefix.appendItemKey(nil, ordinal)
	row, found, err := v.snap.Get(key)
	switch {
	case err != nil:
		return nil, "", err
	case !found:
		return nil, "", ErrNotFound
	}
	h, _, err := parseItem(key, row)
	if err != nil {
		return nil, "", err
	}
	if h.expired(&v.rules, nowMs) {
		return nil, "", ErrNotFound
	}
	id, err := parseIdentity(h.identity)
	if err != nil {
		return nil, "", err
	}
	return id.pk, id.id, nil
}
