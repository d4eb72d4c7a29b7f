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
