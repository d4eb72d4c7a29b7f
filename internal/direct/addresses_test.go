// SPDX-License-Identifier: MIT

package direct_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

// addresses asks for the addresses of partitions as an SDK does.
func (s *testServer) addresses(path, kind, link, resolveFor, ranges string) (found []struct {
	IsPrimary                                     bool
	Protocol, PartitionKeyRangeID, PhyscialUri    string
	PartitionTargetReplicaSetSize, PartitionIndex any
}) {
	s.t.Helper()
	query := "?$resolveFor=" + url.QueryEscape(resolveFor) + "&$filter=" + url.QueryEscape("protocol eq rntbd")
	if ranges != "" {
		query += "&$partitionKeyRangeIds=" + url.QueryEscape(ranges)
	}
	body := s.http("GET", path+query, kind, link, "", map[string]string{"x-ms-force-refresh": "true"}, 200)
	var list struct {
		RID      string `json:"_rid"`
		Count    int    `json:"_count"`
		Addresss json.RawMessage
	}
	if err := json.Unmarshal(body, &list); err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(list.Addresss, &found); err != nil {
		s.t.Fatal(err)
	}
	if list.Count != len(found) {
		s.t.Errorf("%d addresses, %d counted", len(found), list.Count)
	}
	return found
}

func TestAddresses(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	of := "dbs/AAAAAQ==/colls/AAAAAYAAAAE=/docs"
	for _, path := range []string{"/addresses/", "//addresses/"} { // Java and .NET
		found := s.addresses(path, "docs", "aaaaayaaaae=", of, "0")
		if len(found) != 2 || !found[0].IsPrimary || found[1].IsPrimary {
			t.Fatalf("got %+v", found)
		}
		for _, a := range found {
			if a.Protocol != "rntbd" || a.PartitionKeyRangeID != "0" || !strings.HasPrefix(a.PhyscialUri, "rntbd://"+s.addr+"/apps/") || !strings.HasSuffix(a.PhyscialUri, "/") {
				t.Errorf("got %+v", a)
			}
		}
	}
	if found := s.addresses("/addresses/", "docs", "aaaaayaaaae=", of, "7,8"); len(found) != 0 {
		t.Errorf("a range that does not exist is at %+v", found)
	}
	found := s.addresses("/addresses/", "dbs", "", "dbs", "")
	if len(found) != 2 || found[0].PartitionKeyRangeID != "M" {
		t.Errorf("the metadata is at %+v", found)
	}
	s.http("GET", "/addresses/?$resolveFor="+url.QueryEscape(of), "docs", "aaaaayaaaai=", "", nil, 401)
	s.http("GET", "/addresses/?$resolveFor="+url.QueryEscape("dbs/AAAAAQ==/colls/AAAAAYAAAAI=/docs"), "docs", "aaaaayaaaai=", "", nil, 404)
	s.http("GET", "/addresses/", "", "", "", nil, 200) // of nothing: as the metadata
	s.http("GET", "/addresses/?$resolveFor=nothing", "", "", "", nil, 404)
}
