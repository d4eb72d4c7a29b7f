// SPDX-License-Identifier: MIT

// Answers as frames. Clients rely on more than they say: without positions they ask again,
// for seconds, or send requests that only wait for a position. DESIGN.md lists what each
// token is for.

package direct

import (
	"errors"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

const (
	protocolVersion = 1
	clientVersion   = "2018-12-31"
	serverAgent     = "Mayfly"
	serverVersion   = "version=2.14.0.0"

	// maxCopied is the largest payload that is copied into its frame. A larger one is
	// written from where it is.
	maxCopied = 16 << 10

	statusOK        = 200
	statusGone      = 410
	statusTooMany   = 429
	statusRetryWith = 449
	firstError      = 400
)

// accepted answers the frame that opens a channel.
func accepted(b []byte, activity rntbd.GUID, version uint32) outgoing {
	status := statusOK
	var payload []byte
	if version != protocolVersion { // clients want a payload then
		status, payload = firstError, []byte(`{"Errors":["This version of the protocol is not known."]}`)
	}
	b = rntbd.BeginResponse(b, status, activity)
	b = rntbd.AppendULong(b, rntbd.AcceptedProtocolVersion, protocolVersion)
	b = rntbd.AppendSmall(b, rntbd.AcceptedClientVersion, clientVersion)
	b = rntbd.AppendSmall(b, rntbd.AcceptedServerAgent, serverAgent)
	b = rntbd.AppendSmall(b, rntbd.AcceptedServerVersion, serverVersion)
	b = rntbd.AppendULong(b, rntbd.AcceptedIdleTimeoutInSeconds, uint32(idleTimeout/time.Second))
	b = rntbd.AppendULong(b, rntbd.AcceptedUnauthenticatedTimeoutInSeconds, uint32(authTimeout/time.Second))
	rntbd.End(b, 0)
	if payload != nil {
		b = append(rntbd.AppendLength(b, len(payload)), payload...)
	}
	return outgoing{head: b, size: int64(len(b))}
}

// handle answers the request, without rendering.
func (x *exchange) handle() error {
	if r := &x.Request; r.Verb == api.Batch || r.Verb == api.Bulk {
		x.Activity = x.id.String() // the results of operations name it
	}
	err := x.Handle()
	if errors.Is(err, engine.ErrContainerChanged) && x.asked.intendedRID == "" {
		return errStale
	}
	if errors.Is(err, kv.ErrUnavailable) {
		return errUnavailable
	}
	if err == nil && len(x.Answer.Continuation) > rntbd.MaxText {
		x.Answer.Continuation = ""
		return engine.ErrContinuationLimit
	}
	return err
}

// errStale tells a client that another container has the name that it uses.
var errStale = api.Refuse(statusGone, 1000, "The container that the client knows by this name was deleted and created again.")

// errUnavailable tells a client that this node cannot answer now, and has written nothing.
// With this status clients look for the address again, and retry for 30 s.
var errUnavailable = api.Refuse(statusGone, 0, "The node cannot answer for the partition now. Nothing was changed. Look for its address again.")

// answer sends the answer.
func (x *exchange) answer() {
	a := &x.Answer
	b := rntbd.BeginResponse(newFrame(), a.Status, x.id)
	n := 0
	for _, part := range a.Parts {
		n += len(part)
	}
	b = rntbd.AppendFlag(b, rntbd.ResponsePayloadPresent, n > 0)
	b = rntbd.AppendULong(b, rntbd.ResponseTransportRequestID, x.transport)
	b = x.appendAnswer(b, a.Status)
	rntbd.End(b, 0)
	x.send(b, a.Status, n, a.Parts)
}

// answerError sends an error, with as much of the answer as is known.
func (x *exchange) answerError(err error) {
	x.Activity = x.id.String()
	f := x.Fail(err)
	payload := api.Refusal(f, err)
	b := rntbd.BeginResponse(newFrame(), f.Status, x.id)
	b = rntbd.AppendFlag(b, rntbd.ResponsePayloadPresent, true)
	b = rntbd.AppendULong(b, rntbd.ResponseTransportRequestID, x.transport)
	if !x.Answer.Positioned && f.Status != statusGone && f.Status != statusRetryWith {
		// Without a position a client would ask the other replica, and again for seconds.
		b = rntbd.AppendFlag(b, rntbd.ResponseRequestValidationFailure, true)
	}
	if f.SubStatus != 0 {
		b = rntbd.AppendULong(b, rntbd.ResponseSubStatus, uint32(f.SubStatus))
	}
	if wait := api.RetryAfter(err, f); wait > 0 {
		b = rntbd.AppendULong(b, rntbd.ResponseRetryAfterMilliseconds, uint32(wait.Milliseconds()))
	}
	b = x.appendAnswer(b, f.Status)
	rntbd.End(b, 0)
	x.send(b, f.Status, len(payload), [3][]byte{payload})
}

// send queues a frame with a payload of n bytes. After it the exchange is gone, unless the
// payload is its memory.
func (x *exchange) send(b []byte, status, n int, parts [3][]byte) {
	ch, inline := x.ch, x.inline
	ch.s.Observe(&x.Call, status)
	o := outgoing{size: int64(len(b) + n)}
	if n > 0 {
		b = rntbd.AppendLength(b, n)
	}
	if n > maxCopied {
		x.release()
		x.Keep(int64(n))
		o.x, o.parts = x, parts
	} else {
		for _, part := range parts {
			b = append(b, part...)
		}
		x.end()
	}
	if o.head = b; inline {
		ch.queue(o)
	} else {
		ch.send(o)
	}
}

// appendAnswer appends the tokens of an answer; for an error, as many as are known.
func (x *exchange) appendAnswer(b []byte, status int) []byte {
	a := &x.Answer
	charge := float64(x.Charged())
	if status == statusTooMany {
		charge = 0 // nothing was executed
	}
	b = rntbd.AppendDouble(b, rntbd.ResponseRequestCharge, charge)
	b = x.appendPosition(b)
	if a.OwnerRID != "" {
		b = rntbd.AppendText(b, rntbd.ResponseOwnerFullName, a.OwnerPath)
		b = rntbd.AppendText(b, rntbd.ResponseOwnerID, a.OwnerRID)
	}
	if a.Counted {
		b = rntbd.AppendText(b, rntbd.ResponseStorageMaxResourceQuota, x.ch.s.quota())
		var usage [128]byte
		b = rntbd.AppendText(b, rntbd.ResponseStorageResourceQuotaUsage, string(api.AppendUsage(usage[:0], a.Live)))
	}
	if a.ETag != "" {
		b = rntbd.AppendText(b, rntbd.ResponseETag, a.ETag)
	}
	if a.Continuation != "" {
		b = rntbd.AppendText(b, rntbd.ResponseContinuationToken, a.Continuation)
	}
	if a.List {
		b = rntbd.AppendULong(b, rntbd.ResponseItemCount, uint32(a.Count))
	}
	for _, e := range a.Extras {
		b = appendExtra(b, e)
	}
	return b
}

// appendPosition appends the position of the partition that answered. There is one
// replica, so all of its positions are the same. Without a partition the position is 1:
// clients of metadata want one, and take 0 for a replica that lags behind.
func (x *exchange) appendPosition(b []byte) []byte {
	a := &x.Answer
	if a.Positioned {
		b = rntbd.AppendText(b, rntbd.ResponsePartitionKeyRangeID, catalog.RangeID(a.Partition))
		b = rntbd.AppendText(b, rntbd.ResponseSessionToken, engine.SessionPosition(a.LSN))
		b = rntbd.AppendDouble(b, rntbd.ResponseBackendRequestDurationMilliseconds, float64(time.Since(x.Began).Nanoseconds())/1e6)
	}
	lsn := max(int64(a.LSN), 1)
	b = rntbd.AppendLongLong(b, rntbd.ResponseLSN, lsn)
	b = rntbd.AppendLongLong(b, rntbd.ResponseQuorumAckedLSN, lsn)
	b = rntbd.AppendLongLong(b, rntbd.ResponseGlobalCommittedLSN, lsn)
	b = rntbd.AppendLongLong(b, rntbd.ResponseLocalLSN, lsn)
	b = rntbd.AppendLongLong(b, rntbd.ResponseQuorumAckedLocalLSN, lsn)
	b = rntbd.AppendULong(b, rntbd.ResponseCurrentWriteQuorum, 1)
	b = rntbd.AppendULong(b, rntbd.ResponseCurrentReplicaSetSize, 1)
	b = rntbd.AppendULong(b, rntbd.ResponseNumberOfReadRegions, 0)
	if a.ItemLSN != 0 {
		b = rntbd.AppendLongLong(b, rntbd.ResponseItemLSN, int64(a.ItemLSN))
		b = rntbd.AppendLongLong(b, rntbd.ResponseItemLocalLSN, int64(a.ItemLSN))
	}
	return b
}

// extraTokens are the tokens of values that only some answers have, and their types.
var extraTokens = map[api.ExtraKind]struct {
	id rntbd.Token
	as rntbd.Type
}{
	api.QueryMetrics:         {rntbd.ResponseQueryMetrics, rntbd.String},
	api.IndexUtilization:     {rntbd.ResponseIndexUtilization, rntbd.String},
	api.QueryExecution:       {rntbd.ResponseQueryExecutionInfo, rntbd.String},
	api.ScriptLog:            {rntbd.ResponseLogResults, rntbd.String},
	api.Quota:                {rntbd.ResponseStorageMaxResourceQuota, rntbd.String},
	api.Usage:                {rntbd.ResponseStorageResourceQuotaUsage, rntbd.String},
	api.RequiresDistribution: {rntbd.ResponseRequiresDistribution, rntbd.Byte},
	api.ReplacePending:       {rntbd.ResponseOfferReplacePending, rntbd.Byte},
	api.SharedThroughput:     {rntbd.ResponseShareThroughput, rntbd.Byte},
	api.MinThroughput:        {rntbd.ResponseMinimumRUsForOffer, rntbd.ULong},
	api.AnalyticalProgress:   {rntbd.ResponseAnalyticalMigrationProgress, rntbd.ULong},
	api.IndexProgress:        {rntbd.ResponseCollectionUpdateProgress, rntbd.ULong},
}

// appendExtra appends a value that only some answers have, if there is a token for it.
func appendExtra(b []byte, e api.Extra) []byte {
	token, ok := extraTokens[e.Kind]
	if !ok {
		return b
	}
	switch token.as {
	case rntbd.Byte:
		return rntbd.AppendFlag(b, token.id, e.Text == "true" || e.Text == "True")
	case rntbd.ULong:
		n, err := strconv.ParseUint(e.Text, 10, 32)
		if err != nil {
			return b
		}
		return rntbd.AppendULong(b, token.id, uint32(n))
	}
	if e.Kind == api.ScriptLog {
		e.Text = api.EscapeLog(e.Text)
	}
	return rntbd.AppendText(b, token.id, e.Text)
}
