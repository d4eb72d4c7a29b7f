// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"testing"
	"time"
)

// All time that passes is accounted for, each part where it belongs.
func TestTimes(t *testing.T) {
	f := newFixture(t, `"indexingPolicy":{"compositeIndexes":[[{"path":"/half"},{"path":"/i"}]]}`)
	for i := range 50 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"i":%d,"half":%d`, i, i%2))
	}
	for text, index := range map[string]bool{
		"SELECT * FROM c":                                false,
		"SELECT * FROM c WHERE c.i = 3":                  true,
		"SELECT * FROM c WHERE c.i > 3 ORDER BY c.i":     true,
		"SELECT * FROM c ORDER BY c.half, c.i":           true,
		"SELECT * FROM c ORDER BY c.none":                false,
		"SELECT VALUE COUNT(1) FROM c WHERE c.i > 3":     true,
		"SELECT c.i, COUNT(1) FROM c GROUP BY c.i":       false,
		"SELECT * FROM c WHERE c.i = 3 OR c.id IN ('7')": true,
	} {
		q := f.request(text)
		var now time.Duration
		q.Measure, q.Elapsed = true, func() time.Duration { now += time.Microsecond; return now }
		page := f.page(q)
		all := page.Times.Plan + page.Times.Index + page.Times.Load + page.Times.Run + page.Times.Write
		if all != now-time.Microsecond {
			t.Errorf("%s: %v is accounted for of %v: %+v", text, all, now, page.Times)
		}
		if page.Times.Plan == 0 || page.Times.Write == 0 || (page.Times.Index > 0) != index {
			t.Errorf("%s: %+v", text, page.Times)
		}
	}
}
