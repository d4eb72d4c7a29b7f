// SPDX-License-Identifier: MIT

package erase

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// maxSamples bounds the samples that are kept.
const maxSamples = 64

// sample says at which position the store was at a moment.
type sample struct {
	Ms       int64  `json:"ms"`
	Position uint64 `json:"position"`
}

// state is what is kept in a row. What is left of deleted data is derived from the tables, by
// position; the samples say how old that is. Without them, or if the row is lost, everything
// counts as overdue.
type state struct {
	// Samples are in order.
	Samples []sample `json:"samples,omitempty"`
	// Erased has, by the name of a span, the position up to which nothing is left.
	Erased map[string]uint64 `json:"erased,omitempty"`

	own uint64 // the position after the state was last saved
}

func loadState(rows kv.DB, nowMs int64) (s state, err error) {
	raw, found, err := kv.Get(rows, catalog.EraseKey)
	if err != nil {
		return s, err
	}
	if found {
		if err := json.Unmarshal(raw, &s); err != nil {
			return s, fmt.Errorf("%w: state of erasure: %w", kv.ErrCorrupt, err)
		}
	}
	// A rewind of the clock leaves samples of the future, and then no age is known.
	if n := len(s.Samples); n > 0 && s.Samples[n-1].Ms > nowMs {
		s.Samples = nil
	}
	return s, nil
}

func (s *state) save(rows kv.DB) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var b kv.Batch
	b.Set(catalog.EraseKey, raw)
	b.Lazy() // an older state makes remains older than they are
	if err := rows.Commit(context.Background(), &b); err != nil {
		return err
	}
	s.own, _, err = rows.Remains(nil)
	return err
}

// age returns how old the remains are whose oldest delete has the position, at most: the
// whole time of the span if that is not known.
func (s *state) age(span Span, oldest uint64, nowMs int64) time.Duration {
	if oldest == 0 {
		return 0
	}
	oldest = max(oldest, s.Erased[span.Name])
	for i := len(s.Samples) - 1; i >= 0; i-- {
		if one := s.Samples[i]; one.Position <= oldest {
			return time.Duration(max(nowMs-one.Ms, 0)) * time.Millisecond
		}
	}
	return span.Within
}

// sample adds a sample, unless nothing was committed since the last one. oldest is the oldest
// position whose age matters.
func (s *state) sample(rows kv.DB, nowMs int64, position, oldest uint64) error {
	if position == s.own && len(s.Samples) > 0 {
		return nil
	}
	for len(s.Samples) > 1 && s.Samples[1].Position <= oldest {
		s.Samples = s.Samples[1:]
	}
	if len(s.Samples) >= maxSamples { // keep every other one
		var kept []sample
		for i := 0; i < len(s.Samples); i += 2 {
			kept = append(kept, s.Samples[i])
		}
		s.Samples = kept
	}
	s.Samples = append(s.Samples, sample{nowMs, position})
	return s.save(rows)
}

// erased records that nothing is left in the spans of before the position. all are the spans
// that there are.
func (s *state) erased(rows kv.DB, spans, all []Span, position uint64) error {
	was := s.Erased
	s.Erased = map[string]uint64{}
	for _, span := range all {
		s.Erased[span.Name] = was[span.Name]
	}
	for _, span := range spans {
		if before, known := s.Erased[span.Name]; known {
			s.Erased[span.Name] = max(before, position)
		}
	}
	return s.save(rows)
}
