// SPDX-License-Identifier: MIT

// The audit reads all commits from PostgreSQL's log, in their order, and looks who wrote
// them: nothing may be written to a partition but by the process that claimed it last.

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	auditEvery = time.Second
	// auditRows bounds what is read at once.
	auditRows = 20000

	prefixBytes = 11 // of a partition's keys
	metaSpace   = 'm'
	ownerSpace  = 'o'
)

// prepareAudit has PostgreSQL note the writer of each row, and keep its log for the audit.
// The trigger reads nothing, so it changes nothing about which commits exclude each other.
const prepareAudit = `ALTER TABLE kv ADD COLUMN w text;
CREATE FUNCTION sign_row() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.w := current_setting('application_name'); RETURN NEW; END$$;
CREATE TRIGGER sign_row BEFORE INSERT OR UPDATE ON kv FOR EACH ROW EXECUTE FUNCTION sign_row();`

// readAudit returns the changes of owner rows and of meta rows, which every commit of a
// partition writes, and the ends of owner rows.
const readAudit = `SELECT data FROM pg_logical_slot_get_changes('audit', NULL, %d)
WHERE data ~ '^table public\.kv: (INSERT|UPDATE): k\[bytea\]:''\\x70[0-9a-f]{20}(6d|6f)'' '
OR data ~ '^table public\.kv: DELETE: k\[bytea\]:''\\x70[0-9a-f]{20}6f''$'`

var (
	auditRow = regexp.MustCompile(`^table public\.kv: (?:INSERT|UPDATE): k\[bytea\]:'\\x([0-9a-f]+)' v\[bytea\]:'\\x([0-9a-f]*)' w\[text\]:'([^']*)'`)
	auditEnd = regexp.MustCompile(`^table public\.kv: DELETE: k\[bytea\]:'\\x([0-9a-f]+)'$`)
)

// audit knows the owner of each partition.
type audit struct {
	c       *pgconn.PgConn
	owners  map[string]claim
	breach  func(format string, args ...any)
	commits int // of partitions
	claims  int
	ends    int // of owner rows
}

// claim is an owner row with the process that wrote it; owned says that it names a node.
type claim struct {
	writer string
	epoch  uint64
	owned  bool
}

func newAudit(c *pgconn.PgConn, breach func(format string, args ...any)) *audit {
	return &audit{c: c, owners: map[string]claim{}, breach: breach}
}

func (a *audit) prepare(ctx context.Context) error {
	for _, text := range []string{prepareAudit, "SELECT pg_create_logical_replication_slot('audit', 'test_decoding')"} {
		if _, err := a.c.Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// run reads until ctx ends, and then what is left.
func (a *audit) run(ctx context.Context) error {
	for last := false; ; {
		select {
		case <-ctx.Done():
			last = true
		case <-time.After(auditEvery):
		}
		results, err := a.c.Exec(context.Background(), fmt.Sprintf(readAudit, auditRows)).ReadAll()
		if err != nil {
			return fmt.Errorf("read the log of PostgreSQL: %w", err)
		}
		for _, row := range results[0].Rows {
			if err := a.see(string(row[0])); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// see judges one change.
func (a *audit) see(text string) error {
	if m := auditEnd.FindStringSubmatch(text); m != nil {
		// The partition was split, or a claim of one that was gone is taken back: nothing is
		// written to it any more, unless another claim comes, which begins anew.
		a.owners[m[1][:2*prefixBytes]] = claim{}
		a.ends++
		return nil
	}
	m := auditRow.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("a change in PostgreSQL's log cannot be read: %s", brief([]byte(text)))
	}
	key, err := hex.DecodeString(m[1])
	if err != nil || len(key) != prefixBytes+1 {
		return fmt.Errorf("a key in PostgreSQL's log is %s: %w", m[1], err)
	}
	partition, writer := hex.EncodeToString(key[:prefixBytes]), m[3]
	was, known := a.owners[partition]
	if key[prefixBytes] == metaSpace {
		a.commits++
		if known && (!was.owned || was.writer != writer) {
			a.breach("%s wrote to partition %s, after %s had claimed it or given it up in epoch %d", writer, partition, was.writer, was.epoch)
		}
		return nil
	}
	value, err := hex.DecodeString(m[2])
	const fixed = 1 + 3*8 // version, epoch, incarnation and time come before the name
	if err != nil || len(value) <= fixed {
		return fmt.Errorf("an owner row in PostgreSQL's log is %s: %w", m[2], err)
	}
	next := claim{writer, binary.BigEndian.Uint64(value[1:]), value[fixed] > 0}
	if next.epoch <= was.epoch {
		a.breach("the owner row of partition %s went from epoch %d by %s to %d by %s", partition, was.epoch, was.writer, next.epoch, next.writer)
	}
	if name := string(value[fixed+1:][:value[fixed]]); next.owned && !strings.HasPrefix(writer, name+"-") {
		a.breach("%s wrote the name of node %s into the owner row of partition %s", writer, name, partition)
	}
	a.owners[partition] = next
	a.claims++
	return nil
}
