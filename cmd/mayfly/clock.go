// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
)

type clockCommand struct {
	Endpoint string  `default:"http://127.0.0.1:8081" env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"The running server (${default})."`
	Key      string  `env:"MAYFLY_KEY" placeholder:"BASE64" help:"Its master key. Default: the well-known key."`
	KeyFile  keyFile `env:"MAYFLY_KEY_FILE" placeholder:"FILE" help:"File with that key."`

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
		Duration string `arg:"" help:"For example 90s, 24h."`
	}
)

type clockRewind struct {
	Data  string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
	Force bool   `help:"Rewind even if the time is ahead by more than the jumps that it has followed."`
}

// Run sets the clock back.
func (r clockRewind) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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

const (
	clockTimeout     = 10 * time.Second
	maxResponseBytes = 1 << 20
)

func (c *clockCommand) post(what string, value any) error {
	body, err := json.Marshal(map[string]any{what: value})
	if err != nil {
		return err
	}
	return c.call(http.MethodPost, body)
}

func (c *clockCommand) call(method string, body []byte) error {
	key, err := c.KeyFile.orWellKnown(c.Key)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, strings.TrimRight(c.Endpoint, "/")+"/_mayfly/clock", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := (&http.Client{Timeout: clockTimeout}).Do(r)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, refusal(answer))
	}
	_, err = fmt.Fprintln(os.Stdout, string(answer))
	return err
}

// refusal returns the sentence in an error's body, whose message holds JSON and a trailer.
func refusal(body []byte) string {
	var failure struct{ Message string }
	if err := json.Unmarshal(body, &failure); err != nil {
		return string(body)
	}
	inner, _, _ := strings.Cut(strings.TrimPrefix(failure.Message, "Message: "), "\r\n")
	var list struct{ Errors []string }
	if err := json.Unmarshal([]byte(inner), &list); err != nil || len(list.Errors) == 0 {
		return failure.Message
	}
	return strings.Join(list.Errors, " ")
}
