// SPDX-License-Identifier: MIT

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
)

type clockCommand struct {
	running

	Show    clockShow    `cmd:"" default:"1" help:"Show the time and how it follows the machine's clock."`
	Freeze  clockFreeze  `cmd:"" help:"Stop the time where it is (test clock only)."`
	Set     clockSet     `cmd:"" help:"Move the time forward to a moment (test clock only)."`
	Advance clockAdvance `cmd:"" help:"Move the time forward by a duration (test clock only)."`
	Release clockRelease `cmd:"" help:"Let the time go on from where it is (test clock only)."`
	Confirm clockConfirm `cmd:"" help:"Confirm that the machine's clock is right after a jump, so that items which the jump has expired are purged now."`
	Rewind  clockRewind  `cmd:"" help:"Set the time of a stopped server back to the machine's clock, after that was wrong and has been corrected."`
}

type (
	clockShow    struct{}
	clockFreeze  struct{}
	clockRelease struct{}
	clockConfirm struct{}
	clockSet     struct {
		Time string `arg:"" help:"For example 2030-01-01T00:00:00Z."`
	}
	clockAdvance struct {
		Duration string `arg:"" help:"For example 90s, 24h, 3d."`
	}
)

type clockRewind struct {
	engineFlag
	Data  string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
	Force bool   `help:"Rewind even if the time is ahead by more than the jumps that it has followed."`
}

// Run sets the clock back.
func (r clockRewind) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if r.Engine != "" {
		return clock.ErrSharedRewind
	}
	done, err := mayfly.RewindClock(ctx, mayfly.RewindOptions{Dir: r.Data, Force: r.Force, Progress: os.Stderr})
	if err != nil {
		return openFailed(err)
	}
	fmt.Printf("The database's time went back from %s to %s. %d items that were written meanwhile have new times.\n",
		done.From.Format(time.RFC3339), done.To.Format(time.RFC3339), done.Items)
	return nil
}

func (clockShow) Run(c *commands) error    { return c.Clock.call(http.MethodGet, nil) }
func (clockFreeze) Run(c *commands) error  { return c.Clock.post("freeze", true) }
func (clockRelease) Run(c *commands) error { return c.Clock.post("release", true) }
func (clockConfirm) Run(c *commands) error { return c.Clock.post("confirm", true) }
func (s clockSet) Run(c *commands) error   { return c.Clock.post("set", s.Time) }
func (a clockAdvance) Run(c *commands) error {
	return c.Clock.post("advance", a.Duration)
}

const clockTimeout = 10 * time.Second

func (c *clockCommand) post(what string, value any) error {
	body, err := json.Marshal(map[string]any{what: value})
	if err != nil {
		return err
	}
	return c.call(http.MethodPost, body)
}

func (c *clockCommand) call(method string, body []byte) error {
	res, err := c.send(method, "clock", nil, body, clockTimeout)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, string(answer))
	return err
}
