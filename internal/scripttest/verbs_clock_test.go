// SPDX-License-Identifier: MIT

// Time, and the life of the server.

package scripttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// now shows the time and what drives it.
//
//	now
//	----
//	2100-01-01T00:00:00.000Z, frozen
func now(s *script, d *directive) string { return s.clock(d, "") }

// freeze stops the time, release lets it tick.
//
//	release
//	----
//	ticking
func freeze(s *script, d *directive) string  { return s.clock(d, `{"freeze":true}`) }
func release(s *script, d *directive) string { return s.clock(d, `{"release":true}`) }

// advance moves the time on.
//
//	advance 1500ms
//	----
//	2100-01-01T00:00:01.500Z, frozen
func advance(s *script, d *directive) string {
	return s.clock(d, fmt.Sprintf(`{"advance":%q}`, d.word("")))
}

// set moves the time to a moment, which is not in the past.
//
//	set 2100-01-01T00:00:05Z
//	----
//	2100-01-01T00:00:05.000Z, frozen
func set(s *script, d *directive) string {
	return s.clock(d, fmt.Sprintf(`{"set":%q}`, d.word("")))
}

// confirm accepts a jump of the wall clock that is not followed.
//
//	confirm
//	----
//	400 clock: no jump of the wall clock waits for confirmation
func confirm(s *script, d *directive) string { return s.clock(d, `{"confirm":true}`) }

// clock asks for the time, after a change of it if there is a body.
func (s *script) clock(d *directive, body string) string {
	d.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	header := http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}
	a, err := s.server.send(method, "/_mayfly/clock", header, []byte(body))
	if err != nil {
		d.fatalf("the clock: %v", err)
	}
	if a.status != http.StatusOK {
		text, err := a.errorText()
		if err != nil {
			d.fatalf("%v", err)
		}
		return strconv.Itoa(a.status) + " " + text
	}
	var c struct {
		Now, Mode, Reason         string
		NowMs, HorizonMs, AheadMs int64
		PurgeTrusted              bool
	}
	if err := json.Unmarshal(a.body, &c); err != nil {
		d.fatalf("%s: %v", a.body, err)
	}
	switch c.Mode {
	case "test": // it ticks, so what it says is no two times the same
		return "ticking"
	case "test frozen":
		return c.Now + ", frozen"
	}
	text := c.Now + ", " + c.Mode
	if c.AheadMs > 0 {
		text += fmt.Sprintf(", by %v", time.Duration(c.AheadMs)*time.Millisecond)
	}
	if doubt := c.NowMs - c.HorizonMs; doubt > 0 {
		text += fmt.Sprintf("; in doubt: the last %v", time.Duration(doubt)*time.Millisecond)
	}
	if well := c.Mode == "wall" && c.PurgeTrusted; well != (c.Reason == "") || c.PurgeTrusted != (c.NowMs == c.HorizonMs) {
		d.fatalf("the clock has a reason, or none: %s", a.body)
	}
	return text
}

// wall moves the machine's clocks. A script that uses it begins with it, and has no test
// clock: its database follows the machine's clocks.
//
//	wall start=2100-01-01T00:00:00Z    where the wall clock stands at first
//	wall pass=60s                      a minute passes
//	wall sleep=8h                      the machine sleeps
//	wall step=-1h                      the wall clock is set back
func wall(s *script, d *directive) string {
	if s.machine.manual && d.option("start") == "" {
		s.machine.pass(d.duration("pass"), d.duration("sleep"), d.duration("step"))
	}
	return s.clock(d, "")
}

// takeClocks replaces the machine's clocks before the server starts.
func (s *script) takeClocks(d *directive) {
	t, err := time.Parse(time.RFC3339, d.option("start"))
	if err != nil {
		d.fatalf("a script with the machine's clocks in hand begins with wall start=%s", startOfTime)
	}
	s.machine.manual = true
	s.machine.pass(0, 0, time.Duration(t.UnixMilli())*time.Millisecond)
}

// duration reads an optional duration.
func (d *directive) duration(key string) time.Duration {
	text := d.option(key)
	if text == "" {
		return 0
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		d.fatalf("%s=%s is no duration", key, text)
	}
	return v
}

// startServer sets the server up. A script that uses it begins with it.
//
//	server container-quota=4000 partition-key-quota=1000
//	----
//	started
//
// Both quotas are in bytes; purge=on lets purge work in the background, and
// throughput=enforce holds requests to what is provisioned. regions=(A, B=endpoint),
// writes=everywhere and consistency=Strong are what the account says of itself, and
// retention=10, in minutes, is for how long it keeps all versions of items. script-time=1s is how long a
// stored procedure may take, which is minutes without it. owners=1 has one node of a cluster own
// all partitions: a page of a list ends where the partitions of another node begin.
func startServer(s *script, d *directive) string {
	if !d.first {
		d.fatalf("a server is set up at the beginning of a script")
	}
	return "started"
}

func (s *script) setUp(d *directive) {
	s.server.setUp(setup{
		purge: d.option("purge") == "on", enforce: d.option("throughput") == "enforce",
		containerQuota: int64(d.number("container-quota")), partitionKeyQuota: int64(d.number("partition-key-quota")),
		regions: d.options("regions"), multiWrite: d.option("writes") == "everywhere", consistency: d.option("consistency"), retention: time.Duration(d.number("retention")) * time.Minute,
		scriptTime: d.duration("script-time"), oneOwner: d.option("owners") == "1",
	})
}

// restart stops the server cleanly and starts it again. The wall clock may be set
// meanwhile, time may pass, or the machine may be off.
//
//	restart step=-1h
//	restart pass=1h
//	restart off=1h
//	----
//	restarted
func restart(s *script, d *directive) string {
	if err := s.server.stop(); err != nil {
		d.fatalf("stop the server: %v", err)
	}
	if s.machine != nil {
		s.machine.pass(d.duration("pass"), 0, d.duration("step"))
		if d.option("off") != "" {
			s.machine.reboot(d.duration("off"))
		}
	}
	if err := s.server.start(); err != nil {
		d.fatalf("start the server: %v", err)
	}
	return "restarted"
}

// rewind stops the server, sets its clock right, and starts it again.
//
//	rewind
//	----
//	rewound 3 items
func rewind(s *script, d *directive) string {
	if err := s.server.stop(); err != nil {
		d.fatalf("stop the server: %v", err)
	}
	inside, ok := s.server.(*inProcess)
	if !ok {
		d.fatalf("only a server in this process can be rewound")
	}
	done, err := inside.rewind(d.option("force") == "yes")
	text := fmt.Sprintf("rewound %d items, by %v", done.Items, time.Duration(done.FromMs-done.ToMs)*time.Millisecond)
	if err != nil {
		text = err.Error()
	}
	if err := s.server.start(); err != nil {
		d.fatalf("start the server: %v", err)
	}
	return text
}

// crash cuts the power, or kills the nodes that may own partitions: the server starts again
// with what was durable.
//
//	crash
//	----
//	restarted
func crash(s *script, d *directive) string {
	if s.machine != nil {
		s.machine.crash()
		return restart(s, d)
	}
	if err := s.server.(crasher).crash(); err != nil {
		d.fatalf("crash the server: %v", err)
	}
	return "restarted"
}

// allIsWell is the output of a check without problems.
const allIsWell = "ok"

// check checks all rows of the data. Every script ends with it.
//
//	check
//	----
//	ok
func check(s *script, d *directive) string {
	found := s.checked(d.T)
	if err := s.server.start(); err != nil {
		d.fatalf("start the server: %v", err)
	}
	return found
}

func (s *script) checked(t *testing.T) string {
	t.Helper()
	problems, err := s.server.check()
	if err != nil {
		t.Fatalf("the check could not go on: %v", err)
	}
	if len(problems) > 0 {
		return strings.Join(problems, "\n")
	}
	return allIsWell
}
