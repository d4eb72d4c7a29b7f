// SPDX-License-Identifier: MIT

// Keys in files: every user of the machine can see the command line.

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/mayflydb/mayfly"
)

// maxKeyFileBytes is far above the length of any key.
const maxKeyFileBytes = 4 << 10

// keyFile is the name of a file with a key in it, or empty.
type keyFile string

// or returns the key in the file, or key if there is no file. Both are an error.
func (f keyFile) or(key string) (string, error) {
	if f == "" {
		return key, nil
	}
	if key != "" {
		return "", fmt.Errorf("there is a key in addition to the one in the file %s: give one of them", f)
	}
	file, err := os.Open(string(f))
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFileBytes+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	if len(text) > maxKeyFileBytes {
		return "", fmt.Errorf("the file %s is too large for a key", f)
	}
	key = strings.TrimSpace(string(text))
	if key == "" { // an empty key would mean the well-known one
		return "", fmt.Errorf("there is no key in the file %s", f)
	}
	return key, nil
}

// orWellKnown is or for a client. Without a key it returns mayfly.WellKnownKey.
func (f keyFile) orWellKnown(key string) (string, error) {
	key, err := f.or(key)
	return cmp.Or(key, mayfly.WellKnownKey), err
}

// othersMayRead is the bit of a file's mode that lets every user read it. The bit of the
// group is fine: the server may run in that group.
const othersMayRead fs.FileMode = 0o004

// warn logs a warning if every user of the machine can read the file. The server still
// starts: secrets of Docker and Kubernetes are such files, in a container that has no
// other users.
func (f keyFile) warn(logger *slog.Logger) {
	if f == "" || runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(string(f)); err == nil && info.Mode()&othersMayRead != 0 {
		logger.Warn("every user of this machine can read the key", "file", string(f), "mode", info.Mode().Perm(), "remedy", "chmod o-r")
	}
}

// keyFlags are the keys of a server.
type keyFlags struct {
	Key                   string  `env:"MAYFLY_KEY" placeholder:"BASE64" help:"Master key. Default: the well-known key of the emulators, on loopback only."`
	KeyFile               keyFile `env:"MAYFLY_KEY_FILE" placeholder:"FILE" help:"File with the master key, so that it is not on the command line."`
	SecondaryKey          string  `env:"MAYFLY_SECONDARY_KEY" placeholder:"BASE64" help:"A second key that allows the same, so that clients can change keys one after the other."`
	SecondaryKeyFile      keyFile `env:"MAYFLY_SECONDARY_KEY_FILE" placeholder:"FILE" help:"File with that key."`
	ReadOnlyKey           string  `env:"MAYFLY_READ_ONLY_KEY" placeholder:"BASE64" help:"A key for reads and queries only, but not of permissions."`
	ReadOnlyKeyFile       keyFile `env:"MAYFLY_READ_ONLY_KEY_FILE" placeholder:"FILE" help:"File with that key."`
	SecondReadOnlyKey     string  `name:"secondary-read-only-key" env:"MAYFLY_SECONDARY_READ_ONLY_KEY" placeholder:"BASE64" help:"A second key for reads and queries only."`
	SecondReadOnlyKeyFile keyFile `name:"secondary-read-only-key-file" env:"MAYFLY_SECONDARY_READ_ONLY_KEY_FILE" placeholder:"FILE" help:"File with that key."`
}

// setKeys puts the keys of a server into its options.
func (c *keyFlags) setKeys(o *mayfly.Options) error {
	for _, k := range []struct {
		into *string
		key  string
		file keyFile
	}{
		{&o.Key, c.Key, c.KeyFile},
		{&o.SecondaryKey, c.SecondaryKey, c.SecondaryKeyFile},
		{&o.ReadOnlyKey, c.ReadOnlyKey, c.ReadOnlyKeyFile},
		{&o.SecondaryReadOnlyKey, c.SecondReadOnlyKey, c.SecondReadOnlyKeyFile},
	} {
		var err error
		if *k.into, err = k.file.or(k.key); err != nil {
			return err
		}
		k.file.warn(o.Logger)
	}
	return nil
}
