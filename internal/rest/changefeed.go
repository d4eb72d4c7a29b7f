// SPDX-License-Identifier: MIT

// The change feed of a container's items: a list with A-IM, whose etag is the place
// to go on from.

package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

// The values of A-IM, in whatever case.
const (
	feedLatest      = "incremental feed"
	feedAllVersions = "full-fidelity feed"
)

// changeFeed answers a list of changes.
func (x *exchange) changeFeed(rt *route) error {
	x.operation = opItemChanges
	r := &engine.Request{
		Target: x.target(rt), Range: x.header(headerRange),
		StartEPK: x.header("X-Ms-Start-Epk"), EndEPK: x.header("X-Ms-End-Epk"),
		Continuation: changePosition(x.header("If-None-Match")),
		Wrapped:      x.header("X-Ms-Cosmos-Changefeed-Wire-Format-Version") != "",
		SessionToken: x.header(headerSession),
	}
	switch mode := x.header("A-Im"); strings.ToLower(mode) {
	case feedLatest:
	case feedAllVersions:
		r.AllVersions = true
	default:
		return &badRequestError{"The value '" + value.Clip(mode) + "' of the header A-IM is invalid. Ensure to provide 'Incremental feed' or 'Full-Fidelity Feed'."}
	}
	var err error
	if r.SinceMs, err = x.modifiedSince(); err != nil {
		return err
	}
	if r.MaxItems, err = x.maxItems(); err != nil {
		return err
	}
	if x.asksForNone() {
		// What is left out would be skipped, and with the place to go on from as it was a
		// client would never come further. JavaScript's refuses such a page itself.
		return &badRequestError{"The value '0' of the header x-ms-max-item-count is invalid for a change feed. Ensure to provide a positive integer, or -1."}
	}
	page, err := x.h.engine.ReadChangeFeed(x.r.Context(), r)
	if n := len(page.Rows); x.crowded(n) {
		page = engine.Answer{}
		if err := x.waitFor(n); err != nil {
			return err
		}
		page, err = x.h.engine.ReadChangeFeed(x.r.Context(), r)
	}
	x.charge = page.Charge
	if page.Container != nil {
		x.setOwner(page.Container)
	}
	if err != nil {
		return err
	}
	x.setPosition(page.Partition, page.LSN)
	x.set(headerETag, strconv.Quote(page.Continuation))
	if page.Count == 0 && !page.More {
		x.set(headerItemCount, "0") // .NET reads it from every page, and fails without
		x.writeEmpty(http.StatusNotModified)
		return nil
	}
	x.writeList(page.Container.RIDText, "Documents", page.Rows, page.Count)
	return nil
}

// changePosition takes a position out of the etag that it was told as.
func changePosition(etag string) string {
	etag = strings.TrimPrefix(strings.TrimSpace(etag), "W/")
	if n := len(etag); n >= 2 && etag[0] == '"' && etag[n-1] == '"' {
		return etag[1 : n-1]
	}
	return etag
}

// modifiedSince reads the moment from which changes are asked for, 0 if it is not
// given. The header names a second, as _ts does, and asks for what was written in later
// ones. Some clients name its zone UTC, and most GMT.
func (x *exchange) modifiedSince() (int64, error) {
	text := x.header("If-Modified-Since")
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC1123, text)
	if err != nil {
		return 0, &badRequestError{"The value '" + value.Clip(text) + "' of the header if-modified-since is invalid. Ensure to provide a date such as 'Fri, 01 Jan 2100 00:00:00 GMT'."}
	}
	if t.Unix() <= 0 {
		return 0, nil // clients name a time long ago for the beginning
	}
	return t.Add(time.Second).UnixMilli(), nil
}
