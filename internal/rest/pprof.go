// SPDX-License-Identifier: MIT

// Profiles of the server, for go tool pprof. They are made with runtime/pprof, since
// net/http/pprof registers itself with the default multiplexer, which belongs to the
// program that embeds the database, and checks no key.

package rest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
)

const (
	defaultProfileSeconds = 30
	defaultTraceSeconds   = 1
	// maxProfileSeconds leaves time to send the profile before writeTimeout.
	maxProfileSeconds = 60
)

// errProfiling: only one profile can be made at a time.
var errProfiling = api.Refuse(409, 0, "Another profile is being made, and there can be only one at a time. Try again later.")

// servePprof makes a profile. It needs the master key: as a bearer token, or as the
// password in a URL, which is the only way to give one to go tool pprof.
func (x *exchange) servePprof(page string) error {
	by, err := x.h.bearer(x.r)
	if _, password, basic := x.r.BasicAuth(); basic {
		by, err = x.h.service.Keys.Key(password)
	}
	x.known = err == nil
	switch {
	case err != nil:
		return x.unauthenticated(err)
	case by != api.ByKey:
		return api.ErrForbidden
	case x.r.Method != http.MethodGet:
		return api.ErrMethod
	}
	x.Audit(by, "pprof "+page)
	switch page {
	case "":
		return x.listProfiles()
	case "profile":
		return x.profileCPU()
	case "trace":
		return x.record((*traceWriter)(x), defaultTraceSeconds, trace.Start, trace.Stop)
	}
	return x.profile(page)
}

func (x *exchange) listProfiles() error {
	list := []byte("profile?seconds=30\ntrace?seconds=1\n")
	for _, p := range pprof.Profiles() {
		list = fmt.Appendf(list, "%s\n", p.Name())
	}
	x.writeAs(http.StatusOK, contentText, list)
	return nil
}

// profile answers with a profile of the current state; with debug=1 as text.
func (x *exchange) profile(name string) error {
	p := pprof.Lookup(name)
	if p == nil {
		return errNoRoute
	}
	debug, err := x.number("debug", 0, 0, 2)
	if err != nil {
		return err
	}
	if x.r.URL.Query().Has("seconds") {
		return api.Invalid("Only profile and trace take seconds. The others show the current state: take two, and compare them with go tool pprof -base.")
	}
	if gc, err := x.number("gc", 0, 0, 1); err != nil {
		return err
	} else if gc == 1 {
		runtime.GC()
	}
	var b bytes.Buffer
	if err := p.WriteTo(&b, debug); err != nil {
		return err
	}
	contentType := contentBinary
	if debug > 0 {
		contentType = contentText
	}
	x.writeAs(http.StatusOK, contentType, b.Bytes())
	return nil
}

// profileCPU answers with a CPU profile of some seconds.
func (x *exchange) profileCPU() error {
	var b bytes.Buffer
	if err := x.record(&b, defaultProfileSeconds, pprof.StartCPUProfile, pprof.StopCPUProfile); err != nil {
		return err
	}
	x.writeAs(http.StatusOK, contentBinary, b.Bytes())
	return nil
}

// record runs start, waits for the requested seconds, and runs stop.
func (x *exchange) record(w io.Writer, otherwise int, start func(io.Writer) error, stop func()) error {
	seconds, err := x.number("seconds", otherwise, 1, maxProfileSeconds)
	if err != nil {
		return err
	}
	if err := start(w); err != nil {
		return errProfiling
	}
	x.pause(time.Duration(seconds) * time.Second)
	stop()
	return nil
}

// traceWriter sends a trace while it is made. The first bytes begin the answer.
type traceWriter exchange

func (w *traceWriter) Write(p []byte) (int, error) {
	x := (*exchange)(w)
	if !x.wrote {
		x.setCommon()
		x.set(headerContentType, contentBinary)
		x.begin(http.StatusOK)
	}
	return x.w.Write(p)
}

// pause waits, but not after the client has gone or the server stops.
func (x *exchange) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
	case <-x.h.followers.stopping(x.r):
	case <-x.h.followers.closed:
	}
}

// number parses a numeric parameter of a page.
func (x *exchange) number(name string, otherwise, least, most int) (int, error) {
	text := x.r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, api.Invalid(fmt.Sprintf("The parameter %s must be a number from %d to %d.", name, least, most))
	}
	return n, nil
}
