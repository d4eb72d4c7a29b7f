// SPDX-License-Identifier: MIT

package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func createSharing(t testing.TB, c *Catalog, name string, throughput Throughput) *Database {
	t.Helper()
	d, err := c.CreateDatabase(t.Context(), fmt.Appendf(nil, `{"id":%q}`, name), throughput, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// offerFor returns the offer for a rid; nil if it has none.
func offerFor(c *Catalog, rid string) *Offer {
	for _, o := range c.Offers() {
		if o.ResourceRID == rid {
			return o
		}
	}
	return nil
}

func databaseOffer(r DatabaseRID) uint64 {
	return offerNumber(&Resource{kind: Databases, path: path{uint64(r)}})
}

func containerOffer(r ContainerRID) uint64 {
	return offerNumber(&Resource{kind: Containers, path: path{uint64(r.Database), uint64(r.Container)}})
}

func manual(n int) string { return fmt.Sprintf(`{"content":{"offerThroughput":%d}}`, n) }

func autoscale(n int) string {
	return fmt.Sprintf(`{"content":{"offerThroughput":400,"offerAutopilotSettings":{"maxThroughput":%d}}}`, n)
}

// The exact answers.
func TestOfferBodies(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createSharing(t, c, "d", Throughput{AutoscaleMax: 4000, IncrementPercent: 5})
	ct := createContainer(t, c, d, with(""), Throughput{Manual: 500})
	if got, want := string(offerFor(c, d.RID.String()).Body), `{"resource":"dbs/AAAAAQ==/","offerType":"Invalid","offerResourceId":"AAAAAQ==","offerVersion":"V2",`+
		`"content":{"offerThroughput":400,"offerIsRUPerMinuteThroughputEnabled":false,`+
		`"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":4000,"maxConsumedStorageEverInKB":0},`+
		`"offerAutopilotSettings":{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":5}}}},`+
		`"id":"AAAC","_rid":"AAAC","_self":"offers/AAAC/","_etag":"\"6553f100-0000-0001-8000-000000000002\"","_ts":1700000000}`; got != want {
		t.Errorf("the database's:\ngot  %s\nwant %s", got, want)
	}
	if got, want := string(offerFor(c, ct.RIDText).Body), `{"resource":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/","offerType":"Invalid","offerResourceId":"AAAAAYAAAAE=","offerVersion":"V2",`+
		`"content":{"offerThroughput":500,"offerIsRUPerMinuteThroughputEnabled":false,`+
		`"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":500,"maxConsumedStorageEverInKB":0}},`+
		`"id":"AAAD","_rid":"AAAD","_self":"offers/AAAD/","_etag":"\"6553f100-0000-0001-8000-000000000003\"","_ts":1700000000}`; got != want {
		t.Errorf("the container's:\ngot  %s\nwant %s", got, want)
	}
	if !strings.Contains(string(d.Body), `"_self":"dbs/AAAAAQ==/"`) || !strings.Contains(string(ct.Body), `"_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/"`) {
		t.Errorf("the resources' own links are others: %s %s", d.Body, ct.Body)
	}
}

// Which resources have an offer, and of how much.
func TestWhoHasAnOffer(t *testing.T) {
	c := open(t, kvtest.NewModel())
	for i, k := range []struct {
		database, container         Throughput
		wantDatabase, wantContainer Throughput
	}{
		{Throughput{}, Throughput{}, Throughput{}, Throughput{Manual: 400}},
		{Throughput{}, Throughput{Manual: 500}, Throughput{}, Throughput{Manual: 500}},
		{Throughput{}, Throughput{AutoscaleMax: 2000}, Throughput{}, Throughput{AutoscaleMax: 2000}},
		{Throughput{Manual: 600}, Throughput{}, Throughput{Manual: 600}, Throughput{}},
		{Throughput{Manual: 600}, Throughput{Manual: 700}, Throughput{Manual: 600}, Throughput{Manual: 700}},
		{Throughput{AutoscaleMax: 3000}, Throughput{}, Throughput{AutoscaleMax: 3000}, Throughput{}},
	} {
		d := createSharing(t, c, fmt.Sprint("d", i), k.database)
		ct := createContainer(t, c, d, with(""), k.container)
		if d.Throughput.Throughput != k.wantDatabase || ct.Throughput.Throughput != k.wantContainer {
			t.Errorf("%+v: got %+v and %+v", k, d.Throughput, ct.Throughput)
		}
		for rid, want := range map[string]Throughput{d.RID.String(): k.wantDatabase, ct.RIDText: k.wantContainer} {
			o := offerFor(c, rid)
			if (o == nil) != want.None() || o != nil && (o.Throughput != want || o.Database != d.RID) {
				t.Errorf("%+v: the offer of %s is %+v", k, rid, o)
			}
		}
	}
}

func TestReplaceOffer(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createSharing(t, c, "d", Throughput{Manual: 400})
	ct := createContainer(t, c, d, with(""), Throughput{Manual: 11_000})
	for _, rid := range []string{d.RID.String(), ct.RIDText} {
		o := offerFor(c, rid)
		etags := []string{o.ETag}
		for _, step := range []struct {
			body    string
			want    Throughput
			minimum int
		}{
			{autoscale(2000), Throughput{AutoscaleMax: 2000, Fixed: true}, max(1000, roundUp(o.Highest/10, 1000))},
			{manual(500), Throughput{Manual: 500}, 400},
			{manual(100_000), Throughput{Manual: 100_000}, 1000},
			{autoscale(10_000), Throughput{AutoscaleMax: 10_000, Fixed: true}, 10_000},
			{manual(1000), Throughput{Manual: 1000}, 1000},
			{manual(1000), Throughput{Manual: 1000}, 1000},
		} {
			got, err := c.ReplaceOffer(t.Context(), offerReplace(o.RIDText, step.body, etags[len(etags)-1]), nowMs+7000)
			if err != nil {
				t.Fatalf("%s: %v", step.body, err)
			}
			if got.Throughput != step.want || got.Minimum() != step.minimum || got.Provision.TS != nowMs/1000+7 {
				t.Errorf("%s: got %+v, minimum %d, want %+v, %d", step.body, got, got.Minimum(), step.want, step.minimum)
			}
			if slices.Contains(etags, got.ETag) {
				t.Errorf("%s: the etag %s was there before", step.body, got.ETag)
			}
			etags = append(etags, got.ETag)
			read, err := c.Offer(o.RIDText)
			if err != nil || string(read.Body) != string(got.Body) {
				t.Errorf("%s: read %+v, %v", step.body, read, err)
			}
		}
	}
	now, err := c.Current(ct.RID)
	if err != nil || len(now.Ranges) != 2 || now.Epoch != ct.Epoch || string(now.Body) != string(ct.Body) {
		t.Errorf("the container has become %+v, %v", now, err)
	}
	if got, want := offerTexts(open(t, db)), offerTexts(c); !slices.Equal(got, want) {
		t.Errorf("opened again:\ngot  %s\nwant %s", got, want)
	}
	if _, err := c.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":5`), "", nowMs); err != nil {
		t.Fatal(err)
	}
	if got := offerFor(c, ct.RIDText); got.Manual != 1000 || got.Highest != 100_000 {
		t.Errorf("after a replace of the container it has %+v", got)
	}
}

// A container grows if its throughput takes more ranges than it has, of 10,000 RU/s each,
// until it has them, its throughput takes fewer, or growing is given up. That is written.
func TestOfferGrows(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createSharing(t, c, "d", Throughput{Manual: 400})
	ct := createContainer(t, c, d, with(""), Throughput{Manual: 11_000})
	replace := func(rid, body string) *Offer {
		t.Helper()
		o := offerFor(c, rid)
		got, err := c.ReplaceOffer(t.Context(), offerReplace(o.RIDText, body, ""), nowMs)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return got
	}
	for _, step := range []struct {
		body string
		want int
	}{
		{manual(20_000), 0}, {manual(20_100), 3}, {manual(25_000), 3}, {autoscale(20_000), 0},
		{autoscale(21_000), 3}, {manual(1_000_000), 100}, {manual(10_000), 0}, {manual(30_100), 4},
	} {
		o := replace(ct.RIDText, step.body)
		for _, c := range []*Catalog{c, open(t, db)} {
			now, err := c.Current(ct.RID)
			if err != nil || now.Wanted != step.want || now.Growing() != (step.want > 0) || now.ETag != ct.ETag {
				t.Errorf("%s: %d ranges are wanted, %v, want %d", step.body, now.Wanted, err, step.want)
			}
			if read, err := c.Offer(o.RIDText); err != nil || read.Pending != (step.want > 0) || strings.Contains(string(read.Body), `"isOfferReplacePending":true`) != (step.want > 0) {
				t.Errorf("%s: the offer is %s, %v", step.body, read.Body, err)
			}
		}
	}
	if o := replace(d.RID.String(), manual(100_000)); o.Pending {
		t.Errorf("what a database shares: %s", o.Body)
	}
	if _, err := c.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":5`), "", nowMs); err != nil {
		t.Fatal(err)
	}
	var split []int
	for {
		now, err := c.Current(ct.RID)
		if err != nil {
			t.Fatal(err)
		}
		if !now.Growing() {
			break
		}
		r := now.Largest()
		split = append(split, r.ID)
		if now, err = c.BeginSplit(t.Context(), ct.RID, r.ID, now.Middle(r)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.EndSplit(t.Context(), ct.RID, now.Split, now.Epoch, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(split, []int{1, 0}) || offerFor(c, ct.RIDText).Pending {
		t.Errorf("the ranges %v were split, and the offer is %+v", split, offerFor(c, ct.RIDText))
	}
	if o := replace(ct.RIDText, manual(50_000)); !o.Pending {
		t.Errorf("got %s", o.Body)
	}
	if err := c.StopGrowing(t.Context(), ct.RID); err != nil || offerFor(open(t, db), ct.RIDText).Pending {
		t.Errorf("given up: %v, %+v", err, offerFor(c, ct.RIDText))
	}
}

// offerReplace returns a replace of the offer with this body.
func offerReplace(rid, body, ifMatch string) Write {
	body = strings.Replace(body, `{"content"`, `{"id":"`+rid+`","content"`, 1)
	return Write{Address: Address{ID: rid}, Body: []byte(body), IfMatch: ifMatch}
}

func offerTexts(c *Catalog) []string {
	var all []string
	for _, o := range c.Offers() {
		all = append(all, string(o.Body))
	}
	return all
}

func TestReplaceOfferRefusals(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createSharing(t, c, "d", Throughput{Manual: 100_000})
	ct := createContainer(t, c, d, with(""), Throughput{})
	o := offerFor(c, d.RID.String())
	before := rowsOf(t, db)
	for body, want := range map[string]string{
		manual(900):                              "between 1000 and 1000000 inclusive in increments of 100. Requested throughput 900 is less than required minimum throughput 1000.",
		manual(-200):                             "Requested throughput -200 is less than required minimum throughput 1000.",
		manual(0):                                "less than required minimum throughput 1000.",
		manual(1050):                             "not a multiple of 100",
		manual(1_000_100):                        "more than possible maximum throughput 1000000",
		autoscale(9000):                          "Requested throughput 9000 is less than required minimum throughput 10000.",
		autoscale(10_500):                        "not a multiple of 1000",
		"":                                       "not a well-formed JSON object",
		"[]":                                     "not a well-formed JSON object",
		"{}":                                     "'id; ' - are missing",
		`{"content":null}`:                       "'content; ' - are missing",
		`{"content":7}`:                          "'content' must be an object",
		`{"content":{}}`:                         "'content.offerThroughput' must be an integer",
		`{"content":{"offerThroughput":"1000"}}`: "'content.offerThroughput' must be an integer",
		`{"content":{"offerThroughput":1000.5}}`: "'content.offerThroughput' must be an integer",
		`{"content":{"offerThroughput":1e12}}`:   "'content.offerThroughput' must be an integer",
		`{"content":{"offerAutopilotSettings":{}}}`:                  "'content.offerAutopilotSettings' is not of the form",
		`{"content":{"offerAutopilotSettings":5}}`:                   "'content.offerAutopilotSettings' is not of the form",
		`{"id":"AAAA","content":{"offerThroughput":1000}}`:           "The 'id' of an offer cannot be changed: it is 'AAAC', not 'AAAA'.",
		`{"_rid":7,"content":{"offerThroughput":1000}}`:              "'_rid' must be a string",
		`{"resource":"dbs/x/","content":{"offerThroughput":1000}}`:   "The 'resource' of an offer cannot be changed",
		`{ "content":{"offerThroughput":1000}}`:                      "'id; ' - are missing",
		`{"offerResourceId":"x","content":{"offerThroughput":1000}}`: "The 'offerResourceId' of an offer cannot be changed",
	} {
		if _, err := c.ReplaceOffer(t.Context(), offerReplace(o.RIDText, body, ""), nowMs); !refusedWith(err, want) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	if _, err := c.ReplaceOffer(t.Context(), offerReplace(o.RIDText, manual(1000), `"x"`), nowMs); !errors.Is(err, ErrPrecondition) {
		t.Errorf("another etag: got %v, want ErrPrecondition", err)
	}
	shared := offerRID(containerOffer(ct.RID)) // it has no offer, since it shares
	for _, rid := range []string{"", "x", "AAAA", "AAAE", shared, o.RIDText + "=", strings.ToLower(o.RIDText), d.RID.String(), ct.RIDText} {
		if _, err := c.Offer(rid); !errors.Is(err, ErrNotFound) {
			t.Errorf("read %q: got %v, want ErrNotFound", rid, err)
		}
		if _, err := c.ReplaceOffer(t.Context(), offerReplace(rid, manual(1000), ""), nowMs); !errors.Is(err, ErrNotFound) {
			t.Errorf("replace %q: got %v, want ErrNotFound", rid, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ReplaceOffer(ctx, offerReplace(o.RIDText, manual(1000), ""), nowMs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if got := rowsOf(t, db); fmt.Sprint(got) != fmt.Sprint(before) || offerFor(c, d.RID.String()).Manual != 100_000 {
		t.Errorf("a refused replace has changed something: %q", got)
	}
}

// An offer is deleted with its resource, and its rid is never reused.
func TestOfferGoesWithItsResource(t *testing.T) {
	c := open(t, kvtest.NewModel())
	seen := map[string]bool{}
	for range 3 {
		d := createSharing(t, c, "d", Throughput{Manual: 400})
		a := createContainer(t, c, d, named("a"), Throughput{Manual: 500})
		createContainer(t, c, d, named("b"), Throughput{Manual: 600})
		all := c.Offers()
		if len(all) != 3 {
			t.Fatalf("there are %d offers, want 3", len(all))
		}
		for _, o := range all {
			if seen[o.RIDText] {
				t.Errorf("the rid %s is given twice", o.RIDText)
			}
			seen[o.RIDText] = true
		}
		gone := offerFor(c, a.RIDText)
		if err := c.DeleteContainer(t.Context(), a.RID, "", &kv.Batch{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Offer(gone.RIDText); !errors.Is(err, ErrNotFound) || len(c.Offers()) != 2 {
			t.Errorf("after the container's end: %v, and %d offers", err, len(c.Offers()))
		}
		if err := c.DeleteDatabase(t.Context(), d.RID, "", &kv.Batch{}); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Offers()); n != 0 {
			t.Errorf("after the database's end there are %d offers", n)
		}
	}
}

// A row without throughput is read as a container with the default.
func TestContainerRowWithoutThroughput(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d, sharing := createDatabase(t, c, "d"), createSharing(t, c, "sharing", Throughput{Manual: 600})
	alone := createContainer(t, c, d, named("c"), Throughput{})
	shares := createContainer(t, c, sharing, named("c"), Throughput{})
	for _, ct := range []*Container{alone, shares} {
		ct.Throughput = Provision{}
		var b kv.Batch
		b.Set(containerKey(ct.RID), mustJSON(ct.record()))
		must(t, db.Commit(t.Context(), &b))
	}
	again := open(t, db)
	if o := offerFor(again, alone.RIDText); o == nil || o.Manual != 400 || o.Minimum() != 400 {
		t.Errorf("alone it has %+v, want 400 RU/s", o)
	}
	if o := offerFor(again, shares.RIDText); o != nil {
		t.Errorf("what shares has %+v of its own", o)
	}
}

// The minimum of a shared throughput grows with the number of containers.
func TestMinimumOfASharedDatabase(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createSharing(t, c, "d", Throughput{Manual: 400})
	createContainer(t, c, d, named("own"), Throughput{Manual: 400})
	for i := range 27 {
		createContainer(t, c, d, named(fmt.Sprint("c", i)), Throughput{})
	}
	o := offerFor(c, d.RID.String())
	if o.Minimum() != 600 {
		t.Errorf("with 27 containers the minimum is %d, want 600", o.Minimum())
	}
	if _, err := c.ReplaceOffer(t.Context(), offerReplace(o.RIDText, manual(500), ""), nowMs); !refusedWith(err, "required minimum throughput 600") {
		t.Errorf("500: got %v", err)
	}
}

func TestFirstOfferAfter(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createSharing(t, c, "d", Throughput{Manual: 400})
	for i := range 5 {
		createContainer(t, c, d, named(fmt.Sprint("c", i)), Throughput{Manual: 400})
	}
	all := c.state.Load().offers()
	after := func(list []Any, rid string) (int, bool) { return (&List{&Resource{}, Offers, list}).After(rid) }
	for i, o := range c.Offers() {
		if got, ok := after(all, o.RIDText); !ok || got != i+1 {
			t.Errorf("after %d: got %d, %v", i, got, ok)
		}
		without := slices.Delete(slices.Clone(all), i, i+1)
		if got, ok := after(without, o.RIDText); !ok || got != i {
			t.Errorf("after %d, which is gone: got %d, %v", i, got, ok)
		}
	}
	for _, text := range []string{"", "x", "AAAAAQ==", "AAAAAAAA"} {
		if _, ok := after(all, text); ok {
			t.Errorf("%q is taken for an offer's rid", text)
		}
	}
}

func TestOfferRIDs(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "AAAA", 2: "AAAC", 3: "AAAD", longOffer - 1: "----", longOffer: "AAABAAAA", 1<<48 - 1: "--------",
	} {
		if got := offerRID(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32().Draw(t, "number")
		for _, o := range []uint64{databaseOffer(DatabaseRID(n)), containerOffer(ContainerRID{1, n})} {
			if got, ok := parseOfferRID(offerRID(o)); !ok || got != o {
				t.Errorf("%d is written %s and read as %d, %v", o, offerRID(o), got, ok)
			}
		}
	})
	if got, ok := parseOfferRID(offerRID(containerOffer(ContainerRID{1, math.MaxUint32}))); !ok || got != 1<<33-1 {
		t.Errorf("the last: got %d, %v", got, ok)
	}
}

func FuzzParseOfferRID(f *testing.F) {
	for _, text := range []string{"", "x", "AAAC", "----", "AAABAAAA", "AAAAAAAC", "AAA=", "AA\nAC", "AAAAAQ=="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseOfferRID(text); ok && offerRID(n) != text {
			t.Errorf("%q is read as %d, which is %q", text, n, offerRID(n))
		}
	})
}

// Whatever a client sends, the throughput that results obeys the rules.
func FuzzParseOffer(f *testing.F) {
	d := &Database{Resource: Resource{RIDText: "AAAAAQ==", kind: Databases, path: path{1}, self: "dbs/AAAAAQ==/"}}
	d.Throughput = provision(Throughput{Manual: 50_000}, 1)
	was := offerOf(d)
	for _, body := range []string{
		string(was.Body), manual(400), manual(500), manual(-1), autoscale(5000), autoscale(1000), "{}", `{"content":{"offerThroughput":1e3}}`,
		`{"content":{"offerAutopilotSettings":{"maxThroughput":6000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}}}`, "", "[",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parseOffer(body, was)
		if err != nil {
			return
		}
		got, err := r.grant(was.Highest, 0)
		if err != nil {
			return
		}
		if (got.Manual != 0) == (got.AutoscaleMax != 0) || got.Manual%100 != 0 || got.AutoscaleMax%1000 != 0 ||
			got.Manual != 0 && got.Manual < 500 || got.AutoscaleMax != 0 && got.AutoscaleMax < 5000 || got.PerSecond() > maxThroughput {
			t.Errorf("%s is granted %+v", body, got)
		}
	})
}
