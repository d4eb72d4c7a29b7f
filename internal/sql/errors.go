// SPDX-License-Identifier: MIT

package sql

import (
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

// Error is a query that is refused, with the code and the text that Cosmos DB
// has for the reason.
type Error struct {
	Code    string // like SC1001, or empty if the reason has none
	Message string
	Span    Span // what is wrong, in the query text
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// JSON returns what the message of a 400 response carries. The few reasons
// without a code come in a form of their own, and a code that is a number is
// one there too.
func (e *Error) JSON() []byte {
	if e.Code == "" {
		dst := value.AppendString([]byte(`{"Errors":[`), e.Message)
		return append(dst, "]}"...)
	}
	dst := []byte(`{"errors":[{"severity":"Error","location":{"start":`)
	dst = strconv.AppendInt(dst, int64(e.Span.Start), 10)
	dst = append(dst, `,"end":`...)
	dst = strconv.AppendInt(dst, int64(e.Span.End), 10)
	dst = append(dst, `},"code":`...)
	if digitsLength(e.Code) == len(e.Code) {
		dst = append(dst, e.Code...)
	} else {
		dst = value.AppendString(dst, e.Code)
	}
	dst = append(dst, `,"message":`...)
	dst = value.AppendString(dst, e.Message)
	return append(dst, "}]}"...)
}

func errorAt(s Span, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Span: s}
}
