// SPDX-License-Identifier: MIT

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is a refusal of the server.
type Error struct {
	Status, SubStatus int
	// Message is the sentence of the server, without what is around it.
	Message string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.SubStatus != 0 {
		text += fmt.Sprintf(" (%d)", e.SubStatus)
	}
	return text + ": " + e.Message
}

// Is reports whether an error is a refusal with a status.
func Is(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// Unreachable means that there was no answer.
type Unreachable struct {
	Endpoint string
	Err      error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("cannot reach the server at %s: %v", u.Endpoint, u.Err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

func newError(a *Answer) *Error {
	return &Error{a.Status, int(a.Number("X-Ms-Substatus")), sentence(a.Body)}
}

// maxSentenceBytes bounds what is shown of an answer that is no error of the protocol, such
// as a page of a proxy.
const maxSentenceBytes = 500

// sentence returns the sentence in an error's body, whose message holds JSON and a trailer.
func sentence(body []byte) string {
	var failure struct{ Message string }
	if err := json.Unmarshal(body, &failure); err != nil || failure.Message == "" {
		return clip(strings.TrimSpace(string(body)))
	}
	inner, _, _ := strings.Cut(strings.TrimPrefix(failure.Message, "Message: "), "\r\n")
	var list struct{ Errors []json.RawMessage }
	if err := json.Unmarshal([]byte(inner), &list); err != nil || len(list.Errors) == 0 {
		return clip(failure.Message)
	}
	var sentences []string
	for _, raw := range list.Errors {
		var text string
		var found struct {
			Message  string
			Location *struct{ Start, End int }
		}
		switch {
		case json.Unmarshal(raw, &text) == nil:
		case json.Unmarshal(raw, &found) == nil && found.Message != "":
			text = found.Message
			if found.Location != nil {
				text += fmt.Sprintf(" (at character %d)", found.Location.Start+1)
			}
		default:
			text = string(raw)
		}
		sentences = append(sentences, text)
	}
	// Some have what the server signed, which has several lines.
	return clip(strings.ReplaceAll(strings.Join(sentences, " "), "\n", `\n`))
}

func clip(text string) string {
	if len(text) > maxSentenceBytes {
		return strings.ToValidUTF8(text[:maxSentenceBytes], "") + "…"
	}
	return text
}
