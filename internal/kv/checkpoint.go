// SPDX-License-Identifier: MIT

package kv

import (
	"errors"
	"io"
)

// ErrCheckpointing: another checkpoint of the store is being read.
var ErrCheckpointing = errors.New("another checkpoint is under way")

// Checkpoint is the files of a store as they were at one moment. It has every commit that
// returned before it was made. Put into a directory of their own, the files are a store.
type Checkpoint interface {
	Files() []CheckpointFile
	// Open returns the content of a file.
	Open(name string) (io.ReadCloser, error)
	// Close removes the files.
	Close() error
}

// CheckpointFile is a file of a checkpoint.
type CheckpointFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// Modified is when the file was written last, in nanoseconds since 1970. A file with the
	// same name, size and time as in an earlier checkpoint of the same store is the same.
	Modified int64 `json:"modified"`
}
