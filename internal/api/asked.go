// SPDX-License-Identifier: MIT

// What a request asks for beside its names and body, whichever way its transport sends it.

package api

import (
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

// SetMaxItems sets the page size: -1 for as many as fit. A page of 0 is read as one of 1
// item, which is then left out.
func (r *Request) SetMaxItems(n int) {
	r.NoItems, r.MaxItems = n == 0, n
	if n == 0 {
		r.MaxItems = 1
	}
}

// The names of change feeds, in any case.
const (
	feedLatest      = "incremental feed"
	feedAllVersions = "full-fidelity feed"
)

// SetFeed sets which changes the request asks for: the name of the feed, and since when.
func (r *Request) SetFeed(feed, since string) (err error) {
	switch {
	case strings.EqualFold(feed, feedLatest):
	case strings.EqualFold(feed, feedAllVersions):
		r.AllVersions = true
	default:
		return Invalid("The value '" + value.Clip(feed) + "' of the header A-IM is invalid. Ensure to provide 'Incremental feed' or 'Full-Fidelity Feed'.")
	}
	if r.NoItems {
		// A page without items would skip changes or, with the same continuation, never
		// advance. The JavaScript SDK refuses such a page itself.
		return Invalid("The value '0' of the header x-ms-max-item-count is invalid for a change feed. Ensure to provide a positive integer, or -1.")
	}
	r.SinceMs, err = modifiedSince(since)
	return err
}

// modifiedSince parses the time from which changes are asked for; 0 if it is not given.
// The header names a second, as _ts does, and asks for what was written in later seconds.
// Most clients name its zone GMT, some UTC.
func modifiedSince(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC1123, text)
	if err != nil {
		return 0, Invalid("The value '" + value.Clip(text) + "' of the header if-modified-since is invalid. Ensure to provide a date such as 'Fri, 01 Jan 2100 00:00:00 GMT'.")
	}
	if t.Unix() <= 0 {
		return 0, nil // clients send a time long ago for the beginning
	}
	return t.Add(time.Second).UnixMilli(), nil
}

// maxContinuationLimitKB is far longer than any continuation.
const maxContinuationLimitKB = 1 << 20

// ErrContinuationLimit refuses a limit that is no positive integer.
var ErrContinuationLimit = Invalid("Please pass in a valid continuation token size limit which must be a positive integer")

// SetContinuationLimit sets the longest continuation that the client accepts, in KB.
func (r *Request) SetContinuationLimit(kb int) error {
	switch {
	case kb == 0:
		return engine.ErrContinuationLimit // every continuation is longer
	case kb < 0 || kb > maxContinuationLimitKB:
		return ErrContinuationLimit
	}
	r.MaxContinuationKB = kb
	return nil
}

// How long a resource token is valid, in seconds, within the service's limits.
const (
	DefaultTokenSeconds = 3600
	minTokenSeconds     = 10
	maxTokenSeconds     = 24 * 3600
)

// SetTokenSeconds sets how long the resource tokens in the answer are valid, from now by
// the wall clock. The text is what the client sent.
func (r *Request) SetTokenSeconds(seconds int, text string, now time.Time) error {
	if seconds < minTokenSeconds || seconds > maxTokenSeconds {
		return Invalid("The value '" + value.Clip(text) + "' of the header x-ms-documentdb-expiry-seconds is invalid. Ensure to provide an integer from " +
			strconv.Itoa(minTokenSeconds) + " to " + strconv.Itoa(maxTokenSeconds) + ".")
	}
	r.TokenExpires = now.Add(time.Duration(seconds) * time.Second)
	return nil
}
