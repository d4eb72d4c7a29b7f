// SPDX-License-Identifier: MIT

package rest

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
)

func TestAccountBody(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{account: api.Account{Regions: []string{"South Central US"}}})
	a := call(t, h, "GET", "/", "", nil, 200)
	got := a.json(t)

	config, ok := got["queryEngineConfiguration"].(string)
	var limits map[string]any
	if !ok || json.Unmarshal([]byte(config), &limits) != nil {
		t.Errorf("queryEngineConfiguration is %v, want JSON in a string", got["queryEngineConfiguration"])
	}
	if limits["maxSqlQueryInputLength"] != 262144.0 || limits["sqlAllowTop"] != true {
		t.Errorf("queryEngineConfiguration %v", limits)
	}
	delete(got, "queryEngineConfiguration")

	here := []any{map[string]any{"name": "South Central US", "databaseAccountEndpoint": "http://localhost/"}}
	want := map[string]any{
		"id": "mayfly", "_rid": "mayfly.mayfly", "_self": "", "media": "//media/", "addresses": "//addresses/", "_dbs": "//dbs/",
		"writableLocations": here, "readableLocations": here,
		"enableMultipleWriteLocations": false, "continuousBackupEnabled": false, "enableNRegionSynchronousCommit": false,
		"enablePerPartitionFailoverBehavior": false, "disableCrossRegionalHedging": false,
		"userReplicationPolicy":   map[string]any{"asyncReplication": false, "minReplicaSetSize": 1.0, "maxReplicasetSize": 1.0},
		"userConsistencyPolicy":   map[string]any{"defaultConsistencyLevel": "Session"},
		"systemReplicationPolicy": map[string]any{"minReplicaSetSize": 1.0, "maxReplicasetSize": 1.0},
		"readPolicy":              map[string]any{"primaryReadCoefficient": 1.0, "secondaryReadCoefficient": 1.0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the account is\n%v, want\n%v", got, want)
	}
	// The JavaScript SDK would read the account for each request if it had this id.
	if got["id"] == "localhost" {
		t.Error("the account's id is localhost")
	}
	for _, name := range []string{"x-ms-session-token", "etag", "lsn"} {
		if v := a.header.Get(name); v != "" {
			t.Errorf("the account comes with %s %q", name, v)
		}
	}
}

func TestAccountEndpoint(t *testing.T) {
	for _, c := range []struct {
		advertise, host, want string
		secure                bool
	}{
		{"", "localhost:8081", "http://localhost:8081/", false},
		{"", "localhost:8081", "https://localhost:8081/", true},
		{"", "[::1]:8081", "http://[::1]:8081/", false},
		{"", "[::1]:8081", "https://[::1]:8081/", true},
		{"", "127.0.0.1:8081", "https://127.0.0.1:8081/", true},
		{"", "app.LocalHost.", "https://app.LocalHost./", true},
		{"", "db.example", "https://db.example/", true},
		{"", `a"b`, `http://a"b/`, false}, // still JSON
		{"https://127.0.0.1:8081/", "localhost:9", "https://127.0.0.1:8081/", false},
	} {
		h := newTestHandlerWith(t, testHandlerOptions{account: api.Account{Advertise: c.advertise}})
		r := signedRequest(t, "GET", "/", nil, nil)
		r.Host = c.host
		if c.secure {
			r.TLS = &tls.ConnectionState{}
		}
		a := serve(h, r)
		if got := locations(t, a, "writableLocations")[0][1]; got != c.want {
			t.Errorf("host %q, TLS %v, advertise %q: endpoint %q, want %q", c.host, c.secure, c.advertise, got, c.want)
		}
		// The header would apply to every server on this machine.
		if got := a.header.Get("Strict-Transport-Security") != ""; got != (c.host == "db.example") {
			t.Errorf("host %q, TLS %v: Strict-Transport-Security %v", c.host, c.secure, got)
		}
	}
}

// locations returns names and endpoints.
func locations(t *testing.T, a answer, kind string) [][2]string {
	t.Helper()
	var list [][2]string
	for _, l := range a.json(t)[kind].([]any) {
		m := l.(map[string]any)
		list = append(list, [2]string{m["name"].(string), m["databaseAccountEndpoint"].(string)})
	}
	return list
}

func TestAccountRegions(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{account: api.Account{Regions: []string{"West US", `East "US" ü`, "North"}}})
	a := call(t, h, "GET", "/", "", nil, 200)
	const e = "http://localhost/"
	if got, want := locations(t, a, "writableLocations"), [][2]string{{"West US", e}}; !slices.Equal(got, want) {
		t.Errorf("writable %v, want %v", got, want)
	}
	want := [][2]string{{"West US", e}, {`East "US" ü`, e}, {"North", e}}
	if got := locations(t, a, "readableLocations"); !slices.Equal(got, want) {
		t.Errorf("readable %v, want %v", got, want)
	}
}

func TestAccountOfSeveralWriteRegions(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{account: api.Account{Regions: []string{"West US", "East US"}, MultiWrite: true}})
	a := call(t, h, "GET", "/", "", nil, 200)
	const e = "http://localhost/"
	want := [][2]string{{"West US", e}, {"East US", e}}
	for _, kind := range []string{"writableLocations", "readableLocations"} {
		if got := locations(t, a, kind); !slices.Equal(got, want) {
			t.Errorf("%s %v, want %v", kind, got, want)
		}
	}
	if a.json(t)["enableMultipleWriteLocations"] != true {
		t.Errorf("the account is not one of several write regions: %s", a.body)
	}
}

func TestAccountRefusesMethods(t *testing.T) {
	h := newTestHandler(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"} {
		r, err := http.NewRequest(method, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		signRequest(t, r, "", "")
		serve(h, r).failureText(t, 405, 0)
	}
}

func TestConsistency(t *testing.T) {
	levels := []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}
	for own, level := range levels {
		h := newTestHandlerWith(t, testHandlerOptions{account: api.Account{Consistency: level}})
		policy := call(t, h, "GET", "/", "", nil, 200).json(t)["userConsistencyPolicy"].(map[string]any)
		if policy["defaultConsistencyLevel"] != level {
			t.Errorf("an account of level %s says %v", level, policy)
		}
		for asked, text := range levels {
			for _, spelled := range []string{text, strings.ToUpper(text)} {
				a := serve(h, signedRequest(t, "GET", "/dbs", nil, map[string]string{"x-ms-consistency-level": spelled}))
				if asked >= own {
					if a.status != 200 {
						t.Errorf("%s under %s: status %d: %s", spelled, level, a.status, a.body)
					}
					continue
				}
				if told := a.failureText(t, 400, 0); !strings.Contains(told, "stronger") || !strings.Contains(told, level) {
					t.Errorf("%s under %s: the client is told %q", spelled, level, told)
				}
			}
		}
		for _, unknown := range []string{"None", "Strong,Session", "1", strings.Repeat("x", 5000), "\xff"} {
			a := serve(h, signedRequest(t, "GET", "/dbs", nil, map[string]string{"x-ms-consistency-level": unknown}))
			told := a.failureText(t, 400, 0)
			if !strings.Contains(told, "Eventual") {
				t.Errorf("%.20q: the client is told %q, not which levels there are", unknown, told)
			}
			if len(a.body) > 2000 {
				t.Errorf("%.20q: an answer of %d bytes", unknown, len(a.body))
			}
		}
	}
}

func TestNewRefusesAccounts(t *testing.T) {
	for _, a := range []api.Account{
		{Consistency: "Session"},
		{Regions: []string{"Here"}},
		{Regions: []string{"Here"}, Consistency: "session"},
		{Regions: []string{"Here"}, Consistency: "Bounded"},
		{Regions: []string{"Here"}, Consistency: "Strong", MultiWrite: true},
		{Regions: []string{""}, Consistency: "Session"},
		{Regions: []string{"=http://a/"}, Consistency: "Session"},
		{Regions: []string{"A=a"}, Consistency: "Session"},
		{Regions: []string{"A=ftp://a/"}, Consistency: "Session"},
		{Regions: []string{"A=http://a/b"}, Consistency: "Session"},
		{Regions: []string{"A=http://a/?b"}, Consistency: "Session"},
		{Regions: []string{"A=http://"}, Consistency: "Session"},
		{Regions: []string{"A=http://a/", "B"}, Consistency: "Session"},
	} {
		if _, err := New(Options{Keys: []string{testKey}, Account: a}); err == nil {
			t.Errorf("New accepts the account %+v", a)
		}
	}
}
