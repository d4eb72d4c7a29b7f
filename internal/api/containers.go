// SPDX-License-Identifier: MIT

package api

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// tellContainer says what goes with a container, and returns its definition.
func (c *Call) tellContainer(of *catalog.Container) ([]byte, error) {
	r, a, e := &c.Request, &c.Answer, c.Service.Engine
	a.OwnerPath, a.OwnerRID = "dbs/"+of.DatabaseID, of.RID.Database.String()
	if of.Throughput.None() {
		a.extra(SharedThroughput, "true")
	}
	// Nothing has to be copied for analyses, so that it always has been.
	if r.AnalyticalProgress {
		a.extra(AnalyticalProgress, "100")
	}
	if r.QuotaInfo {
		percent, err := e.IndexProgress(of)
		if err != nil {
			return nil, err
		}
		a.extra(IndexProgress, strconv.Itoa(percent))
		if c.Row.Verb != Create {
			usage, err := e.Usage(of)
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

// partitionedSince is the version of the protocol from which on every container has
// a partition key. A client of an older one may leave it out, and newer ones then
// see a key that no item has.
const partitionedSince = "2018-12-31"

const systemKey = `"partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}`

// withSystemKey adds the key to a definition that has none, if the client may leave it
// out.
func (r *Request) withSystemKey(body []byte) []byte {
	if r.Version == "" || r.Version >= partitionedSince {
		return body
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return body // which is refused as it is
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

// withStatistics returns the container's definition, with what each of its ranges holds.
// Only what is live counts. The service lists partition keys of a gigabyte and more too;
// a key's total has the dead in it, so that none is listed.
func (c *Call) withStatistics(of *catalog.Container) ([]byte, error) {
	parts, err := c.Service.Engine.UsageByRange(of)
	if err != nil {
		return nil, err
	}
	body := append(bytes.Clone(bytes.TrimSuffix(of.Body, []byte("}"))), `,"statistics":[`...)
	for i, part := range parts {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":"%s","sizeInKB":%d,"documentCount":%d,"partitionKeys":[]}`, catalog.RangeID(i), KiB(part.Live.Bytes), part.Live.Items)
	}
	return append(body, "]}"...), nil
}

// KiB returns how many KiB hold so many bytes.
func KiB(bytes int64) int64 { return (bytes + 1023) / 1024 }
