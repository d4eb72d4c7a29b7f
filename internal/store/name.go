// SPDX-License-Identifier: MIT

package store

import "github.com/mayflydb/mayfly/internal/value"

// NameOf returns the partition key and the id of the item with the given ordinal. The error
// is ErrNotFound if the item does not exist or is expired at nowMs.
func (p *Partition) NameOf(ordinal uint64, nowMs int64) (value.PartitionKey, string, error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return nil, "", err
	}
	defer p.release(v)
	c, err := v.itemAt(ordinal)
	if err == nil && (!c.exists || c.header.expired(&v.rules, nowMs)) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	id, err := parseIdentity(c.header.identity)
	return id.pk, id.id, err
}
