// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

func (x *exchange) serveContainers(rt *route) error {
	switch {
	case rt.operation != "" && x.r.Method == http.MethodPost:
		return &notYetError{"deletes by partition key"}
	case rt.operation != "":
		return errMethod
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listContainers(rt)
	case rt.feed && x.r.Method == http.MethodPost:
		return x.createContainer(rt)
	case !rt.feed && x.r.Method == http.MethodGet:
		c, err := x.h.engine.Container(rt.database, rt.id)
		if err != nil {
			return err
		}
		x.setContainer(c)
		x.writeIfModified(c.ETag, c.Body)
		return nil
	case !rt.feed && x.r.Method == http.MethodPut:
		return x.replaceContainer(rt)
	case !rt.feed && x.r.Method == http.MethodDelete:
		if err := x.h.engine.DeleteContainer(x.r.Context(), rt.database, rt.id, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	return errMethod
}

func (x *exchange) listContainers(rt *route) error {
	d, all, err := x.h.engine.Containers(rt.database)
	if err != nil {
		return err
	}
	return x.writeFeed(d.RID.String(), "DocumentCollections", len(all), func(i int) (string, []byte) {
		return all[i].RID.String(), all[i].Body
	})
}

func (x *exchange) createContainer(rt *route) error {
	if x.isQuery() {
		return &notYetError{"queries over containers"}
	}
	t, err := x.throughput()
	if err != nil {
		return err
	}
	body, done, err := x.body()
	defer done()
	if err != nil {
		return err
	}
	c, err := x.h.engine.CreateContainer(x.r.Context(), rt.database, body, t)
	if err != nil {
		return err
	}
	x.setContainer(c)
	x.writeResource(http.StatusCreated, c.ETag, c.Body)
	return nil
}

func (x *exchange) replaceContainer(rt *route) error {
	body, done, err := x.body()
	defer done()
	if err != nil {
		return err
	}
	c, err := x.h.engine.ReplaceContainer(x.r.Context(), rt.database, rt.id, body, x.header("If-Match"))
	if err != nil {
		return err
	}
	x.setContainer(c)
	x.writeResource(http.StatusOK, c.ETag, c.Body)
	return nil
}

// setContainer sets the headers that go with a container.
func (x *exchange) setContainer(c *catalog.Container) {
	x.set(headerAltPath, headerPath("dbs/"+c.DatabaseID))
	x.set(headerContentPath, c.RID.Database.String())
	x.set("X-Ms-Documentdb-Collection-Index-Transformation-Progress", "100")
	if x.flag("X-Ms-Documentdb-Populatequotainfo") {
		x.set("X-Ms-Resource-Quota", "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;")
	}
}

// throughputRule says what throughput may be asked for, in RU/s.
type throughputRule struct {
	least, step int
}

var (
	manualRule    = throughputRule{least: 400, step: 100}
	autoscaleRule = throughputRule{least: 1000, step: 1000}
)

// maxRU is the most, of either kind.
const maxRU = 1_000_000

// throughput reads what a create asks for.
func (x *exchange) throughput() (catalog.Throughput, error) {
	manual := x.header("X-Ms-Offer-Throughput")
	auto := x.header("X-Ms-Cosmos-Offer-Autopilot-Settings")
	var t catalog.Throughput
	switch {
	case manual != "" && auto != "":
		return t, &badRequestError{"Either x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings can be given, not both."}
	case manual != "":
		n, err := strconv.Atoi(manual)
		if err != nil {
			return t, &badRequestError{"The value '" + value.Clip(manual) + "' of the header x-ms-offer-throughput is not an integer."}
		}
		t.Manual = n
		return t, manualRule.check(n)
	case auto != "":
		n, err := autoscaleMax(auto)
		if err != nil {
			return t, err
		}
		t.AutoscaleMax = n
		return t, autoscaleRule.check(n)
	}
	return t, nil
}

func (r throughputRule) check(n int) error {
	switch {
	case n < r.least:
		return &badRequestError{fmt.Sprintf("Requested throughput %d is less than required minimum throughput %d.", n, r.least)}
	case n > maxRU:
		return &badRequestError{fmt.Sprintf("Requested throughput %d is more than the maximum throughput %d.", n, maxRU)}
	case n%r.step != 0:
		return &badRequestError{fmt.Sprintf("Requested throughput %d is not a multiple of %d.", n, r.step)}
	}
	return nil
}

func autoscaleMax(text string) (int, error) {
	bad := &badRequestError{"The value '" + value.Clip(text) + "' of the header x-ms-cosmos-offer-autopilot-settings is invalid. Ensure to provide, for example, {\"maxThroughput\":4000}."}
	o, err := value.ParseObject([]byte(text))
	if err != nil {
		return 0, bad
	}
	raw, _ := o.Lookup("maxThroughput")
	v, _ := value.FromJSON(raw)
	f, ok := v.Number()
	if !ok || f != float64(int(f)) {
		return 0, bad
	}
	return int(f), nil
}
