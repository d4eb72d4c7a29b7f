// SPDX-License-Identifier: MIT

// Partition key ranges: the physical partitions as clients see them. Most SDKs read them
// as a change feed, until the answer is 304.

package api

import (
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

func (c *Call) listRanges() error {
	of, err := c.container()
	if err != nil {
		return err
	}
	a := &c.Answer
	// The ranges of a container change when one is split, and then there is one more: its rid
	// and their number identify them.
	a.ETag = strconv.Quote(of.RIDText + "-" + strconv.Itoa(len(of.Ranges)))
	if condition := c.Request.IfNoneMatch; condition != "" && catalog.SameETag(condition, a.ETag) {
		return a.empty(statusNotModified)
	}
	var items []byte
	for i := range of.Ranges {
		if i > 0 {
			items = append(items, ',')
		}
		items = appendRange(items, of, &of.Ranges[i], a.ETag)
	}
	return c.page(of.RIDText, "PartitionKeyRanges", items, len(of.Ranges))
}

// container returns the container of the request, and sets it as the answer's owner.
func (c *Call) container() (*catalog.Container, error) {
	of, err := c.Service.Engine.Catalog().Container(c.Request.Database, c.Request.Container)
	if err != nil {
		return nil, engine.ErrOwnerNotFound
	}
	c.Answer.owned(of)
	return of, nil
}

func appendRange(dst []byte, c *catalog.Container, r *catalog.Range, etag string) []byte {
	upper := value.EPKText(r.Max)
	if r.Max == nil {
		upper = "FF"
	}
	rid, parents := c.RID.RangeRID(r.ID), []byte(nil)
	for i, id := range r.Parents {
		if i > 0 {
			parents = append(parents, ',')
		}
		parents = strconv.AppendQuote(parents, catalog.RangeID(id))
	}
	return fmt.Appendf(dst, `{"_rid":"%s","id":"%s","_etag":%s,"minInclusive":"%s","maxExclusive":"%s","ridPrefix":%d,`+
		`"_self":"dbs/%s/colls/%s/pkranges/%s/","throughputFraction":%s,"status":"online","parents":[%s],"ownedArchivalPKRangeIds":[],`+
		`"_ts":%d,"lsn":1,"vectorClockVersion":0}`,
		rid, catalog.RangeID(r.ID), strconv.Quote(etag), value.EPKText(r.Min), upper, r.ID,
		c.RID.Database, c.RID, rid, strconv.FormatFloat(1/float64(len(c.Ranges)), 'f', -1, 64), parents, c.TS)
}
