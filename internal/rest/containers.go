// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// tellContainer sets the headers that go with a container, and returns its definition.
func (x *exchange) tellContainer(c *catalog.Container) ([]byte, error) {
	x.set(headerAltPath, headerPath("dbs/"+c.DatabaseID))
	x.set(headerContentPath, c.RID.Database.String())
	if c.Throughput.None() {
		x.set("X-Ms-Share-Throughput", "true")
	}
	// Nothing has to be copied for analyses, so that it always has been.
	if x.flag("X-Ms-Cosmos-Populate-Analytical-Migration-Progress") {
		x.set("X-Ms-Cosmos-Analytical-Migration-Progress", "100")
	}
	if err := x.setQuota(c); err != nil || x.operation != opContainerRead {
		return c.Body, err
	}
	return x.withStatistics(c)
}

// partitionedSince is the version of the protocol from which on every container has
// a partition key. A client of an older one may leave it out, and newer ones then
// see a key that no item has.
const partitionedSince = "2018-12-31"

const systemKey = `"partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}`

// withSystemKey adds the key to a definition that has none, if the client may leave it
// out.
func (x *exchange) withSystemKey(body []byte) []byte {
	if version := x.header(headerVersion); version == "" || version >= partitionedSince {
		return body
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return body // which is refused as it is
	}
	if raw, ok := o.Lookup("partitionKey"); ok && string(raw) != "null" {
		return body
	}
	out := o.AppendMembers([]byte("{"), func(name string) bool { return name == "partitionKey" })
	if len(out) > len("{") {
		out = append(out, ',')
	}
	return append(append(out, systemKey...), '}')
}

func (x *exchange) asksForQuota() bool { return x.flag("X-Ms-Documentdb-Populatequotainfo") }

// defaultQuotaKiB is what a container without a quota is said to have: the clients'
// own tests look for this number.
const defaultQuotaKiB = 10 << 20

// setQuota tells how far the items have followed the indexing policy and, unless the
// container is new, how much it may hold, and holds, if that was asked for. Only what is
// live counts. Sizes are in KiB.
func (x *exchange) setQuota(c *catalog.Container) error {
	if !x.asksForQuota() {
		return nil
	}
	percent, err := x.h.engine.IndexProgress(c)
	if err != nil {
		return err
	}
	x.set("X-Ms-Documentdb-Collection-Index-Transformation-Progress", strconv.Itoa(percent))
	if x.operation == opContainerCreate {
		return nil
	}
	usage, err := x.h.engine.Usage(c)
	if err != nil {
		return err
	}
	x.tellQuota(usage.Live)
	return nil
}

// tellQuota tells how much a container may hold and what it, or the partition that has
// answered, does hold.
func (x *exchange) tellQuota(live store.Amount) {
	x.w.Header()[wireName(headerQuota)] = x.h.quota()
	var text [128]byte
	size := kib(live.Bytes)
	usage := strconv.AppendInt(append(text[:0], "documentSize=0;documentsSize="...), size, 10)
	usage = strconv.AppendInt(append(usage, ";documentsCount="...), live.Items, 10)
	usage = strconv.AppendInt(append(usage, ";collectionSize="...), size, 10)
	x.set(headerUsage, string(append(usage, ';')))
	x.quotaTold = true
}

// quotaHeader makes the header that tells how much a container may hold.
func quotaHeader(bytes int64) []string {
	size := int64(defaultQuotaKiB)
	if bytes > 0 {
		size = kib(bytes)
	}
	return []string{fmt.Sprintf("documentSize=10240;documentsSize=%d;documentsCount=-1;collectionSize=%d;", size, size)}
}

// withStatistics returns the container's definition, with what each of its ranges holds if
// that was asked for. Only what is live counts. The service lists partition keys of a
// gigabyte and more too; a key's total has the dead in it, so that none is listed.
func (x *exchange) withStatistics(c *catalog.Container) ([]byte, error) {
	if !x.flag("X-Ms-Documentdb-Populatepartitionstatistics") {
		return c.Body, nil
	}
	parts, err := x.h.engine.UsageByRange(c)
	if err != nil {
		return nil, err
	}
	body := append(bytes.Clone(bytes.TrimSuffix(c.Body, []byte("}"))), `,"statistics":[`...)
	for i, part := range parts {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":"%s","sizeInKB":%d,"documentCount":%d,"partitionKeys":[]}`, catalog.RangeID(i), kib(part.Live.Bytes), part.Live.Items)
	}
	return append(body, "]}"...), nil
}

// kib returns how many KiB hold so many bytes.
func kib(bytes int64) int64 { return (bytes + 1023) / 1024 }

// throughput reads what a create asks for.
func (x *exchange) throughput() (catalog.Throughput, error) {
	manual := x.header("X-Ms-Offer-Throughput")
	auto := x.header("X-Ms-Cosmos-Offer-Autopilot-Settings")
	switch {
	case manual != "" && auto != "":
		return catalog.Throughput{}, &badRequestError{"Either x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings can be given, not both."}
	case manual != "":
		n, err := strconv.Atoi(manual)
		if err != nil {
			return catalog.Throughput{}, &badRequestError{"The value '" + value.Clip(manual) + "' of the header x-ms-offer-throughput is not an integer."}
		}
		return catalog.ManualThroughput(n)
	case auto != "":
		t, err := catalog.AutoscaleThroughput([]byte(auto))
		if errors.Is(err, catalog.ErrAutoscaleSettings) {
			return t, &badRequestError{"The value '" + value.Clip(auto) + "' of the header x-ms-cosmos-offer-autopilot-settings is invalid. Ensure to provide, for example, {\"maxThroughput\":4000}."}
		}
		return t, err
	}
	return catalog.Throughput{}, nil
}
