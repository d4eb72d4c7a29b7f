// SPDX-License-Identifier: MIT

package rest

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
)

// hostCases says which hosts a server accepts that has the emulators' key, is at
// https://db.example.com/ and West US, and allows some more.
var hostCases = map[string]bool{
	"127.0.0.1": true, "127.0.0.1:8081": true, "192.168.1.7:9": true, "[::1]": true, "[::1]:8081": true, "[fe80::1%25eth0]:1": true,
	"localhost": true, "LocalHost:8081": true, "localhost.": true, "app.localhost": true, "a.B.localhost.:1": true,
	"": true, "mayfly": true, "my_box:8081": true, "host.docker.internal": true, "Host.Docker.Internal.:8081": true,
	"db.example.com": true, "DB.example.com.:1": true, "west.example.com": true,
	"allowed.example.org": true, "ALLOWED.example.org:99": true, "a.tunnel.example": true, "a.b.tunnel.example.": true,

	"evil.example": false, "evil.example:8081": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
	"evillocalhost.com": false, "x.db.example.com": false, "example.org": false, "tunnel.example": false, "eviltunnel.example": false,
	"docker.internal": false, "x.host.docker.internal": false, "localhost..": false, "[::1].evil.example": false,
	"1.2.3": false, "1.2.3.4.5": false, "a.b:c:d": false,
}

func TestHosts(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{
		publicKey: true, allowHosts: []string{"Allowed.example.org.", "*.tunnel.example", "10.0.0.1:8081"},
		account: api.Account{Advertise: "https://DB.example.com:8081/", Regions: []string{"East US=http://localhost:8081/", "West US=https://west.example.com/"}},
	})
	own := newTestHandlerWith(t, testHandlerOptions{keys: []string{secondKey}})
	for host, want := range hostCases {
		for _, path := range []string{"/", "/dbs", "/dbs/d/colls/c/docs/i", "/nonsense", "/_mayfly/health", "/_mayfly/metrics", "/_mayfly/clock", "/_mayfly/nonsense"} {
			for _, secure := range []bool{false, true} {
				r, err := http.NewRequest("GET", "http://localhost"+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = host
				if secure {
					r.TLS = &tls.ConnectionState{}
				}
				a := serve(h, r)
				if got := a.status != 403; got != want {
					t.Errorf("%s of host %q is answered %d: %s", path, host, a.status, a.body)
				}
				if !want {
					if text := a.failureText(t, 403, 0); !strings.Contains(text, "--allow-host "+hostName(host)+",") {
						t.Errorf("host %q is told %q", host, text)
					}
				}
				if a := serve(own, r); a.status == 403 {
					t.Errorf("%s of host %q is refused with a key of our own", path, host)
				}
			}
		}
	}
}

func TestBadAllowedHosts(t *testing.T) {
	for _, host := range []string{"", "http://x.example", "x.example/", "a b", "*", "a.*.example", "x@y.example"} {
		if _, err := newHosts(false, &api.Account{}, []string{host}); err == nil {
			t.Errorf("%q is taken for a host", host)
		}
	}
}
