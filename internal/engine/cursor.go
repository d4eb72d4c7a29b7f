// SPDX-License-Identifier: MIT

package engine

import (
	"encoding/base64"
	"encoding/json"
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// maxCursorBytes bounds the text of a cursor: it has a place for every partition.
const maxCursorBytes = 64 << 10

// eventCursor is a place in the events of each partition of a container.
type eventCursor struct {
	Container string             `json:"c"`
	Places    []store.EventPlace `json:"p"`
}

// newCursor is after everything that was gone at goneMs.
func newCursor(c *catalog.Container, goneMs int64) *eventCursor {
	at := &eventCursor{Container: c.RIDText, Places: make([]store.EventPlace, len(c.Ranges))}
	for i := range at.Places {
		at.Places[i] = store.EventPlace{GoneMs: goneMs, DeadlineMs: math.MaxInt64}
	}
	return at
}

func (at *eventCursor) encode() string {
	raw, err := json.Marshal(at)
	if err != nil {
		panic("engine: a cursor cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(c *catalog.Container, text string) (*eventCursor, error) {
	refused := invalid("The cursor is not one that this container's events were given. Begin without one.")
	if len(text) > maxCursorBytes {
		return nil, refused
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, refused
	}
	var at eventCursor
	if err := json.Unmarshal(raw, &at); err != nil || at.Container != c.RIDText || len(at.Places) != len(c.Ranges) {
		return nil, refused
	}
	return &at, nil
}
