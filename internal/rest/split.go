// SPDX-License-Identifier: MIT

package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

// splitPage is the page of splits, and paramRange the range that is to be split.
const (
	splitPage  = "cluster/split"
	paramRange = "range"
)

// serveSplit shows the last split of a container. A POST begins one.
func (x *exchange) serveSplit() error {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodPost {
		return api.ErrMethod
	}
	if x.r.ContentLength != 0 && x.r.Method == http.MethodPost {
		return badRequestf("This page takes no body: give its parameters in the query of the URL.")
	}
	allowed := []string{paramDatabase, paramContainer}
	if x.r.Method == http.MethodPost {
		allowed = append(allowed, paramRange)
	}
	p, err := parseParams(x.r.URL.RawQuery, allowed...)
	if err != nil {
		return err
	}
	c, err := x.find(p, ofContainer)
	if err != nil {
		return err
	}
	if x.r.Method == http.MethodPost {
		if p[paramRange] == "" {
			return badRequestf("Name the range that is to be split with the parameter range: %s.", rangesOf(c))
		}
		s, err := x.h.engine.SplitRange(x.Context, c, p[paramRange])
		switch {
		case errors.Is(err, engine.ErrRangeGone):
			return api.Refuse(http.StatusNotFound, 0, fmt.Sprintf("The container has no range '%s'. It has %s.", value.Clip(p[paramRange]), rangesOf(c)))
		case errors.Is(err, engine.ErrSplitting):
			return api.Refuse(http.StatusConflict, 0, "A range of the container is being split: wait for its end.")
		case err != nil:
			return err
		}
		return x.writeJSON(s)
	}
	s, found, err := x.h.engine.SplitStatus(x.Context, c)
	if err == nil && !found {
		err = api.Refuse(http.StatusNotFound, 0, "No range of the container was split since the servers that run were started.")
	}
	if err != nil {
		return err
	}
	return x.writeJSON(s)
}

// rangesOf names the ranges of a container.
func rangesOf(c *catalog.Container) string {
	ids := make([]string, len(c.Ranges))
	for i := range c.Ranges {
		ids[i] = catalog.RangeID(c.Ranges[i].ID)
	}
	return strings.Join(ids, ", ")
}
