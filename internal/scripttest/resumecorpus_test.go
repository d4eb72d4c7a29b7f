// SPDX-License-Identifier: MIT

// The queries that clients stop and go on with.

package scripttest

// What a shape has that not every SDK can go on with, whatever the server does.
type trait int

const (
	sorted  trait = 1 << iota // it has an order
	kinds                     // it is ordered by values of several kinds, which JavaScript and Python refuse to merge
	hashes                    // it is ordered by arrays or objects: Java's filters compare none, and its hash is another
	nulls                     // it is ordered by null, which JavaScript refuses to compare
	missing                   // it is ordered by what no item has: JavaScript's filters are about values
	several                   // it has several keys: of those, JavaScript's filter leaves out rows that come later
	joins                     // an item has several rows: Java begins with the item's first again, JavaScript skips too many, and .NET too few if it stops twice among the last rows of a range, as it does over five ranges here
	passes                    // it has an OFFSET: JavaScript has no continuation of a page that it passes over
	apart                     // DISTINCT, ordered: JavaScript forgets what it had
	gathers                   // DISTINCT, without an order: no SDK goes on with it
	cuts                      // TOP or LIMIT, without an order: which rows depends on the client
)

// shape is a query.
type shape struct {
	traits trait
	text   string
}

var shapes = []shape{
	{0, "SELECT * FROM c"},
	{0, "SELECT c.id FROM c WHERE c.n > 2"},
	{0, "SELECT c.id FROM c WHERE c.s = 's1'"},
	{0, "SELECT c.id, x FROM c JOIN x IN c.list"},
	{0, "SELECT c.id, x FROM c JOIN x IN c.list WHERE c.n = 3"},
	{cuts, "SELECT TOP 23 c.id FROM c"},
	{cuts, "SELECT c.id FROM c OFFSET 5 LIMIT 31"},
	{gathers, "SELECT DISTINCT c.n FROM c"},
	{sorted, "SELECT c.id FROM c ORDER BY c.n"},
	{sorted, "SELECT c.id FROM c ORDER BY c.n DESC"},
	{sorted, "SELECT VALUE c.id FROM c ORDER BY c.u"},
	{sorted, "SELECT VALUE c.id FROM c ORDER BY c.u DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c._ts"},
	{sorted, "SELECT c.id FROM c ORDER BY c._ts DESC"},
	{sorted, "SELECT * FROM c ORDER BY c.s"},
	{sorted, "SELECT * FROM c ORDER BY c.s DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c.long"},
	{sorted, "SELECT c.id FROM c ORDER BY c.long DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c.flag"},
	{sorted, "SELECT c.id FROM c ORDER BY c.flag DESC"},
	{sorted | missing, "SELECT c.id FROM c ORDER BY c.nowhere"},
	{sorted | missing, "SELECT c.id FROM c ORDER BY c.nowhere DESC"},
	{sorted | nulls, "SELECT c.id FROM c ORDER BY c.nil"},
	{sorted | nulls, "SELECT c.id FROM c ORDER BY c.nil DESC"},
	{sorted | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed"},
	{sorted | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed DESC"},
	{sorted | kinds | nulls, "SELECT c.id FROM c WHERE IS_DEFINED(c.mixed) ORDER BY c.mixed"},
	{sorted | kinds | hashes, "SELECT c.id FROM c ORDER BY c.deep"},
	{sorted | kinds | hashes, "SELECT c.id FROM c ORDER BY c.deep DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n, c.u"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n DESC, c.u DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n, c.s DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n DESC, c.s"},
	{sorted | several | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed, c.flag"},
	{sorted | several | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed DESC, c.flag DESC"},
	{sorted | several | kinds | hashes, "SELECT c.id FROM c ORDER BY c.flag, c.deep"},
	{sorted | several | kinds | hashes, "SELECT c.id FROM c ORDER BY c.flag DESC, c.deep DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.n > 2 ORDER BY c.n"},
	{sorted, "SELECT c.id FROM c WHERE c.n > 2 AND c.flag ORDER BY c.n DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.s = 's1' ORDER BY c.u DESC"},
	{sorted | several, "SELECT c.id FROM c WHERE c.n = 3 ORDER BY c.n DESC, c.s"},
	{sorted, "SELECT TOP 17 c.id FROM c ORDER BY c.n DESC"},
	{sorted | passes, "SELECT c.id FROM c ORDER BY c.n OFFSET 7 LIMIT 20"},
	{sorted | passes, "SELECT c.id FROM c ORDER BY c.s DESC OFFSET 3 LIMIT 100"},
	{sorted | joins, "SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.n"},
	{sorted | joins, "SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.n DESC"},
	{sorted, `SELECT VALUE s FROM (SELECT * FROM c WHERE c.n > 1) s ORDER BY s["n"] DESC`},
	{sorted, `SELECT VALUE r FROM (SELECT VALUE {"id": root["id"], "F": root["s"]} FROM root WHERE root["n"] < 5) AS r ORDER BY r["F"]`},
	{sorted | passes, `SELECT r["id"] FROM (SELECT VALUE {"id": root["id"], "F": root["n"]} FROM root) AS r ORDER BY r["F"] DESC OFFSET 5 LIMIT 30`},
	{sorted | several, `SELECT r["id"] FROM (SELECT root["id"], root["n"], root["u"] AS U FROM root) AS r WHERE r["n"] != 3 ORDER BY r["n"], r["U"]`},
	{sorted | apart, "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n"},
	{sorted | apart, "SELECT DISTINCT c.s FROM c ORDER BY c.s DESC"},
	{sorted | apart, "SELECT DISTINCT TOP 4 c.n FROM c ORDER BY c.n DESC"},

	// Filters: values, ranges, several of both, and kinds of values.
	{0, "SELECT c.id FROM c WHERE c.u > 10 AND c.u <= 30"},
	{0, "SELECT c.id FROM c WHERE c.u > 5 AND c.n < 4"},
	{0, "SELECT c.id FROM c WHERE c.n = 3 AND c.u >= 7"},
	{0, "SELECT c.id FROM c WHERE c.n > 1 AND c.s > 's1' AND c.u < 40"},
	{0, "SELECT c.id FROM c WHERE c.n IN (1, 5) AND c.flag"},
	{0, "SELECT c.id FROM c WHERE c.n = 1 OR c.s = 's2'"},
	{0, "SELECT c.id FROM c WHERE c.n = 1 OR c.u > 30"},
	{0, "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.list, 2) AND c.n != 4"},
	{0, "SELECT c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.list WHERE x > 2)"},
	{0, "SELECT c.id FROM c WHERE STARTSWITH(c.long, 'xxx') AND c.long < 'y'"},
	{0, "SELECT c.id FROM c WHERE c.s LIKE 's%' AND c.n BETWEEN 2 AND 5"},
	{0, "SELECT c.id FROM c WHERE IS_NUMBER(c.mixed)"},
	{0, "SELECT c.id FROM c WHERE IS_NULL(c.mixed) OR NOT IS_DEFINED(c.mixed)"},
	{0, "SELECT c.id FROM c WHERE c.mixed >= 'a'"},
	{0, "SELECT c.id FROM c WHERE c.mixed = true AND c.nil = null"},
	{0, "SELECT c.id FROM c WHERE c.pk IN ('p1', 'p5', 'p16') AND c.u > 3"},
	{0, "SELECT c.id FROM c WHERE c.id IN ('i1', 'i20', 'i41') AND c.pk IN ('p1', 'p3', 'p7')"},
	{0, "SELECT VALUE {id: c.id, x: ARRAY_LENGTH(c.list)} FROM c WHERE c.u % 2 = 0"},
	{0, "SELECT c.id FROM c WHERE c.u < 0"},

	// Orders: ties, undefined and null, arrays and objects, in both directions.
	{sorted, "SELECT c.id FROM c WHERE c.n = 3 ORDER BY c.u"},
	{sorted, "SELECT c.id FROM c WHERE c.n = 3 ORDER BY c.s"},
	{sorted, "SELECT c.id FROM c WHERE c.n IN (1, 2, 6) ORDER BY c.flag DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.u >= 5 AND c.u < 35 ORDER BY c.s DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.u >= 5 ORDER BY c.u DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.long > 'x' ORDER BY c.long DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c.id"},
	{sorted, "SELECT c.id FROM c ORDER BY c.pk DESC"},
	{sorted | kinds, "SELECT c.id FROM c ORDER BY c.maybe"},
	{sorted | kinds, "SELECT c.id FROM c ORDER BY c.maybe DESC"},
	{sorted, "SELECT c.id FROM c WHERE IS_DEFINED(c.maybe) ORDER BY c.maybe"},
	{sorted | hashes, "SELECT c.id FROM c ORDER BY c.arr"},
	{sorted | hashes, "SELECT c.id FROM c ORDER BY c.arr DESC"},
	{sorted | hashes, "SELECT c.id FROM c ORDER BY c.obj"},
	{sorted | hashes, "SELECT c.id FROM c ORDER BY c.obj DESC"},
	{sorted | several | hashes, "SELECT c.id FROM c ORDER BY c.obj, c.arr DESC"},
	{sorted | several | kinds, "SELECT c.id FROM c WHERE c.u > 3 ORDER BY c.maybe DESC, c.n"},
	{sorted | several, "SELECT c.id FROM c WHERE c.n > 2 ORDER BY c.n, c.u"},
	{sorted | several, "SELECT c.id FROM c WHERE c.s = 's2' ORDER BY c.flag, c.n DESC, c.u"},
	{sorted, "SELECT c.id, c.u FROM c WHERE ARRAY_CONTAINS(c.list, 1) ORDER BY c.n DESC"},
	{sorted | passes, "SELECT c.id FROM c WHERE c.n > 1 ORDER BY c.u DESC OFFSET 4 LIMIT 15"},
	{sorted | joins, "SELECT c.id, x FROM c JOIN x IN c.list WHERE x > 1 ORDER BY c.s DESC"},
	{sorted | apart, "SELECT DISTINCT c.flag FROM c ORDER BY c.flag"},
}
