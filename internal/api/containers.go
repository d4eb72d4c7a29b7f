// SPDX-License-Identifier: MIT

package api

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// containerAnswer adds what the request asks for about a container, and returns its
// definition.
func (c *Call) containerAnswer(of *catalog.Container) ([]byte, error) {
	r, a, e := &c.Request, &c.Answer, c.Service.Engine
	a.OwnerPath, a.OwnerRID = "dbs/"+of.DatabaseID, of.RID.Database.String()
	if of.Throughput.None() {
		a.extra(SharedThroughput, "true")
	}
	// There is no analytical store to copy to, so the copy is always complete.
	if r.AnalyticalProgress {
		a.extra(AnalyticalProgress, "100")
	}
	if r.QuotaInfo {
		percent, err := e.IndexProgress(c.Context, of)
		if err != nil {
			return nil, err
		}
		a.extra(IndexProgress, strconv.Itoa(percent))
		if c.Row.Verb != Create {
			usage, err := e.Usage(c.Context, of)
			if err != nil {
				return nil, err
			}
			a.Live, a.Counted = usage.Live, true
		}
	}
	if !r.Statistics || c.Row.Verb != Read {
		return of.Body, nil
	}
	return c.withStatistics(of)
}

// partitionedSince is the version of the protocol since which every container has a
// partition key. An older client may leave it out. Newer clients then see a partition key
// that no item has.
const partitionedSince = "2018-12-31"

const systemKey = `"partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}`

// withSystemKey adds the system partition key to a definition without one, if the
// client's version allows that.
func (r *Request) withSystemKey(body []byte) []byte {
	if r.Version == "" || r.Version >= partitionedSince {
		return body
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return body // the catalog refuses it
	}
	if raw, ok := o.Lookup("partitionKey"); ok && string(raw) != "null" {
		return body
	}
	out := o.AppendMembers([]byte("{"), func(name string) bool { return name == "partitionKey" })
	if len(out) > len("{") {
		out = append(out, ',')
	}
	return append(append(out, systemKey...), '}')
}

// withStatistics returns the container's definition with the live items of each range.
// The service also lists partition keys of a gigabyte and more. Here a key's total
// includes expired items that are not purged yet, so none is listed.
func (c *Call) withStatistics(of *catalog.Container) ([]byte, error) {
	parts, err := c.Service.Engine.UsageByRange(c.Context, of)
	if err != nil {
		return nil, err
	}
	body := append(bytes.Clone(bytes.TrimSuffix(of.Body, []byte("}"))), `,"statistics":[`...)
	for i, part := range parts {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":"%s","sizeInKB":%d,"documentCount":%d,"partitionKeys":[]}`, catalog.RangeID(of.Ranges[i].ID), KiB(part.Live.Bytes), part.Live.Items)
	}
	return append(body, "]}"...), nil
}

// KiB returns how many KiB are needed for this many bytes, rounded up.
func KiB(bytes int64) int64 { return (bytes + 1023) / 1024 }

// readPosition answers with the position of a partition of the container. The metadata is
// in no partition.
func (c *Call) readPosition() (err error) {
	a := &c.Answer
	if c.Request.Container != "" {
		a.Answer, err = c.Service.Engine.Position(&c.Request.Request)
		a.owned(a.Container)
		if err != nil {
			return err
		}
		a.Positioned = true
	}
	return a.empty(statusOK)
}
