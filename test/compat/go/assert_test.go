// SPDX-License-Identifier: MIT

package compat

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// refusal is how the server is to refuse a request.
type refusal struct {
	status    int
	code      string
	subStatus string // empty for none
	text      string // a part of the message
}

var (
	notFound     = refusal{status: http.StatusNotFound, code: "NotFound", text: "Resource Not Found"}
	conflict     = refusal{status: http.StatusConflict, code: "Conflict", text: "already exists"}
	precondition = refusal{status: http.StatusPreconditionFailed, code: "PreconditionFailed", text: "pre-condition is not met"}
)

func badRequest(text string) refusal {
	return refusal{status: http.StatusBadRequest, code: "BadRequest", text: text}
}

// refused checks that err is the SDK's form of the refusal.
func refused(t *testing.T, what string, err error, want refusal) {
	t.Helper()
	var got *azcore.ResponseError
	if !errors.As(err, &got) {
		t.Errorf("%s: got %v, want the status %d", what, err, want.status)
		return
	}
	// The SDK's own ErrorCode is but the status line.
	body, _ := runtime.Payload(got.RawResponse)
	var failure struct{ Code, Message string }
	if err := json.Unmarshal(body, &failure); err != nil {
		t.Errorf("%s: the body %q of the error: %v", what, body, err)
	}
	if got.StatusCode != want.status || failure.Code != want.code {
		t.Errorf("%s: got %d %q, want %d %q\n%v", what, got.StatusCode, failure.Code, want.status, want.code, err)
	}
	if sub := got.RawResponse.Header.Get("x-ms-substatus"); sub != want.subStatus {
		t.Errorf("%s: got the sub-status %q, want %q", what, sub, want.subStatus)
	}
	if !strings.Contains(failure.Message, want.text) {
		t.Errorf("%s: the message lacks %q:\n%v", what, want.text, err)
	}
}

// succeeded checks the status, and what goes with every answer.
func succeeded(t *testing.T, what string, res azcosmos.Response, err error, status int) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if res.RawResponse.StatusCode != status {
		t.Errorf("%s: got the status %d, want %d", what, res.RawResponse.StatusCode, status)
	}
	if res.RequestCharge <= 0 {
		t.Errorf("%s: got the charge %v, want more than 0", what, res.RequestCharge)
	}
	if res.ActivityID == "" {
		t.Errorf("%s: there is no activity id", what)
	}
}
