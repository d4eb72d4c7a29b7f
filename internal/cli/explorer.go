// SPDX-License-Identifier: MIT

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type explorerCommand struct {
	running
}

const explorerTimeout = 10 * time.Second

// Run prints a link that signs a browser in to the explorer.
func (c *explorerCommand) Run() error {
	res, err := c.send(http.MethodPost, "explorer", nil, nil, explorerTimeout)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var link struct {
		Path    string
		Seconds int
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(&link); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	endpoint, _, err := c.address()
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimRight(endpoint, "/") + link.Path)
	fmt.Printf("The link works once, within %v. It gives the rights of the master key.\n", time.Duration(link.Seconds)*time.Second)
	return nil
}
