// SPDX-License-Identifier: MIT

package cli

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// healthCommand asks a running server whether it is ready, for checks of containers.
type healthCommand struct {
	Endpoint   string `env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"The running server. Default: this machine, on the port of MAYFLY_LISTEN, or of PORT in emulator mode, or 8081."`
	Connection string `env:"MAYFLY_CONNECTION" placeholder:"TEXT" help:"Its connection string, in place of --endpoint. The key in it is not used."`
	CA         string `name:"ca" env:"MAYFLY_CA" placeholder:"FILE" help:"Certificate to trust over HTTPS, as mayfly cert prints it, or the server's data directory."`
	printed
	Timeout time.Duration `default:"5s" placeholder:"DURATION" help:"How long it may take to answer (${default})."`
}

// Run prints whether the server is ready, and fails if it is not.
func (c *healthCommand) Run() error {
	endpoint, _, err := (&running{Endpoint: c.Endpoint, Connection: c.Connection}).address()
	if err != nil {
		return err
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if at.Scheme == "https" {
		trusted, err := roots(c.CA, onThisMachine(at.Hostname()))
		if err != nil {
			return err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: trusted}
	}
	res, err := (&http.Client{Timeout: c.Timeout, Transport: transport}).Get(strings.TrimRight(endpoint, "/") + "/_mayfly/ready")
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
		return errors.Join(c.show(func() error { return nil }, map[string]string{"status": "unavailable", "reason": status.Reason}), errors.New("the server is not ready: "+status.Reason))
	}
	return c.show(func() error {
		_, err := fmt.Println("ready")
		return err
	}, map[string]string{"status": "ready"})
}
