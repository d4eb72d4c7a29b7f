// SPDX-License-Identifier: MIT

package syntax

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
	// More is what else is wrong with the query, as far as it was looked at.
	More []*Error
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// JSON returns what the message of a 400 response carries, which clients parse. The few reasons
// without a code come in a form of their own, and a code that is a number is
// one there too, and does not say where.
func (e *Error) JSON() []byte {
	if e.Code == "" {
		dst := value.AppendString([]byte(`{"Errors":[`), e.Message)
		return append(dst, "]}"...)
	}
	dst := e.appendJSON([]byte(`{"errors":[`))
	for _, other := range e.More {
		dst = other.appendJSON(append(dst, ','))
	}
	return append(dst, "]}"...)
}

// appendJSON appends one error of the list. A code of digits alone is written as a number,
// without a location.
func (e *Error) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"severity":"Error",`...)
	if value.Digits(e.Code) == len(e.Code) {
		dst = append(append(dst, `"code":`...), e.Code...)
	} else {
		dst = strconv.AppendInt(append(dst, `"location":{"start":`...), int64(e.Span.Start), 10)
		dst = strconv.AppendInt(append(dst, `,"end":`...), int64(e.Span.End), 10)
		dst = value.AppendString(append(dst, `},"code":`...), e.Code)
	}
	dst = value.AppendString(append(dst, `,"message":`...), e.Message)
	return append(dst, '}')
}

// Errorf makes an error. An empty code means that the service has none for the reason.
func Errorf(s Span, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Span: s}
}
