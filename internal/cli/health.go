// SPDX-License-Identifier: MIT

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// healthCommand asks a running server whether it is ready, for checks of containers.
type healthCommand struct {
	Endpoint string        `env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"The running server. Default: this machine, on the port of MAYFLY_LISTEN, or of PORT in emulator mode, or 8081."`
	Timeout  time.Duration `default:"5s" placeholder:"DURATION" help:"How long it may take to answer (${default})."`
}

// Run prints whether the server is ready, and fails if it is not.
func (c *healthCommand) Run() error {
	endpoint := c.Endpoint
	if endpoint == "" {
		endpoint = ownEndpoint()
	}
	res, err := (&http.Client{Timeout: c.Timeout}).Get(strings.TrimRight(withScheme(endpoint), "/") + "/_mayfly/ready")
	if err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", endpoint, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err != nil {
		return err
	}
	var status struct{ Status, Reason string }
	if err := json.Unmarshal(body, &status); err != nil || res.StatusCode != http.StatusOK {
		if status.Reason == "" {
			status.Reason = res.Status
		}
		return errors.New("the server is not ready: " + status.Reason)
	}
	fmt.Println("ready")
	return nil
}
