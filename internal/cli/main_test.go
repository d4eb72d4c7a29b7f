// SPDX-License-Identifier: MIT

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestFlagsTakeDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "1h30m": 90 * time.Minute, "5": 5 * time.Second} {
		var c commands
		k := kong.Must(&c, options("mayfly")...)
		if _, err := k.Parse([]string{"serve", "--query-time=" + text}); err != nil || c.Serve.QueryTime != want {
			t.Errorf("%s: got %v, %v, want %v", text, c.Serve.QueryTime, err, want)
		}
		_, err := k.Parse([]string{"serve", "--query-time=soon" + text})
		if err == nil || !strings.Contains(err.Error(), "not a duration such as 90s, 1h, 3d") {
			t.Errorf("soon%s: %v", text, err)
		}
	}
}

// A variable that looks like a setting and is none is named, with the one that was meant.
func TestVariablesThatAreNoSettingsAreNamed(t *testing.T) {
	var c commands
	var said strings.Builder
	warnOfVariables(&said, kong.Must(&c, options("mayfly")...).Model, []string{
		"MAYFLY_LISTEN=1", "MAYFLY_LISTN=x", "MAYFLY_CA=x", "MAYFLY_CONNECTION=x", "MAYFLY_NOTHING_LIKE_IT=x", "HOME=/", "MAYFLYER=1",
		"MAYFLY_SERVICE_HOST=10.0.0.1", "MAYFLY_PORT=tcp://10.0.0.1:8081", "MAYFLY_PORT_8081_TCP_ADDR=10.0.0.1", "MAYFLY_SERVICE_PORT_HTTP=8081",
	})
	want := "mayfly: there is no setting MAYFLY_LISTN: is it MAYFLY_LISTEN?\nmayfly: there is no setting MAYFLY_NOTHING_LIKE_IT\n"
	if said.String() != want {
		t.Errorf("it says:\n%swant:\n%s", &said, want)
	}
}

// The command line of a server is read without the other commands, which would take memory as
// long as it runs. Whatever there is to say of it is left to what knows all commands.
func TestServing(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"--memory"}, {"serve", "--memory", "--listen=9000"}} {
		if parsed := serving("mayfly", args, []string{"MAYFLY_DATA=x", "HOME=/", "MAYFLY_SERVICE_HOST=10.0.0.1"}); parsed == nil || parsed.Command() != "serve" || len(parsed.Model.Children) != 1 {
			t.Errorf("%q is not that of a server: %+v", args, parsed)
		}
	}
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"--version"}, {"version"}, {"ls"}, {"dance"}, {"serve", "more"}, {"--lissten=1"}, {"--query-time=soon"}} {
		if parsed := serving("mayfly", args, nil); parsed != nil {
			t.Errorf("%q is that of a server: %+v", args, parsed)
		}
	}
	for _, name := range []string{"MAYFLY_LISTN", "MAYFLY_CA"} {
		if parsed := serving("mayfly", nil, []string{name + "=1"}); parsed != nil {
			t.Errorf("nothing would be said of %s", name)
		}
	}
}

func TestSizesAndLimits(t *testing.T) {
	var c commands
	if _, err := kong.Must(&c, options("mayfly")...).Parse([]string{"serve", "--memory-limit=1GB", "--cache=0", "--container-quota=1.5GiB"}); err != nil {
		t.Fatal(err)
	}
	if s := &c.Serve; s.MemoryLimit != 1e9 || s.Cache != 0 || s.ContainerQuota != 3<<29 || s.PartitionKeyQuota != 20<<30 {
		t.Errorf("1GB is %d, 0 is %d, 1.5GiB is %d, and the default is %d", s.MemoryLimit, s.Cache, s.ContainerQuota, s.PartitionKeyQuota)
	}
	var l limit
	for _, text := range []string{"-1", "", "GB", "1 apple"} {
		if err := l.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d, want an error", text, l)
		}
	}
}

// A port alone stays on this machine. A server in the same environment is found at its port.
func TestListenAddress(t *testing.T) {
	for text, want := range map[string][2]string{
		"":               {"", "http://127.0.0.1:8081"},
		"9000":           {"127.0.0.1:9000", "http://127.0.0.1:9000"},
		":9000":          {":9000", "http://127.0.0.1:9000"},
		"0.0.0.0:9000":   {"0.0.0.0:9000", "http://127.0.0.1:9000"},
		"[::]:9000":      {"[::]:9000", "http://127.0.0.1:9000"},
		"10.0.0.1:9000":  {"10.0.0.1:9000", "http://10.0.0.1:9000"},
		"127.0.0.1:0":    {"127.0.0.1:0", "http://127.0.0.1:8081"},
		"localhost:8081": {"localhost:8081", "http://localhost:8081"},
	} {
		t.Setenv("MAYFLY_LISTEN", text)
		if got := [2]string{listenAddress(text), ownEndpoint()}; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
