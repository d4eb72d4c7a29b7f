// SPDX-License-Identifier: MIT

package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/term"
)

// typedLines reads what is typed, without the modes of a real terminal.
type typedLines struct{ terminalLines }

func (l *typedLines) read(prompt string) (string, error) { return l.line(prompt) }

func (l *typedLines) done(string) {}

// Ctrl-C drops the line, and all lines of a query, and Ctrl-D is the end, however the keys arrive.
func TestKeys(t *testing.T) {
	const typed = "nonsense\x03ls\rselect 1\rnonsense\x03\x03use shop\r\x04"
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(typed), "one by one": iotest.OneByteReader(strings.NewReader(typed))} {
		keys := &keyboard{r: r}
		var screen strings.Builder
		terminal := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{keys, &screen}, "")
		s := &shell{lines: &typedLines{terminalLines{t: terminal, keys: keys}}}
		var got []string
		for {
			text, err := s.statement()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != "ls; use shop" {
			t.Errorf("%s: the statements are %q", name, text)
		}
	}
}

// A server that listens on all addresses is named by one that a client can use.
func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"[::]:8081": "127.0.0.1:8081", "0.0.0.0:80": "127.0.0.1:80", "127.0.0.1:8081": "127.0.0.1:8081", "[::1]:1": "[::1]:1", "192.0.2.7:8081": "192.0.2.7:8081",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s is reachable at %s, want %s", address, got, want)
		}
	}
}
