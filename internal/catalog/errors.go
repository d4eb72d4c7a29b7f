// SPDX-License-Identifier: MIT

package catalog

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: there is no such resource.
	ErrNotFound = errors.New("no such resource")
	// ErrOwnerNotFound: the owner of the resource does not exist.
	ErrOwnerNotFound = errors.New("owner resource does not exist")
	// ErrExists: the name is taken.
	ErrExists = errors.New("a resource with this name exists")
	// ErrPrecondition: the resource's etag does not match the request's condition.
	ErrPrecondition = errors.New("the resource has changed")
	// ErrTooMany: a limit on the number of resources is reached.
	ErrTooMany = errors.New("too many resources")
	// ErrTooManyScripts: the container has the maximum number of scripts of this kind.
	ErrTooManyScripts = errors.New("too many scripts")
	// ErrAutoscaleSettings: the settings of autoscale are not of the form
	// {"maxThroughput":4000}.
	ErrAutoscaleSettings = errors.New("invalid autoscale settings")
	// ErrContended: others changed the catalog again and again, each time before this
	// change. Nothing was written.
	ErrContended = errors.New("the catalog is being changed by others")
	// ErrCommit: a change could not be made durable, or it is unknown whether it is.
	ErrCommit = errors.New("commit a change of the catalog")
)

// InvalidError says what is wrong with a definition that a client sent.
type InvalidError struct {
	Message string
}

func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
