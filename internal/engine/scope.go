// SPDX-License-Identifier: MIT

// Which partitions a request reads, and which part of them: one partition key, those with
// one prefix, one range, or all.

package engine

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// queryScope is the partitions that a query reads, by their positions in the ranges of the
// container, and the part of them.
type queryScope struct {
	query.Scope
	first, last int
	begun       []queryPlace // where a query has begun already, in ascending order
}

// pageScope returns the scope that the request states: one partition key, or a range.
func pageScope(c *catalog.Container, r *Request) (queryScope, error) {
	if r.PartitionKey == "" {
		return rangeScope(c, r.Range, r.StartEPK, r.EndEPK)
	}
	k, err := queryKey(c, r.PartitionKey)
	if err != nil {
		return queryScope{}, err
	}
	return keyScope(c, k), nil
}

// scope returns where a query goes: to one partition key, to one range, or to all.
func (e *Engine) scope(c *catalog.Container, r *Request, program *sql.Program) (queryScope, error) {
	s, err := pageScope(c, r)
	if err != nil || r.PartitionKey != "" || r.Range != "" || !s.whole() && s.first == s.last {
		return s, err
	}
	keys := clientplan.ScopeKeys(program, c.PartitionKey.Paths)
	if !keys.All && len(keys.Keys) == 0 {
		return queryScope{}, nil // no item can match, so one partition suffices
	}
	named, one := s.whole() && !keys.All && len(keys.Keys) == 1, false // by the filter
	if named {
		s = keyScope(c, keys.Keys[0])
		one = len(keys.Keys[0]) == len(c.PartitionKey.Paths)
	}
	needsPlan := clientplan.Needed(program.Query()) && !one || clientplan.ListsAggregates(program.Query()) && r.CrossPartition
	switch {
	case named && !needsPlan:
		return s, nil
	case !r.CrossPartition:
		return queryScope{}, ErrCrossPartition
	case needsPlan:
		plan, err := e.plan(c, program, ^clientplan.FeatureSet(0))
		if err != nil {
			return queryScope{}, err
		}
		return queryScope{}, &NeedsPlanError{plan}
	}
	return s, nil
}

// whole reports whether the scope is the whole container.
func (s *queryScope) whole() bool { return s.Logical == nil && s.MinEPK == nil && s.MaxEPK == nil }

// queryKey parses a partition key that may be a prefix of a hierarchical one.
func queryKey(c *catalog.Container, text string) (value.PartitionKey, error) {
	if c.PartitionKey.Hierarchical() {
		k, err := value.ParsePartitionKey(text)
		if err == nil && len(k) > 0 && len(k) < len(c.PartitionKey.Paths) {
			return k, checkKeySize(k)
		}
	}
	return givenKey(c, text)
}

// keyScope is all items with a partition key, or with keys that begin with it.
func keyScope(c *catalog.Container, k value.PartitionKey) queryScope {
	epk := c.PartitionKey.AppendEPK(nil, k)
	if len(k) == len(c.PartitionKey.Paths) {
		i := c.Position(epk)
		return queryScope{Scope: query.Scope{Logical: &store.LogicalPartition{EPK: epk, PartitionKey: k}}, first: i, last: i}
	}
	return prefixScope(c, epk)
}

// prefixScope is all items whose hierarchical keys have one prefix.
func prefixScope(c *catalog.Container, epk []byte) queryScope {
	all := store.LogicalPartition{EPK: epk, Prefix: true}
	return queryScope{Scope: query.Scope{Logical: &all}, first: c.Position(epk), last: c.Position(append(slices.Clone(epk), prefixEnd))}
}

// prefixEnd, appended to an effective partition key, is after all that begin with it.
const prefixEnd = 0xff

// rangeScope is a range of partition keys: of one partition by its id, between bounds in
// hexadecimal, or both.
func rangeScope(c *catalog.Container, id, start, end string) (queryScope, error) {
	s := queryScope{last: len(c.Ranges) - 1}
	var err error
	if id != "" {
		if s.first, err = rangeIndex(c, id); err != nil {
			return s, err
		}
		s.last = s.first
	}
	if s.MinEPK, err = epkBound(start); err != nil {
		return s, err
	}
	if s.MaxEPK, err = epkBound(end); err != nil {
		return s, err
	}
	if onePrefix(&c.PartitionKey, s.MinEPK, s.MaxEPK) {
		prefix := prefixScope(c, s.MinEPK)
		prefix.first, prefix.last = max(prefix.first, s.first), min(prefix.last, s.last)
		return prefix, nil
	}
	if id == "" && s.MinEPK != nil {
		s.first = c.Position(s.MinEPK)
	}
	if id == "" && s.MaxEPK != nil {
		s.last = max(s.first, c.Position(s.MaxEPK))
		if s.last > s.first && bytes.Equal(c.Ranges[s.last].Min, s.MaxEPK) {
			s.last-- // the range ends where this partition begins
		}
	}
	return s, nil
}

// onePrefix reports whether a range contains exactly the keys that begin with its start.
// Clients write its end as the start followed by prefixEnd or, for a single key, as the
// start plus one: keys are whole hashes, so there is none in between. Keys of version 1
// are not.
func onePrefix(d *catalog.PartitionKeyDefinition, start, end []byte) bool {
	if start == nil || end == nil || d.Version == 1 {
		return false
	}
	next := slices.Clone(start)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			break
		}
	}
	return bytes.Equal(end, next) || bytes.Equal(end, append(slices.Clone(start), prefixEnd))
}

// rangeIndex returns the position of the range with an id.
func rangeIndex(c *catalog.Container, id string) (int, error) {
	number, err := rangeNumber(c, id)
	if err != nil {
		return 0, err
	}
	i := c.PositionOf(number)
	if i < 0 {
		return 0, ErrRangeGone
	}
	return i, nil
}

// rangeNumber parses the id of a range. Some clients put the container's rid before it.
func rangeNumber(c *catalog.Container, id string) (int, error) {
	if rid, rest, ok := strings.Cut(id, ","); ok {
		if rid != c.RID.String() {
			return 0, ErrRangeGone
		}
		id = rest
	}
	number, err := strconv.Atoi(id)
	if err != nil {
		return 0, ErrRangeGone
	}
	return number, nil
}

// epkBound parses a bound. The end of the key space is no bound.
func epkBound(text string) ([]byte, error) {
	if text == "" || text == "FF" {
		return nil, nil
	}
	epk, err := hex.DecodeString(text)
	if err != nil {
		return nil, invalid("The effective partition key '%s' is not hexadecimal.", value.Clip(text))
	}
	return epk, nil
}
