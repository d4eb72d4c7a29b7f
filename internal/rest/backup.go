// SPDX-License-Identifier: MIT

// A backup of the running server: its data as it is when the request comes, as a tar archive.

package rest

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	contentTar = "application/x-tar"
	// maxHaveBytes bounds the list of files that a client has: it takes 100 bytes for each.
	maxHaveBytes = 16 << 20
	// backupPiece is how much of a file is read and sent at once.
	backupPiece = 256 << 10

	// BackupList is the first entry of the archive, and BackupSums the last. An archive
	// without the last is not complete.
	BackupList = "backup.json"
	BackupSums = "complete.json"
)

// Backup is the first entry of the archive: what the data is, and all its files, also those
// that the client has.
type Backup struct {
	// AtMs is the database's time of the backup.
	AtMs  int64               `json:"atMs"`
	Files []kv.CheckpointFile `json:"files"`
}

// Sums is the last entry: the checksum of each file that was sent, CRC-32C.
type Sums map[string]uint32

// backupRequest is the body of POST /_mayfly/backup. Files that the client has are not sent.
type backupRequest struct {
	Have []kv.CheckpointFile `json:"have"`
}

var (
	errNoBackup = api.Refuse(http.StatusNotFound, 0, "Servers that share a storage engine have no backup of their own: back up that engine with its tools, or copy the data with mayfly copy.")
	errBackup   = api.Refuse(http.StatusConflict, 0, "Another backup is under way, and there can be only one at a time. Try again later.")
)

// serveBackup sends the data.
func (x *exchange) serveBackup(by api.Credential) error {
	switch {
	case by != api.ByKey:
		return api.ErrForbidden
	case x.r.Method != http.MethodPost:
		return api.ErrMethod
	case x.h.checkpoint == nil:
		return errNoBackup
	}
	body, err := x.bodyUpTo(maxHaveBytes)
	if err != nil {
		return err
	}
	var r backupRequest
	if len(body) > 0 {
		if err := decodeStrict(body, &r); err != nil {
			return api.Invalid(`The body must be empty, or {"have":[{"name":"…","bytes":…,"modified":…}]} with the files that need not be sent.`)
		}
	}
	at := x.h.engine.Clock().Now()
	c, err := x.h.checkpoint(x.Context)
	if errors.Is(err, kv.ErrCheckpointing) {
		return errBackup
	}
	if err != nil {
		return err
	}
	defer c.Close()
	has := make(map[kv.CheckpointFile]bool, len(r.Have))
	for _, f := range r.Have {
		has[f] = true
	}
	x.unhurried()
	x.setCommon()
	x.set(headerContentType, contentTar)
	x.begin(http.StatusOK)
	out := &backupWriter{x: x, sums: Sums{}}
	out.tar = tar.NewWriter(out)
	if err := out.all(c, Backup{at, c.Files()}, has); err != nil {
		x.h.logger.Warn("a backup was not sent to its end", "error", err.Error())
		panic(http.ErrAbortHandler) // an answer that ends well would look complete
	}
	return nil
}

// backupWriter writes an archive to a client.
type backupWriter struct {
	x    *exchange
	tar  *tar.Writer
	sums Sums
}

// Write implements io.Writer.
func (w *backupWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		piece := p[done:min(len(p), done+backupPiece)]
		if err := w.x.send(piece); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return len(p), nil
}

func (w *backupWriter) all(c kv.Checkpoint, b Backup, has map[kv.CheckpointFile]bool) error {
	if err := w.json(BackupList, b); err != nil {
		return err
	}
	for _, f := range b.Files {
		if has[f] {
			continue
		}
		if err := w.file(w.x.Context, c, f); err != nil {
			return err
		}
	}
	if err := w.json(BackupSums, w.sums); err != nil {
		return err
	}
	return w.tar.Close()
}

const archivedMode = 0o600

func (w *backupWriter) json(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(raw)), Mode: archivedMode}); err != nil {
		return err
	}
	_, err = w.tar.Write(raw)
	return err
}

func (w *backupWriter) file(ctx context.Context, c kv.Checkpoint, f kv.CheckpointFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Name: f.Name, Size: f.Bytes, Mode: archivedMode, ModTime: time.Unix(0, f.Modified)}); err != nil {
		return err
	}
	from, err := c.Open(f.Name)
	if err != nil {
		return err
	}
	defer from.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	buffer := make([]byte, backupPiece)
	if _, err := io.CopyBuffer(io.MultiWriter(w.tar, sum), io.LimitReader(from, f.Bytes), buffer); err != nil {
		return err
	}
	w.sums[f.Name] = sum.Sum32()
	return nil
}
