// SPDX-License-Identifier: MIT

// Partition key ranges: the physical partitions as clients see them. Most SDKs
// read them as a change feed, again and again until they get 304.

package rest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

func (x *exchange) serveRanges(rt *route) error {
	if !rt.feed || x.r.Method != http.MethodGet {
		return errMethod
	}
	c, err := x.h.engine.Catalog().Container(rt.database, rt.container)
	if err != nil {
		return engine.ErrOwnerNotFound
	}
	// The ranges of a container never change, so its rid says which they are.
	etag := strconv.Quote(c.RIDText + "-" + strconv.Itoa(len(c.Ranges)))
	x.set(headerETag, etag)
	x.setOwner(c)
	if condition := x.header("If-None-Match"); condition != "" && catalog.SameETag(condition, etag) {
		x.writeEmpty(http.StatusNotModified)
		return nil
	}
	var items []byte
	for i, r := range c.Ranges {
		if i > 0 {
			items = append(items, ',')
		}
		items = appendRange(items, c, i, r, etag)
	}
	x.writeList(c.RIDText, "PartitionKeyRanges", items, len(c.Ranges))
	return nil
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
