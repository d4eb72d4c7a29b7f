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
	// The ranges of a container never change, so its rid identifies them.
	a.ETag = strconv.Quote(of.RIDText + "-" + strconv.Itoa(len(of.Ranges)))
	if condition := c.Request.IfNoneMatch; condition != "" && catalog.SameETag(condition, a.ETag) {
		return a.empty(statusNotModified)
	}
	var items []byte
	for i, r := range of.Ranges {
		if i > 0 {
			items = append(items, ',')
		}
		items = appendRange(items, of, i, r, a.ETag)
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

func appendRange(dst []byte, c *catalog.Container, i int, r catalog.Range, etag string) []byte {
	upper := value.EPKText(r.Max)
	if r.Max == nil {
		upper = "FF"
	}
	rid := c.RID.RangeRID(i)
	return fmt.Appendf(dst, `{"_rid":"%s","id":"%s","_etag":%s,"minInclusive":"%s","maxExclusive":"%s","ridPrefix":%d,`+
		`"_self":"dbs/%s/colls/%s/pkranges/%s/","throughputFraction":%s,"status":"online","parents":[],"ownedArchivalPKRangeIds":[],`+
		`"_ts":%d,"lsn":1,"vectorClockVersion":0}`,
		rid, catalog.RangeID(i), strconv.Quote(etag), value.EPKText(r.Min), upper, i,
		c.RID.Database, c.RID, rid, strconv.FormatFloat(1/float64(len(c.Ranges)), 'f', -1, 64), c.TS)
}
