// SPDX-License-Identifier: MIT

package cli

import (
	"net"
	"testing"
)

func TestAnyAddress(t *testing.T) {
	for text, want := range map[string]bool{"0.0.0.0:8081": true, "[::]:8081": true, ":8081": true, "127.0.0.1:8081": false, "[::1]:8081": false, "10.0.0.1:8081": false} {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := anyAddress(a); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
