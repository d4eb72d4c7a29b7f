// SPDX-License-Identifier: MIT

package pgkv

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mayflydb/mayfly/internal/kv"
)

// The codes of the server's errors that matter here.
const (
	codeDivisionByZero    = "22012" // how the check of a commit fails
	codeUniqueViolation   = "23505"
	codeReadOnly          = "25006" // the server has become a standby
	codeSerialization     = "40001"
	codeCompletionUnknown = "40003"
	codeDeadlock          = "40P01"
	codeDuplicateObject   = "42710"
	codeDuplicateTable    = "42P07"
	codeLimit             = "54000"
	codeDataCorrupted     = "XX001"
	codeIndexCorrupted    = "XX002"
	classResources        = "53"
	classOperator         = "57"
	classConnection       = "08"
	severityError         = "ERROR"
	classLength           = 2
	codeLockNotAvailable  = "55P03"
)

// answered returns the error with which the server answered, or nil if it did not answer.
func answered(err error) *pgconn.PgError {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe
	}
	return nil
}

// readFailed translates the error of a read. Without an answer the server cannot be reached.
func readFailed(err error) error {
	pe := answered(err)
	if pe == nil || unavailable(pe) {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if pe.Code == codeDataCorrupted || pe.Code == codeIndexCorrupted {
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	return fmt.Errorf("the storage engine: %w", err)
}

// unavailable reports whether the error is one of the server's state at present.
func unavailable(pe *pgconn.PgError) bool {
	switch pe.Code {
	case codeReadOnly, codeSerialization, codeDeadlock, codeLockNotAvailable:
		return true
	}
	switch pe.Code[:min(len(pe.Code), classLength)] {
	case classResources, classOperator, classConnection:
		return true
	}
	return severity(pe) != severityError
}

func severity(pe *pgconn.PgError) string {
	if pe.SeverityUnlocalized != "" {
		return pe.SeverityUnlocalized
	}
	return pe.Severity
}

// commitFailed translates the error of a commit. again says that it is worth repeating.
//
// The server undoes everything when it answers with an error, unless it ends the connection
// with it: that may happen after the commit.
func commitFailed(err error, w *wire) (translated error, again bool) {
	pe := answered(err)
	switch {
	case pe == nil && (w.failed || pgconn.SafeToRetry(err)):
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err), false
	case pe == nil || severity(pe) != severityError || pe.Code == codeCompletionUnknown:
		return fmt.Errorf("%w: %w", kv.ErrUnknown, err), false
	case pe.Code == codeDivisionByZero:
		return kv.ErrConflict, false
	case pe.Code == codeSerialization || pe.Code == codeDeadlock:
		return fmt.Errorf("%w: other commits came between: %w", kv.ErrUnavailable, err), true
	case pe.Code == codeLimit:
		return fmt.Errorf("%w: %w", kv.ErrLimit, err), false
	}
	return readFailed(err), false
}
