// SPDX-License-Identifier: MIT

// Splits of partitions.

package scripttest

import (
	"encoding/json"
	"fmt"
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
	out, err := awaitSplit(s.server, database, container, id)
	if err != nil {
		d.fatalf("the split: %v", err)
	}
	return out
}

// awaitSplit splits a range, and returns the new ones, or why it was refused.
func awaitSplit(at server, database, container, id string) (string, error) {
	page := "/_mayfly/cluster/split?" + url.Values{"database": {database}, "container": {container}}.Encode()
	method, path := http.MethodPost, page+"&range="+url.QueryEscape(id)
	for {
		a, err := at.send(method, path, http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}, nil)
		if err != nil {
			return "", err
		}
		if a.status != http.StatusOK {
			text, err := a.errorText()
			return strconv.Itoa(a.status) + " " + text, err
		}
		var status struct {
			State, Error string
			Ranges       []string
		}
		if err := json.Unmarshal(a.body, &status); err != nil {
			return "", fmt.Errorf("%s: %w", a.body, err)
		}
		switch status.State {
		case "done":
			return strings.Join(status.Ranges, " and "), nil
		case "failed":
			return "", fmt.Errorf("it failed: %s", status.Error)
		}
		time.Sleep(time.Millisecond)
		method, path = http.MethodGet, page
	}
}
