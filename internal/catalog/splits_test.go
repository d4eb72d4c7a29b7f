// SPDX-License-Identifier: MIT

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// told returns ranges as text.
func told(c *Container) string {
	var all []string
	for _, r := range c.Ranges {
		all = append(all, fmt.Sprintf("%d%v %x-%x", r.ID, r.Parents, r.Min, r.Max))
	}
	return strings.Join(all, ", ")
}

// A split gives new ids, in one commit with other rows, and both catalogs on the engine show
// it. A container that was never split has the record that it always had.
func TestSplit(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d")
	ct := createContainer(t, c, d, withKey(`{"paths":["/pk"],"version":2}`), Throughput{Manual: 11_000})
	etag, record := ct.ETag, rowsOf(t, db)[string(Containers.key(ct.path))]
	if strings.Contains(record, "ranges") || !strings.HasPrefix(record, `{"v":1,`) {
		t.Fatalf("the record is %s", record)
	}
	cut := ct.Middle(&ct.Ranges[1])
	if !ct.Ranges[1].Within(cut) {
		t.Fatalf("%x does not divide %s", cut, told(ct))
	}
	under, err := c.BeginSplit(t.Context(), ct.RID, 1, cut)
	if err != nil {
		t.Fatal(err)
	}
	if under.Split == nil || under.Split.Children != [2]int{2, 3} || len(under.Ranges) != 2 {
		t.Fatalf("got %+v, %s", under.Split, told(under))
	}
	if _, err := c.BeginSplit(t.Context(), ct.RID, 0, cut); !errors.Is(err, ErrSplitting) {
		t.Errorf("a second split: got %v", err)
	}
	if _, err := c.AbandonSplit(t.Context(), ct.RID, under.Split, func(b *kv.Batch) error { b.Set([]byte("x"), nil); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, found := rowsOf(t, db)["x"]; !found {
		t.Error("the row that was added is missing")
	}
	if _, err := c.EndSplit(t.Context(), ct.RID, under.Split, ct.Epoch, nil); !errors.Is(err, ErrNotSplitting) {
		t.Errorf("the end of an abandoned split: got %v", err)
	}
	if under, err = c.BeginSplit(t.Context(), ct.RID, 1, cut); err != nil || under.Split.Children != [2]int{4, 5} {
		t.Fatalf("again: got %+v, %v", under, err)
	}
	if got := told(under); got != told(ct) {
		t.Errorf("while it is under way: %s", got)
	}
	if _, err := c.EndSplit(t.Context(), ct.RID, under.Split, ct.Epoch+1, nil); !errors.Is(err, ErrNotSplitting) {
		t.Errorf("the end under other settings: got %v", err)
	}
	done, err := c.EndSplit(t.Context(), ct.RID, under.Split, ct.Epoch, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := ct.Ranges[1].Min
	want := fmt.Sprintf("0[] -%x, 4[1] %x-%x, 5[1] %x-", one, one, cut, cut)
	if told(done) != want || done.ETag != etag || done.Epoch != ct.Epoch || done.Split != nil {
		t.Errorf("got %s, etag %s, want %s, %s", told(done), done.ETag, want, etag)
	}
	again := open(t, db)
	if !slices.Equal(bodies(again), bodies(c)) {
		t.Errorf("opened again:\ngot  %s\nwant %s", bodies(again), bodies(c))
	}
	if record := rowsOf(t, db)[string(Containers.key(ct.path))]; !strings.HasPrefix(record, `{"v":2,`) {
		t.Errorf("an earlier build would read the record %s", record)
	}
	// A range of a range: its ids are new, and it knows both that it was made from.
	cut = done.Middle(&done.Ranges[1])
	if under, err = again.BeginSplit(t.Context(), ct.RID, 4, cut); err != nil {
		t.Fatal(err)
	}
	if done, err = again.EndSplit(t.Context(), ct.RID, under.Split, ct.Epoch, nil); err != nil || done.Ranges[1].ID != 6 || !slices.Equal(done.Ranges[2].Parents, []int{1, 4}) {
		t.Errorf("got %v, %v", done, err)
	}
	if done.Partition(cut) != 7 || done.PositionOf(5) != 3 || done.PositionOf(1) != -1 || done.PositionOf(4) != -1 {
		t.Errorf("ranges are not found: %s", told(done))
	}
	// A replace of the definition, and of the throughput, keep the ranges.
	next, err := again.ReplaceContainer(t.Context(), ct.RID, withKey(`{"paths":["/pk"],"version":2},"defaultTtl":5`), "", nowMs)
	if err != nil || told(next) != told(done) {
		t.Errorf("after a replace: %v, %v", next, err)
	}
	if got := told(reopened(t, db, ct.RID)); got != told(done) {
		t.Errorf("after a replace, opened again: %s", got)
	}
}

func reopened(t *testing.T, db kv.DB, rid ContainerRID) *Container {
	t.Helper()
	ct, err := open(t, db).Current(rid)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

// What cannot be split is refused, and nothing changes.
func TestSplitRefused(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d")
	ct := createContainer(t, c, d, named("c"), Throughput{})
	before := rowsOf(t, db)
	cut := ct.Middle(&ct.Ranges[0])
	var invalid *InvalidError
	if _, err := c.BeginSplit(t.Context(), ct.RID, 1, cut); !errors.Is(err, ErrNoRange) {
		t.Errorf("no such range: got %v", err)
	}
	if _, err := c.BeginSplit(t.Context(), ct.RID, 0, nil); !errors.As(err, &invalid) {
		t.Errorf("at its beginning: got %v", err)
	}
	if _, err := c.BeginSplit(t.Context(), ContainerRID{9, 9}, 0, cut); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such container: got %v", err)
	}
	if got := rowsOf(t, db); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Error("a refused split has changed rows")
	}
	for range maxRangeID {
		under, err := c.BeginSplit(t.Context(), ct.RID, 0, cut)
		if errors.As(err, &invalid) {
			return
		}
		if err == nil {
			_, err = c.AbandonSplit(t.Context(), ct.RID, under.Split, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("ids never end")
}

// A record whose ranges make no sense is refused.
func TestBadRanges(t *testing.T) {
	for _, ranges := range []string{
		`"partitions":2,"nextRange":3`,
		`"partitions":1,"nextRange":3,"ranges":[{"id":0,"min":"05"}]`,
		`"partitions":2,"nextRange":3,"ranges":[{"id":1,"min":""},{"id":1,"min":"05"}]`,
		`"partitions":2,"nextRange":3,"ranges":[{"id":1,"min":""},{"id":7,"min":"05"}]`,
		`"partitions":2,"nextRange":2,"ranges":[{"id":1,"min":""},{"id":0,"min":"05"}]`,
		`"partitions":3,"nextRange":9,"ranges":[{"id":1,"min":""},{"id":2,"min":"05"},{"id":3,"min":"05"}]`,
		`"partitions":2,"nextRange":9,"ranges":[{"id":1,"min":""},{"id":2,"min":"zz"}]`,
		`"partitions":2,"nextRange":9,"ranges":[{"id":1,"min":""},{"id":2,"min":"05"}],"split":{"range":4,"children":[5,6],"cut":"07"}`,
	} {
		if _, err := decodeContainer([]byte(`{"v":2,` + ranges + `,"definition":` + named("c") + `}`)); err == nil {
			t.Errorf("%s was read", ranges)
		}
	}
	good := `{"v":2,"partitions":2,"nextRange":3,"ranges":[{"id":1,"min":"","parents":[0]},{"id":2,"min":"05","parents":[0]}],"definition":` + named("c") + `}`
	if _, err := decodeContainer([]byte(good)); err != nil {
		t.Error(err)
	}
}
