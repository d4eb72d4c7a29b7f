// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

func (f *fixture) writeAll(ops ...Write) ([]Result, error) {
	return f.p.WriteAll(context.Background(), ops)
}

// refused checks that a bundle is refused at an operation, for a reason, and that all rows
// stay as they are.
func (f *fixture) refused(index int, why error, ops ...Write) {
	f.t.Helper()
	before, lsn := f.rows(), f.p.LSN()
	_, err := f.writeAll(ops...)
	var failed *WriteError
	if !errors.As(err, &failed) || failed.Index != index || !errors.Is(err, why) {
		f.t.Errorf("got %v, want operation %d refused: %v", err, index, why)
	}
	after := f.rows()
	f.check(len(before) == len(after) && f.p.LSN() == lsn, "a refused bundle took lsn %d to %d, %d rows to %d", lsn, f.p.LSN(), len(before), len(after))
	for key, row := range before {
		f.check(after[key] == row, "a refused bundle changed row %x", key)
	}
}

func (f *fixture) op(op Op, id string) Write { return Write{Op: op, Key: f.key("k", id)} }

func TestBundleSharesOneLSNAndMoment(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	old := f.put("old", "")
	res, err := f.writeAll(
		f.item(Create, "1", ""), f.op(Read, "1"), f.item(Replace, "1", `"v":2`), f.op(Delete, "old"), f.op(Read, "1"), f.item(Create, "old", ""),
	)
	f.must(err)
	for i, r := range res {
		f.check(r.LSN == old.LSN+1, "operation %d has lsn %d, want %d", i, r.LSN, old.LSN+1)
	}
	f.check(string(res[1].Body) == string(res[0].Body) && res[1].ETag == res[0].ETag, "a read sees %s, want %s", res[1].Body, res[0].Body)
	f.check(string(res[4].Body) == string(res[2].Body), "a read sees %s, want %s", res[4].Body, res[2].Body)
	f.check(res[5].Created && !res[2].Created, "created: %v, %v", res[5].Created, res[2].Created)
	etags := map[string]bool{old.ETag: true}
	for _, i := range []int{0, 2, 5} {
		f.check(!etags[res[i].ETag], "etag %s is given twice", res[i].ETag)
		etags[res[i].ETag] = true
	}
	f.check(f.p.LSN() == old.LSN+1, "the partition is at lsn %d", f.p.LSN())
	f.checkClean()
}

func TestBundleOfReadsWritesNothing(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	r := f.put("1", "")
	commits := f.db.countCommits()
	defer f.db.stopPlaying()
	res, err := f.writeAll(f.op(Read, "1"), Write{Op: Read, Key: f.key("k", "1"), IfNoneMatch: r.ETag})
	f.must(err)
	f.check(string(res[0].Body) == string(r.Body) && res[0].LSN == r.LSN, "got %+v", res[0])
	f.check(res[1].NotModified && res[1].Body == nil && res[1].ETag == r.ETag, "got %+v", res[1])
	f.check(commits.Load() == 0 && f.p.LSN() == r.LSN, "%d commits, lsn %d", commits.Load(), f.p.LSN())
	if res, err := f.writeAll(); len(res) != 0 || err != nil {
		t.Errorf("a bundle of nothing: got %v, %v", res, err)
	}
}

func TestRefusedBundleLeavesNothing(t *testing.T) {
	f := newFixture(t, withUniqueKeys)
	one := f.put("1", `"a":1,"b":1`)
	f.put("2", `"a":2,"b":2,"ttl":1`)
	f.advance(1500 * time.Millisecond) // 2 is expired, and not purged
	taken := f.item(Create, "3", `"a":2,"b":3`)
	first := []Write{f.op(Delete, "1"), f.item(Create, "1", `"a":9,"b":9`), taken}
	for _, c := range []struct {
		name string
		op   Write
		why  error
	}{
		{"create of one that exists", f.item(Create, "1", `"a":7,"b":7`), ErrExists},
		{"replace of an expired item", f.item(Replace, "2", `"a":7,"b":7`), ErrNotFound},
		{"read of an expired item", f.op(Read, "2"), ErrNotFound},
		{"delete of none", f.op(Delete, "none"), ErrNotFound},
		{"unique key", f.item(Create, "4", `"a":9,"b":4`), ErrNotUnique},
		{"etag from before the bundle", Write{Op: Delete, Key: f.key("k", "1"), IfMatch: one.ETag}, ErrPrecondition},
		{"verified etag", Write{Op: Verify, Key: f.key("k", "1"), IfMatch: one.ETag}, ErrPrecondition},
		{"verified absence", Write{Op: Verify, Key: f.key("k", "3"), IfNoneMatch: "*"}, ErrPrecondition},
		{"verified presence", Write{Op: Verify, Key: f.key("k", "2"), IfMatch: "*"}, ErrPrecondition},
		{"update of none", Write{Op: Update, Key: f.key("k", "none")}, ErrNotFound},
		{"update that fails", Write{Op: Update, Key: f.key("k", "3"), Change: func([]byte) (*value.Object, error) { return nil, errBroken }}, errBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := f.t
			f.t = t
			defer func() { f.t = was }()
			f.refused(len(first), c.why, append(first[:len(first):len(first)], c.op, f.op(Delete, "1"))...)
		})
	}
	f.check(f.ledger.Total(ru.Assisted).Items == 0, "bundles that failed account for %d purged items", f.ledger.Total(ru.Assisted).Items)
	res, err := f.writeAll(first...)
	f.must(err)
	f.check(res[2].Created, "got %+v", res[2])
	f.check(f.ledger.Total(ru.Assisted).Items == 1, "%d purged items are in the ledger, want 1", f.ledger.Total(ru.Assisted).Items)
	f.checkClean()
}

// An item that could not be prepared fails in its turn, since an earlier one may fail for
// another reason.
func TestBundleFailsAtTheFirst(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	bad := f.item(Create, "bad", `"ttl":0`)
	f.refused(0, ErrNotFound, f.op(Delete, "none"), bad)
	_, err := f.writeAll(f.item(Create, "1", ""), bad)
	var failed *WriteError
	var ttl *TTLError
	if !errors.As(err, &failed) || failed.Index != 1 || !errors.As(err, &ttl) {
		t.Errorf("got %v, want operation 1 refused for its ttl", err)
	}
	f.checkClean()
}

// Scenario 44: an item that is live when a bundle begins is live throughout, since a bundle
// has one moment.
func TestScenario44NothingExpiresWithinABundle(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.put("1", `"ttl":1`)
	f.advance(999 * time.Millisecond)
	expires := Write{Op: Update, Key: f.key("k", "2"), Change: func([]byte) (*value.Object, error) {
		f.must(f.clock.Advance(time.Second))
		return value.ParseObject([]byte(`{"id":"2","pk":"k"}`))
	}}
	res, err := f.writeAll(f.item(Create, "2", `"ttl":1`), f.op(Read, "1"), expires, f.op(Read, "1"), f.op(Delete, "1"))
	f.must(err)
	f.check(string(res[3].Body) == string(res[1].Body), "the item is %s, and then %s", res[1].Body, res[3].Body)
	f.checkClean()
}

// A write of a bundle shares its lsn with others. Their feed rows must survive when a run
// of its neighbours is removed by range.
func TestPurgeOfARunSparesTheRestOfABundle(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("10"))
	f.put("survivor", `"ttl":-1`)
	for i := range 2 * rangeRun {
		if i%40 != 3 {
			f.put(fmt.Sprint(i), "")
			continue
		}
		_, err := f.writeAll(f.item(Create, fmt.Sprint(i), ""), f.item(Replace, "survivor", `"ttl":-1`))
		f.must(err)
	}
	_, err := f.writeAll(f.item(Replace, "survivor", `"ttl":-1`), f.item(Create, "last", ""))
	f.must(err)
	for i := range 2 * rangeRun {
		f.put(fmt.Sprint("more ", i), "")
	}
	f.advance(11 * time.Second)
	f.purgeAll()
	if _, err := f.read("survivor"); err != nil {
		t.Errorf("the survivor: %v", err)
	}
	if rows := f.rowsOf(); rows[itemSpace] != 1 || rows[feedSpace] != 1 {
		t.Errorf("rows %v are left, want those of one item", rows)
	}
	f.checkClean()
}

func TestBundleWithinTheQuota(t *testing.T) {
	const n = 4
	for name, c := range map[string]struct {
		bound func(int64) Quotas
		want  error
	}{"partition": {inPartition, ErrPartitionFull}, "logical partition": {inLogical, ErrLogicalFull}} {
		t.Run(name, func(t *testing.T) {
			f := quotaFixture(t, c.bound, n)
			sized := func(id string, ttl int) Write { return f.sizedWrite(Create, "k", id, ttl) }
			res, err := f.writeAll(sized("a", 90), sized("b", 10), sized("c", 10), sized("d", 10))
			f.must(err)
			f.check(len(res) == n, "got %d results", len(res))
			f.refused(0, c.want, sized("e", 90))
			drop := Write{Op: Delete, Key: sized("a", 90).Key}
			f.refused(2, c.want, drop, sized("e", 90), sized("f", 90))
			f.advance(12 * time.Second) // b, c and d are expired, and not purged
			f.refused(5, c.want, sized("b", 90), sized("e", 90), sized("f", 90), drop, sized("g", 90), sized("h", 90))
			f.refused(3, c.want, sized("b", 90), sized("e", 90), sized("f", 90), sized("g", 90))
			_, err = f.writeAll(sized("b", 90), sized("e", 90), sized("f", 90))
			f.must(err)
			f.checkClean()
		})
	}
}

func TestUnchanged(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("1", "")
	at := f.p.LSN()
	same := Write{Op: Unchanged, Key: f.key("k", ""), Since: at}
	other, err := value.ParseObject([]byte(`{"id":"1","pk":"other"}`))
	f.must(err)
	_, err = f.write(Write{Op: Create, Key: f.key("other", "1"), Item: other})
	f.must(err)
	_, err = f.writeAll(same, f.item(Create, "2", ""))
	f.must(err)
	f.refused(0, ErrChanged, same, f.item(Create, "3", ""))
	same.Since = f.p.LSN()
	_, err = f.write(f.op(Delete, "2"))
	f.must(err)
	f.refused(0, ErrChanged, same, f.item(Create, "3", ""))
	same.Since = f.p.LSN()
	f.reopen() // the lsns of last writes are forgotten
	same.Since--
	f.refused(0, ErrChanged, same)
	same.Since++
	_, err = f.writeAll(same, f.item(Create, "3", ""), same)
	var failed *WriteError
	if !errors.As(err, &failed) || failed.Index != 2 {
		t.Errorf("got %v, want operation 2 to see the write before it", err)
	}
}

func TestBundleLimits(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"indexingMode":"none"}}`)
	f.put("big", `"pad":"`+strings.Repeat("x", 1<<20)+`"`)
	reads := make([]Write, 12)
	grows := make([]Write, 40)
	for i := range reads {
		reads[i] = f.op(Read, "big")
	}
	for i := range grows {
		grows[i] = Write{Op: Update, Key: f.key("k", "big"), Change: func([]byte) (*value.Object, error) {
			return value.ParseObject([]byte(`{"id":"big","pk":"k","pad":"` + strings.Repeat("y", 1<<20) + `"}`))
		}}
	}
	f.refused(9, ErrTooMuch, reads...)
	f.refused(23, ErrTooMuch, grows...)
	f.refused(maxBundle, ErrTooMuch, make([]Write, maxBundle+1)...)
	f.checkClean()
}

// Updates, whose size is not known in advance, are spread over several commits if they are
// too large for one.
func TestLargeUpdatesEndAGroup(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"indexingMode":"none"}}`)
	const n = 40
	g := f.db.holdAfterApplying()
	first := f.start(f.item(Create, "1", ""))
	<-g.entered
	var done []<-chan answered
	for i := range n {
		done = append(done, f.start(Write{Op: Update, Key: f.key("k", "1"), Change: func([]byte) (*value.Object, error) {
			return value.ParseObject([]byte(`{"id":"1","pk":"k","pad":"` + strings.Repeat("y", 1<<20) + `"}`))
		}}))
		f.queued(i + 1)
	}
	commits := f.db.countCommits()
	g.open <- struct{}{}
	f.must((<-first).err)
	for _, d := range done {
		f.must((<-d).err)
	}
	f.check(commits.Load() == 3, "%d MiB took %d commits, want 3", n, commits.Load())
	f.checkClean()
}

// The operations of a WriteEach have an lsn each, see the writes before them, and fail
// alone.
func TestWriteEach(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	ops := []Write{
		f.item(Create, "1", ""), f.item(Create, "1", ""), f.op(Read, "1"), f.item(Create, "bad", `"ttl":0`), f.item(Replace, "1", `"v":2`),
		{Op: Delete, Key: f.key("k", "1"), Err: errBroken}, f.op(Delete, "1"), f.op(Read, "1"),
	}
	want := []error{nil, ErrExists, nil, nil, nil, errBroken, nil, ErrNotFound}
	for _, stop := range []bool{false, true} {
		f.p.Close()
		f = newFixture(t, withTTL("10"))
		commits := f.db.countCommits()
		got, err := f.p.WriteEach(context.Background(), ops, EachOptions{StopAtFailure: stop})
		f.must(err)
		f.check(len(got) == len(ops) && commits.Load() == 1, "got %d outcomes in %d commits", len(got), commits.Load())
		var ttl *TTLError
		for i, o := range got {
			switch {
			case stop && i > 1:
				f.check(errors.Is(o.Err, ErrSkipped), "operation %d after a failure: %v", i, o.Err)
			case i == 3:
				f.check(errors.As(o.Err, &ttl), "operation %d: got %v, want its ttl refused", i, o.Err)
			default:
				f.check(errors.Is(o.Err, want[i]) && (o.Err == nil) == (want[i] == nil), "operation %d: got %v, want %v", i, o.Err, want[i])
			}
		}
		if !stop {
			f.check(got[0].LSN == 1 && got[4].LSN == 2 && got[6].LSN == 3, "lsns %d, %d, %d, want 1, 2, 3", got[0].LSN, got[4].LSN, got[6].LSN)
			f.check(string(got[2].Body) == string(got[0].Body), "a read sees %s, want %s", got[2].Body, got[0].Body)
		}
		f.checkClean()
	}
}

// Operations that are too large for one commit, or need a count of expired items, are done
// in several commits.
func TestWriteEachInSeveralCommits(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"indexingMode":"none"}}`)
	ops := []Write{f.item(Create, "1", "")}
	for range 40 {
		ops = append(ops, Write{Op: Update, Key: f.key("k", "1"), Change: func([]byte) (*value.Object, error) {
			return value.ParseObject([]byte(`{"id":"1","pk":"k","pad":"` + strings.Repeat("y", 1<<20) + `"}`))
		}})
	}
	commits := f.db.countCommits()
	got, err := f.p.WriteEach(context.Background(), ops, EachOptions{})
	f.must(err)
	for i, o := range got {
		f.check(o.Err == nil && o.LSN == uint64(i+1), "operation %d: lsn %d, %v", i, o.LSN, o.Err)
	}
	f.check(commits.Load() == 3, "%d commits, want 3", commits.Load())

	q := quotaFixture(t, inLogical, 2)
	sized := func(id string, ttl int) Write { return q.sizedWrite(Create, "k", id, ttl) }
	_, err = q.writeAll(sized("a", 10), sized("b", 10))
	q.must(err)
	q.advance(12 * time.Second)
	got, err = q.p.WriteEach(context.Background(), []Write{sized("c", 90), sized("d", 90), sized("e", 90), {Op: Delete, Key: sized("c", 90).Key}, sized("e", 90)}, EachOptions{})
	q.must(err)
	for i, want := range []error{nil, nil, ErrLogicalFull, nil, nil} {
		q.check(errors.Is(got[i].Err, want) && (got[i].Err == nil) == (want == nil), "operation %d: got %v, want %v", i, got[i].Err, want)
	}
	q.checkClean()
}

// A partition that closes between two commits of a WriteEach fails the operations that are
// left. An error for all of them would let the caller repeat those that are done.
func TestWriteEachMeetsAClosedPartition(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"indexingMode":"none"}}`)
	var closing sync.Once
	ops := []Write{f.item(Create, "1", "")}
	for range 40 {
		ops = append(ops, Write{Op: Update, Key: f.key("k", "1"), Change: func([]byte) (*value.Object, error) {
			closing.Do(func() { go f.p.Close() })
			<-f.p.stop
			return value.ParseObject([]byte(`{"id":"1","pk":"k","pad":"` + strings.Repeat("y", 1<<20) + `"}`))
		}})
	}
	got, err := f.p.WriteEach(context.Background(), ops, EachOptions{})
	f.must(err)
	done := 0
	for done < len(got) && got[done].Err == nil {
		done++
	}
	f.check(done > 1 && done < len(ops), "%d of %d operations are done", done, len(ops))
	f.check(len(got) == len(ops), "%d outcomes of %d operations", len(got), len(ops))
	for i, o := range got[done:] {
		f.check(errors.Is(o.Err, ErrClosed), "operation %d: %v", done+i, o.Err)
	}
	f.reopen()
	f.check(f.p.LSN() == uint64(done), "lsn %d after %d operations", f.p.LSN(), done)
}
