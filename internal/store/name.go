// SPDX-License-Identifier: MIT

package store

import "github.com/mayflydb/mayfly/internal/value"

// NameOf returns the partition key and the id of the item with the given ordinal, expired or not: they
// say what it is called, and whoever reads or writes it by them sees whether it is
// still there. The error is ErrNotFound if there is no such item.
func (p *Partition) NameOf(ordinal uint64) (value.PartitionKey, string, error) {
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
	id, err := parseIdentity(h.identity)
	if err != nil {
		return nil, "", err
	}
	return id.pk, id.id, nil
}
