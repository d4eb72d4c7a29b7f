// SPDX-License-Identifier: MIT

// Lists, page by page.

package scripttest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxPages bounds how many pages a list may have.
const maxPages = 1000

// listItems lists items, all pages of them, in the order of their JSON, since
// items of different partitions come in no order.
//
//	list
//	----
//	200, 2 items
//	{"id":"a"}
//	{"id":"b"}
//
// It takes what createItems says of containers, keys and sessions, and
//
//	max=2       the size of a page
//	next=p      one page only: keep its continuation
//	last        one page only, after which there must not be another
//	from=p      begin after the page whose continuation was kept
//	range=0     one physical partition; range=r,0 for one of the container whose
//	            rid was kept
//	epk=(00, 20)    of that, one range of effective partition keys
//	ordered     show the items in the order in which they came
//	count       show only how many there are
func listItems(s *script, d *directive) string {
	header := s.itemHeader(d)
	database, container := d.database(), d.container()
	header["X-Ms-Max-Item-Count"] = d.option("max")
	header["X-Ms-Documentdb-Partitionkeyrangeid"] = s.rangeID(d)
	header["X-Ms-Continuation"] = s.given(d, "from")
	d.cutOut(header)
	if d.option("pk") != "" {
		header["X-Ms-Documentdb-Partitionkey"] = s.partitionKey(d, database, container, nil)
	}
	r := request{method: http.MethodGet, path: append(containerPath(database, container), "docs"), header: header}
	return s.list(d, r, "Documents")
}

func (s *script) rangeID(d *directive) string {
	id := d.option("range")
	if rid, index, ok := strings.Cut(id, ","); ok && s.kept[rid] != "" {
		return s.kept[rid] + "," + index
	}
	return id
}

// cutOut sets a range of effective partition keys, if the directive has one.
func (d *directive) cutOut(header map[string]string) {
	bounds := d.options("epk")
	if len(bounds) == 0 {
		return
	}
	if len(bounds) != 2 {
		d.fatalf("a range of effective partition keys has two bounds")
	}
	header["X-Ms-Read-Key-Type"] = "EffectivePartitionKeyRange"
	header["X-Ms-Start-Epk"], header["X-Ms-End-Epk"] = bounds[0], bounds[1]
}

// list reads a feed and renders its resources.
func (s *script) list(d *directive, r request, kind string) string {
	d.Helper()
	v, ordered, count := d.view(), d.flag("ordered"), d.flag("count")
	last := d.flag("last")
	one := d.option("next") != "" || last
	seen := map[string]bool{}
	var lines []string
	for page := 1; ; page++ {
		a := s.send(d, r)
		if a.status != http.StatusOK {
			return s.line(d, a, v)
		}
		for _, resource := range s.page(d, a, kind) {
			rid, _ := lookup(resource, "_rid")
			if seen[string(rid)] {
				d.fatalf("the list has %s twice", resource)
			}
			seen[string(rid)] = true
			lines = append(lines, s.resource(resource, v))
		}
		next := a.header.Get("X-Ms-Continuation")
		if last && next != "" {
			d.fatalf("this is not the last page")
		}
		if one && !last {
			s.keep(d, a)
		}
		if one || next == "" {
			break
		}
		if page == maxPages {
			d.fatalf("the list has no end after %d pages", page)
		}
		r.header["X-Ms-Continuation"] = next
	}
	if !ordered {
		slices.Sort(lines)
	}
	head := fmt.Sprintf("200, %d items", len(lines))
	if len(lines) == 1 {
		head = "200, 1 item"
	}
	if count {
		return head
	}
	return strings.Join(append([]string{head}, lines...), "\n")
}

// page parses a page and checks its metadata.
func (s *script) page(d *directive, a answer, kind string) [][]byte {
	d.Helper()
	list := members(a.body)
	if len(list) != 3 || list[0].name != "_rid" || list[1].name != kind || list[2].name != "_count" {
		d.fatalf("not a page of %s: %s", kind, collapse(string(a.body)))
	}
	resources := elements(list[1].raw)
	n, count := strconv.Itoa(len(resources)), string(list[2].raw)
	if header := a.header.Get("X-Ms-Item-Count"); count != n || header != n {
		d.fatalf("a page of %s resources says that it has %s, and in its header %s", n, count, header)
	}
	if most, err := strconv.Atoi(d.option("max")); err == nil && most > 0 && len(resources) > most {
		d.fatalf("a page of %s resources is longer than %d", n, most)
	}
	return resources
}
