// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
)

var (
	// ErrOwnerNotFound: the container of an item, or the database of a container,
	// does not exist.
	ErrOwnerNotFound = catalog.ErrOwnerNotFound
	// ErrKeyMismatch: the partition key given with a request is not that of the item.
	ErrKeyMismatch = errors.New("partition key mismatch")
	// ErrNoKey: a request that needs a partition key has none.
	ErrNoKey = errors.New("no partition key")
	// ErrKeyForm: the partition key given with a request has more or fewer levels than
	// the container's.
	ErrKeyForm = errors.New("partition key of another form")
	// ErrContainerChanged: the client means an earlier container of this name, which was
	// deleted.
	ErrContainerChanged = errors.New("the container was deleted and made again")
	// ErrSession: the client has seen a later state than the partition has.
	ErrSession = errors.New("the session is ahead")
	// ErrContinuation: the continuation is not one for this list.
	ErrContinuation = errors.New("invalid continuation")
	// ErrRangeGone: there is no such partition key range.
	ErrRangeGone = errors.New("no such partition key range")
	// ErrTooLarge: the item exceeds the size limit.
	ErrTooLarge = errors.New("the item is too large")
	// ErrDiskFull: too little space is left to add anything.
	ErrDiskFull = errors.New("the disk is almost full: until there is space, nothing but deletes is accepted")
	// ErrDiskSpent: too little space is left to write at all.
	ErrDiskSpent = errors.New("the disk is full: until there is space, deletes are refused too")
	// ErrStopping: the server is shutting down.
	ErrStopping = errors.New("the server is stopping")
)

// InvalidError says what is wrong with a request.
type InvalidError struct {
	Message string
}

func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
