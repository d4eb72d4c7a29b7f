// SPDX-License-Identifier: MIT

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/mayflydb/mayfly/internal/value"
)

// MaxBulk is how many operations the service takes in a request, and MaxBulkBytes how many
// bytes, with room for what is around the items.
const (
	MaxBulk      = 100
	MaxBulkBytes = 1_800_000
)

// BulkItem is an item of a bulk request.
type BulkItem struct {
	// Body is the item to write; nil to delete the one with the ID.
	Body []byte
	ID   string
	Key  value.PartitionKey
}

// Outcome is what became of an item of a bulk request.
type Outcome struct {
	Status     int
	RetryAfter float64 // milliseconds
}

// ErrNoBulk: the server does not take bulk requests.
var ErrNoBulk = errors.New("the server takes no bulk requests")

// Bulk writes items of one physical partition in one request. Each item succeeds or fails by
// itself.
func (c *Client) Bulk(ctx context.Context, n Name, rangeID string, items []BulkItem, w Write) ([]Outcome, error) {
	r := n.feed(http.MethodPost, Items)
	r.Header[headerRange] = rangeID
	r.Header["X-Ms-Cosmos-Is-Batch-Request"] = "True"
	r.Header["X-Ms-Cosmos-Batch-Atomic"] = "False"
	r.Header["X-Ms-Cosmos-Batch-Continue-On-Error"] = "True"
	r.Header[headerMinimal] = minimal
	r.Body = appendBulk(nil, items, w)
	a, err := c.Do(ctx, r)
	if refused := (*Error)(nil); asError(err, &refused) {
		switch refused.Status {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusInternalServerError, http.StatusNotImplemented:
			return nil, fmt.Errorf("%w: %w", ErrNoBulk, err)
		}
	}
	if err != nil {
		return nil, err
	}
	var results []struct {
		StatusCode             int
		RetryAfterMilliseconds float64
	}
	if err := json.Unmarshal(a.Body, &results); err != nil || len(results) != len(items) {
		return nil, fmt.Errorf("%w: the answer has %d results for %d items", ErrNoBulk, len(results), len(items))
	}
	out := make([]Outcome, len(results))
	for i, r := range results {
		out[i] = Outcome{r.StatusCode, r.RetryAfterMilliseconds}
	}
	return out, nil
}

func appendBulk(b []byte, items []BulkItem, w Write) []byte {
	size := 2
	for i := range items {
		size += len(items[i].Body) + 128
	}
	if b == nil {
		b = make([]byte, 0, size)
	}
	b = append(b, '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		operation := w.operation()
		if items[i].Body == nil {
			operation = "Delete"
		}
		b = fmt.Appendf(b, `{"operationType":"%s","partitionKey":`, operation)
		b = value.AppendString(b, items[i].Key.String())
		b = append(b, `,"minimalReturnPreference":true`...)
		if items[i].Body == nil {
			b = append(b, `,"id":`...)
			b = value.AppendString(b, items[i].ID)
		} else {
			b = append(b, `,"resourceBody":`...)
			b = append(b, items[i].Body...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// asError is errors.As for a refusal.
func asError(err error, into **Error) bool { return errors.As(err, into) }
