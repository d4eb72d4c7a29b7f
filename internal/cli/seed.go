// SPDX-License-Identifier: MIT

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/transfer"
)

// seedingFile is in the directory of the data while a new server is being filled: a start that
// finds it goes on.
const seedingFile = "seeding"

// errSeeding says why a server is not ready that is being filled.
var errSeeding = errors.New("it is being filled from what --init names")

// seed fills a new server from the file or directory of --init, through its own port.
func (c *serveCommand) seed(ctx context.Context, s *mayfly.Server, a net.Addr) error {
	if c.Init == "" {
		return nil
	}
	if c.Engine != "" {
		return errors.New("--init is for servers with data of their own: use mayfly import --from with the directory of an export")
	}
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	to, err := client.New(client.Options{Endpoint: "http://" + net.JoinHostPort(host, port), Key: s.Key()})
	if err != nil {
		return err
	}
	defer to.Close()
	mark := filepath.Join(c.Data, seedingFile)
	begun := false
	if !c.Memory {
		_, err := os.Stat(mark)
		begun = err == nil
	}
	databases, err := to.Names(ctx, client.Name{}, client.Databases)
	if err != nil {
		return err
	}
	if len(databases) > 0 && !begun {
		return nil
	}
	if !c.Memory {
		if err := writeSynced(mark, nil); err != nil {
			return err
		}
	}
	if err := transfer.Seed(ctx, to, c.Init); err != nil {
		return fmt.Errorf("--init %s: %w", c.Init, err)
	}
	if c.Memory {
		return nil
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
