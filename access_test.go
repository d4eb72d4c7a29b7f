// SPDX-License-Identifier: MIT

package mayfly

import (
	"errors"
	"net"
	"testing"
)

// TestKeys checks what each key allows, also if the key is in lines, as openssl prints it.
func TestKeys(t *testing.T) {
	const first, second, reads, readsToo = "Zmlyc3Qga2V5", "c2Vjb25kIGtleQ==", "cmVhZGluZw==", "cmVhZGluZyB0b28="
	s := serveTest(t, Options{Memory: true, Key: first, SecondaryKey: "c2Vjb25k\nIGtleQ==\n", ReadOnlyKey: reads, SecondaryReadOnlyKey: readsToo})
	for _, c := range []struct {
		key           string
		create, lists int
	}{
		{first, 201, 200}, {second, 201, 200}, {reads, 403, 200}, {readsToo, 403, 200}, {WellKnownKey, 401, 401}, {"bm8ga2V5", 401, 401},
	} {
		signed := func(method string) map[string]string {
			h := signedHeaders(t, c.key, method, "/dbs")
			return map[string]string{"Authorization": h.Get("Authorization"), "X-Ms-Date": h.Get("X-Ms-Date")}
		}
		s.must(t, c.create, "POST", "/dbs", `{"id":"`+c.key+`"}`, signed("POST"))
		s.must(t, c.lists, "GET", "/dbs", "", signed("GET"))
		bearer := map[string]string{"Authorization": "Bearer " + c.key}
		s.must(t, c.lists, "GET", "/_mayfly/clock", "", bearer)
		if got := s.send(t, "POST", "/_mayfly/clock", "{}", bearer).status; (got == 400) != (c.create == 201) || got < 400 {
			t.Errorf("a move of the clock with the key %s is answered %d", c.key, got)
		}
	}
}

// TestNoWellKnownKeyBeyondLoopback checks that none of the keys may be WellKnownKey, or
// short enough to be guessed.
func TestNoWellKnownKeyBeyondLoopback(t *testing.T) {
	own, everywhere := "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE=", &net.TCPAddr{IP: net.IPv4zero, Port: 1}
	for _, o := range []Options{
		{}, {Key: WellKnownKey}, {Key: own, SecondaryKey: WellKnownKey}, {Key: own, ReadOnlyKey: WellKnownKey}, {Key: own, SecondaryReadOnlyKey: WellKnownKey},
	} {
		if err := o.Admits(everywhere); !errors.Is(err, ErrNeedsKey) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (Options{Key: own, SecondaryKey: own}).Admits(everywhere); err != nil {
		t.Error(err)
	}
	for _, o := range []Options{{Key: "b3du"}, {Key: own, SecondaryKey: "b3RoZXI="}} {
		if err := o.Admits(everywhere); !errors.Is(err, ErrShortKey) {
			t.Errorf("%+v: %v", o, err)
		}
		if err := o.Admits(&net.TCPAddr{IP: net.IPv6loopback}); err != nil {
			t.Errorf("%+v on loopback: %v", o, err)
		}
	}
}
