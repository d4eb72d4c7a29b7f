// SPDX-License-Identifier: MIT

package sql

import "testing"

func TestLet(t *testing.T) {
	people(t, `SELECT VALUE (LET x = c.age IN x + x) FROM c`, `60 50`)
	people(t, `SELECT VALUE (LET x = c.missing IN IS_DEFINED(x)) FROM c`, `false false false false`)
	people(t, `SELECT VALUE c.id FROM c WHERE (LET x = c.age > 26 IN x)`, `"ann"`)
	people(t, `SELECT VALUE (LET a = c.address IN a.zip) FROM c`, `"8010" "8020"`)
	people(t, `SELECT VALUE (LET c = c.city IN c) FROM c`, `"Graz" "Wien" "Graz" null`)
	people(t, `SELECT VALUE (LET x = 1 IN (LET y = x + 1 IN (LET x = y * 10 IN x + y))) FROM c WHERE c.id = "ann"`, `22`)
	people(t, `SELECT VALUE (LET x = t IN x || c.id) FROM c JOIN t IN c.tags WHERE c.id = "cid" AND (LET x = t IN x = "c")`, `"ccid"`)
	people(t, `SELECT VALUE (LET x = "b" IN ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t = x)) FROM c WHERE c.id = "cid"`, `["b","b"]`)
	people(t, `SELECT VALUE (LET n = COUNT(1) IN n * 2) FROM c`, `8`)
	people(t, `SELECT (LET x = c.city IN LENGTH(x)) AS l, COUNT(1) AS n FROM c GROUP BY c.city`, `{"l":4,"n":2} {"l":4,"n":1} {"n":1}`)
	people(t, `SELECT (LET x = c.city IN LENGTH(x)) AS l, COUNT(1) AS n FROM c GROUP BY (LET x = c.city IN LENGTH(x))`, `{"l":4,"n":3} {"n":1}`)
}

func TestLetEndsWithItsBody(t *testing.T) {
	refuse(t, `SELECT VALUE (LET x = 1 IN x) + x FROM c`, "SC2001", "Identifier 'x'")
	refuse(t, `SELECT VALUE (LET x = x IN 1) FROM c`, "SC2001", "Identifier 'x'")
	refuse(t, `SELECT VALUE (LET x = 1 IN COUNT(x)) FROM c`, "", "only allowed in the select list")
	refuse(t, `SELECT VALUE (LET x = c.a IN x + c.b) FROM c GROUP BY c.a`, "SC2102", "'c.b'")
	refuse(t, `SELECT * FROM c ORDER BY (LET x = c.a IN x)`, "2206", "document path")
}
