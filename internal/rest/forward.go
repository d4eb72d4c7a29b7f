// SPDX-License-Identifier: MIT

// Requests for partitions that another node owns. The node that a client came to passes the
// request on, as it was received, and the answer back, as it was made. The owner verifies
// the client's credential itself.
//
//  1. A request is passed on once. A node that gets one for a partition that it does not
//     own says so, with status 421, and the first node looks for the owner again.
//  2. While there is no owner that answers, a request waits, for ownerWait at most.
//  3. A write that may have been executed is never sent again: its client gets 408.

package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/peer"
)

const (
	// ownerWait is how long a request looks for an owner that answers it.
	ownerWait = 8 * time.Second
	// Between two attempts it pauses, each time for twice as long.
	minOwnerPause = 20 * time.Millisecond
	maxOwnerPause = 200 * time.Millisecond
)

// Cluster is what transports ask of this node's part in a cluster.
type Cluster interface {
	// Owner returns the node that owns a partition, or that should claim it. Its address is
	// empty if it is this node.
	Owner(ctx context.Context, c *catalog.Container, index int) (node, address string, err error)
}

var (
	// errNoOwner has the sub-status of the service's own refusals of this kind. SDKs retry
	// reads after it, and the text tells all others that they may.
	errNoOwner = api.Refuse(503, 21008, "Service is currently unavailable: no node could answer for the partition of the request in time. Nothing was changed. Please retry this request later.")
	errUnknown = api.Refuse(408, 0, "Request timed out: the node that owns the partition did not answer. Whether the request was executed is not known.")
)

// misdirected answers another node that this one cannot answer a request that was passed
// on, and that it has done nothing.
func misdirected(why error) error {
	return api.Refuse(http.StatusMisdirectedRequest, 0, why.Error())
}

// isPeer reports whether a request came on a connection of another node.
func isPeer(r *http.Request) bool { return r.TLS != nil && r.TLS.ServerName == peer.ServerName }

// recognise verifies the note of a request of another node. A node that has the secret but
// another name, or that meant another node, is told so, and has changed nothing.
func (x *exchange) recognise() error {
	conn := connOf(x.r)
	if conn == nil || x.h.peers == nil {
		return misdirected(peer.ErrStranger)
	}
	link := conn.link.Load()
	if link == nil {
		made, err := x.h.peers.trust.Accepted(x.r.TLS)
		if err != nil {
			return misdirected(err)
		}
		if link = made; !conn.link.CompareAndSwap(nil, made) {
			link = conn.link.Load()
		}
	}
	note, err := link.Verify(headerOf(x.r, headerPeer), x.h.peers.self, x.r.Method, x.r.URL.RequestURI())
	if err != nil {
		x.h.logger.Warn("a request of another node was refused", "address", x.r.RemoteAddr, "error", err)
		return misdirected(err)
	}
	x.note, x.passed = note, true
	return nil
}

// came returns when the client's request came, by the wall clock of the node that it came
// to. Clocks of nodes may differ: the date of a credential is judged by one of them.
func (x *exchange) came() time.Time {
	if x.passed {
		return time.UnixMilli(x.note.AtMs)
	}
	return x.Began
}

// secure reports whether the client's request came over TLS.
func (x *exchange) secure() bool {
	if x.passed {
		return x.note.Secure
	}
	return x.r.TLS != nil
}

// atOwner answers a request by do, or has the owner of its partition answer it.
func (x *exchange) atOwner(do func() error) error {
	if err := do(); err != nil {
		return x.elsewhere(err, do)
	}
	return nil
}

// elsewhere has another node answer the request, if err says that it owns the request's
// partition. Otherwise it returns err. again answers the request here, should this node
// become the owner.
func (x *exchange) elsewhere(err error, again func() error) error {
	var owner *cluster.NotOwnerError
	moved := errors.As(err, &owner)
	switch {
	case x.passed && !x.wrote && (moved || errors.Is(err, kv.ErrUnavailable)):
		return misdirected(err)
	case !moved || x.wrote || x.h.peers == nil:
		return err
	}
	return x.pass(owner, again)
}

// pass passes the request on to the owner of its partition.
func (x *exchange) pass(owner *cluster.NotOwnerError, again func() error) error {
	ctx := x.r.Context()
	looking, stop := context.WithTimeout(ctx, x.h.peers.wait)
	defer stop()
	var last error
	for pause := minOwnerPause; ; pause = min(2*pause, maxOwnerPause) {
		if owner != nil {
			a, err := x.h.peers.do(ctx, owner.Node, owner.Address, x.toPeer())
			var failed *peerError
			switch {
			case err == nil && a.status != http.StatusMisdirectedRequest:
				x.relay(a)
				return nil
			case err == nil:
				last = errors.New(string(a.body))
			case ctx.Err() != nil:
				return ctx.Err()
			case !errors.As(err, &failed):
				return err // there is no memory for the answer
			case failed.sent && !x.repeatable():
				x.h.logger.Warn("a write that was passed on has no answer", "activity", x.Activity, "error", err)
				return errUnknown
			default:
				last = err
			}
		}
		if !restFor(looking, pause) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.h.logger.Warn("no node has answered for a partition in time", "activity", x.Activity, "waited", x.h.peers.wait, "error", last)
			return errNoOwner
		}
		err := again()
		switch owner = nil; {
		case errors.As(err, &owner):
		case errors.Is(err, kv.ErrUnavailable) && !x.wrote:
			last = err
		default:
			return err
		}
	}
}

// restFor pauses. It returns false if ctx ends before.
func restFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// toPeer returns the request as it is passed on.
func (x *exchange) toPeer() *peerRequest {
	header := x.r.Header
	if x.signedIn {
		header = x.signed()
	}
	return &peerRequest{
		method: x.r.Method, target: x.r.URL.RequestURI(), host: x.r.Host, header: header, activity: x.Activity,
		body: x.received, at: x.Began, secure: x.secure(), room: x.roomForAnswer,
	}
}

// repeatable reports whether the request changes nothing, so that it may be executed twice.
func (x *exchange) repeatable() bool {
	if x.Row != nil {
		return x.Reads()
	}
	return x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
}

// roomForAnswer takes memory for the answer of another node. What a write has done is told
// in any case.
func (x *exchange) roomForAnswer(n int) error {
	if !x.repeatable() {
		x.Share.MustTake(int64(n))
		return nil
	}
	return x.Share.Take(x.Context, int64(n))
}

// relay answers with another node's answer.
func (x *exchange) relay(a *peerAnswer) {
	x.fields = append(x.fields[:0], a.fields...)
	if x.signedIn {
		x.setExplorerHeaders()
	}
	x.Keep(int64(len(a.body)))
	x.begin(a.status)
	if len(a.body) > 0 {
		x.put(a.body)
	}
}

// serveAsked answers a question of another node. To clients there is no such page.
func (x *exchange) serveAsked() error {
	if !x.passed || x.h.asked == nil || x.r.Method != http.MethodPost {
		return errNoRoute
	}
	question, err := x.bodyUpTo(MaxAskBytes)
	if err != nil {
		return err
	}
	answer, err := x.h.asked(x.r.Context(), question)
	if err == nil && len(answer) > MaxAskBytes {
		err = errors.New("the answer is too long")
	}
	if err != nil { // the other node may know the whole error
		x.writeAs(http.StatusInternalServerError, contentText, []byte(err.Error()))
		return nil
	}
	x.Share.MustTake(int64(len(answer)))
	x.writeAs(http.StatusOK, contentBinary, answer)
	return nil
}
