// SPDX-License-Identifier: MIT

// Splits of partitions.

package scripttest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
)

// splitRange splits a range of a container, and waits for the end.
//
//	split 0
//	----
//	1 and 2
func splitRange(s *script, d *directive) string {
	id, container, database := d.word("0"), d.option("in"), d.database()
	if container == "" {
		container = defaultContainer
	}
	return s.split(d, database, container, id)
}

func (s *script) split(d *directive, database, container, id string) string {
	d.Helper()
	page := "/_mayfly/cluster/split?" + url.Values{"database": {database}, "container": {container}}.Encode()
	method, at := http.MethodPost, page+"&range="+url.QueryEscape(id)
	for {
		a, err := s.server.send(method, at, http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}, nil)
		if err != nil {
			d.fatalf("the split: %v", err)
		}
		if a.status != http.StatusOK {
			text, err := a.errorText()
			if err != nil {
				d.fatalf("%v", err)
			}
			return strconv.Itoa(a.status) + " " + text
		}
		var status struct {
			State, Error string
			Ranges       []string
		}
		if err := json.Unmarshal(a.body, &status); err != nil {
			d.fatalf("%s: %v", a.body, err)
		}
		switch status.State {
		case "done":
			return strings.Join(status.Ranges, " and ")
		case "failed":
			d.fatalf("the split failed: %s", status.Error)
		}
		time.Sleep(time.Millisecond)
		method, at = http.MethodGet, page
	}
}
