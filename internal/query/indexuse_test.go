// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"strings"
	"testing"
)

func usedText(i Indexes) string {
	var all []string
	for _, s := range i.Single {
		all = append(all, strings.TrimSpace(s.Spec+" "+s.Filter))
	}
	for _, c := range i.Composite {
		all = append(all, "["+strings.Join(c, ", ")+"]")
	}
	return strings.Join(all, "; ")
}

func TestIndexUse(t *testing.T) {
	f := newFixture(t, `"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/hidden/*"}],"compositeIndexes":[[{"path":"/x"},{"path":"/y","order":"descending"}]]}`)
	for i := range 300 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"i":%d,"third":%d,"fifth":%d,"hidden":%d,"tags":["t%d"],"x":%d,"y":%d`, i, i%3, i%5, i, i%4, i%2, i))
	}
	for _, c := range []struct {
		text                string
		logical             bool
		utilized, potential string
	}{
		{"SELECT * FROM c", false, "", ""},
		{"SELECT * FROM c", true, "/pk/?", ""},
		{"SELECT * FROM c WHERE c.i = 5", false, `/i/? (ROOT["i"] = 5)`, ""},
		{"SELECT * FROM c WHERE c.i > 5 AND c.i <= 7", false, `/i/? (ROOT["i"] > 5) AND (ROOT["i"] <= 7)`, ""},
		{"SELECT * FROM c WHERE c.i = 5", true, `/pk/?; /i/? (ROOT["i"] = 5)`, ""},
		{"SELECT * FROM c WHERE STARTSWITH(c.word, 'a')", false, `/word/? STARTSWITH(ROOT["word"], "a")`, ""},
		{"SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't1')", false, `/tags/[]/? ARRAY_CONTAINS(ROOT["tags"], …)`, ""},
		{"SELECT * FROM c WHERE c.third = 1 AND c.fifth = 2", false,
			`/third/? (ROOT["third"] = 1); /fifth/? (ROOT["fifth"] = 2)`, ""},
		{"SELECT * FROM c WHERE c.third = 1 AND c.i > 2", false, `/third/? (ROOT["third"] = 1); /i/? (ROOT["i"] > 2)`, "[/third ASC, /i ASC]"},
		{"SELECT * FROM c WHERE c.third = 1 AND c.i > 2 AND c.fifth > 3", false,
			`/third/? (ROOT["third"] = 1); /i/? (ROOT["i"] > 2); /fifth/? (ROOT["fifth"] > 3)`, "[/third ASC, /i ASC]; [/third ASC, /fifth ASC]"},
		{"SELECT * FROM c WHERE c.fifth > 1 AND c.i > 2", false, `/fifth/? (ROOT["fifth"] > 1); /i/? (ROOT["i"] > 2)`, ""},
		{"SELECT * FROM c WHERE c.fifth > 1 OR c.i = 2 AND c.hidden = 3", false,
			`/fifth/? (ROOT["fifth"] > 1); /i/? (ROOT["i"] = 2)`, `/hidden/? (ROOT["hidden"] = 3)`},
		{"SELECT * FROM c WHERE c.i = 1 AND c.fifth > 2 ORDER BY c.i", false, `/i/? (ROOT["i"] = 1); /fifth/? (ROOT["fifth"] > 2)`, "[/i ASC, /fifth ASC]"},
		{"SELECT * FROM c WHERE c.i = 1 AND c.fifth = 2 ORDER BY c.i", false, `/fifth/? (ROOT["fifth"] = 2)`, ""},
		{"SELECT * FROM c WHERE c.i > 1 AND c.fifth > 2 ORDER BY c.i", false, `/fifth/? (ROOT["fifth"] > 2)`, ""},
		{"SELECT COUNT(1) FROM c WHERE c.i = 1 AND c.fifth = 2 GROUP BY c.i, c.fifth", false,
			`/i/? (ROOT["i"] = 1); /fifth/? (ROOT["fifth"] = 2)`, "[/i ASC, /fifth ASC]"},
		{"SELECT COUNT(1) FROM c WHERE c.i = 1 AND c.fifth = 2 GROUP BY c.i", false, `/i/? (ROOT["i"] = 1); /fifth/? (ROOT["fifth"] = 2)`, ""},
		{"SELECT * FROM c WHERE CONTAINS(c.word, 'a', true) AND ENDSWITH(c.name, 'b') AND IS_DEFINED(c.i)", false,
			`/word/? CONTAINS(ROOT["word"], "a", true); /name/? ENDSWITH(ROOT["name"], "b"); /i/? IS_DEFINED(ROOT["i"])`, ""},
		{"SELECT VALUE STARTSWITH(c['a b'], 's', true) FROM c", false, `/"a b"/?`, ""},
		{"SELECT VALUE STARTSWITH(c['素早く'], 's') FROM c", false, `/素早く/?`, ""},
		{"SELECT * FROM c WHERE c.third = 1 ORDER BY c.i DESC", false, `/third/? (ROOT["third"] = 1)`, "[/third ASC, /i DESC]"},
		{"SELECT * FROM c ORDER BY c.i", false, "/i/?", ""},
		{"SELECT * FROM c WHERE c.hidden = 5", false, "", `/hidden/? (ROOT["hidden"] = 5)`},
		{"SELECT * FROM c WHERE c.hidden > 5 AND c.i IN (1, 2)", false, `/i/? (ROOT["i"] IN (…))`, `/hidden/? (ROOT["hidden"] > 5); [/i ASC, /hidden ASC]`},
		{"SELECT * FROM c ORDER BY c.x, c.y DESC", false, "[/x ASC, /y DESC]", ""},
		{"SELECT * FROM c WHERE c.x = 1 AND c.y > 5", false, "[/x ASC, /y DESC]", ""},
		{"SELECT * FROM c WHERE c._ts > 5", false, "", ""},
		{"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.third FROM c WHERE c.i = 1) s", false, `/i/? (ROOT["i"] = 1)`, ""},
	} {
		q := f.request(c.text)
		q.Measure = true
		if c.logical {
			q.Scope.Logical = f.logical("k")
		}
		page := f.page(q)
		if got := usedText(page.Indexes.Utilized); got != c.utilized {
			t.Errorf("%s (%s): utilized %s, want %s", c.text, page.Plan(), got, c.utilized)
		}
		if got := usedText(page.Indexes.Potential); got != c.potential {
			t.Errorf("%s (%s): potential %s, want %s", c.text, page.Plan(), got, c.potential)
		}
	}
	if page := f.page(f.request("SELECT * FROM c")); page.Indexes != nil || page.Times != (Times{}) {
		t.Errorf("not asked for: %+v, %+v", page.Indexes, page.Times)
	}
}
