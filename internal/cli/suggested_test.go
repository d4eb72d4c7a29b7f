// SPDX-License-Identifier: MIT

package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A misspelled command is answered with the one that was probably meant.
func TestSuggestedCommand(t *testing.T) {
	var c commands
	k := kong.Must(&c, options("mayfly")...)
	for word, want := range map[string]string{
		"serv": `did you mean "serve"?`, "qury": `did you mean "query"?`, "improt": `did you mean "import"?`,
		"nosuch": "mayfly help lists", "x": "mayfly help lists",
	} {
		_, err := k.Parse([]string{word})
		if err = suggested(err, []string{word}, k.Model); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mayfly %s: %v, want %s", word, err, want)
		}
		if parse := new(kong.ParseError); !errors.As(err, &parse) {
			t.Errorf("mayfly %s: %v has no exit code of its own", word, err)
		}
	}
	args := []string{"serve", "extra"}
	_, err := k.Parse(args)
	if got := suggested(err, args, k.Model); err == nil || !errors.Is(got, err) || strings.Contains(got.Error(), "mean") {
		t.Errorf("mayfly %q: %v", args, got)
	}
}
