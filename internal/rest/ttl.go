// SPDX-License-Identifier: MIT

// The pages under /_mayfly/ttl/: what is expired, what would be, what will be, and
// why.

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// notFoundError names what is not there.
type notFoundError struct {
	message string
}

func (e *notFoundError) Error() string { return e.message }

// serveTTL answers a page under ttl/, for a client whose key was checked.
func (x *exchange) serveTTL(page string) error {
	method, serve := http.MethodGet, (func() error)(nil)
	switch page {
	case "status":
		serve = x.serveTTLStatus
	case "whatif":
		serve = x.serveWhatIf
	case "forecast":
		serve = x.serveForecast
	case "explain":
		serve = x.serveExplain
	case "events":
		serve = x.serveEvents
	case "pause", "resume", "limit", "purge":
		method, serve = http.MethodPost, func() error { return x.servePurge(page) }
	default:
		return errNoRoute
	}
	if x.r.Method != method {
		return errMethod
	}
	return serve()
}

// find returns the container that is named. Names and rids are as good.
func (x *exchange) find(n containerName) (*catalog.Container, error) {
	c, err := x.h.engine.Catalog().Container(n.database, n.container)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, &notFoundError{fmt.Sprintf("There is no container '%s' in a database '%s'.", value.Clip(n.container), value.Clip(n.database))}
	}
	return c, err
}

func (x *exchange) writeJSON(answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	x.write(http.StatusOK, body)
	return nil
}

// stamp is a moment as RFC 3339, in UTC and to the millisecond.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func seconds(ms int64) float64 { return float64(ms) / 1000 }

// hundredths is as exact as charges are told.
func hundredths(u ru.Units) float64 { return math.Round(float64(u)*100) / 100 }

// ttlValue is a TTL as definitions state it, null where there is none.
func ttlValue(t catalog.TTL) *int32 {
	if t == catalog.TTLAbsent {
		return nil
	}
	n := int32(t)
	return &n
}

type amount struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// ttlStatus is the answer to GET /_mayfly/ttl/status.
type ttlStatus struct {
	Now   string   `json:"now"`
	NowMs int64    `json:"nowMs"`
	Clock ttlClock `json:"clock"`
	// Containers has those that were asked for.
	Containers []ttlContainer `json:"containers"`
}

type ttlClock struct {
	Trusted bool   `json:"trusted"`
	Reason  string `json:"reason,omitempty"`
}

type ttlContainer struct {
	Database       string         `json:"database"`
	Container      string         `json:"container"`
	DefaultTTL     *int32         `json:"defaultTtl"`
	TTLFinality    bool           `json:"ttlFinality"`
	Live           amount         `json:"live"`
	ExpiredPending amount         `json:"expiredPending"`
	Purge          ttlPurge       `json:"purge"`
	Throughput     ttlThroughput  `json:"throughput"`
	Partitions     []ttlPartition `json:"partitions"`
}

type ttlPurge struct {
	LagSeconds     float64 `json:"lagSeconds"`
	ItemsPerSecond float64 `json:"itemsPerSecond"`
	PurgedItems    int64   `json:"purgedItems"`
	PurgedBytes    int64   `json:"purgedBytes"`
	RequestUnits   float64 `json:"requestUnits"`
	Paused         bool    `json:"paused"`
	// Limit is null for none, as is HeldBack.
	Limit    *float64 `json:"limit"`
	HeldBack *string  `json:"heldBack"`
}

type ttlThroughput struct {
	Mode        string  `json:"mode"`
	Provisioned float64 `json:"provisioned"`
	Used        float64 `json:"used"`
	Leftover    float64 `json:"leftover"`
	Shared      bool    `json:"shared"`
}

type ttlPartition struct {
	ID             string  `json:"id"`
	Live           amount  `json:"live"`
	ExpiredPending amount  `json:"expiredPending"`
	LagSeconds     float64 `json:"lagSeconds"`
}

func (x *exchange) serveTTLStatus() error {
	p, err := parseParams(x.r.URL.RawQuery, paramDatabase, paramContainer)
	if err != nil {
		return err
	}
	name, err := p.someContainer()
	if err != nil {
		return err
	}
	var all []engine.TTLStatus
	if name.all() {
		all, err = x.h.engine.TTLStatuses(x.r.Context())
	} else {
		all, err = x.oneTTLStatus(name)
	}
	if err != nil {
		return err
	}
	c := x.h.engine.Clock().Status()
	s := ttlStatus{
		Now: stamp(c.NowMs), NowMs: c.NowMs,
		Clock:      ttlClock{c.HorizonMs == c.NowMs, c.Notice},
		Containers: make([]ttlContainer, len(all)),
	}
	for i := range all {
		s.Containers[i] = containerStatus(&all[i])
	}
	return x.writeJSON(s)
}

func (x *exchange) oneTTLStatus(name containerName) ([]engine.TTLStatus, error) {
	c, err := x.find(name)
	if err != nil {
		return nil, err
	}
	s, err := x.h.engine.TTLStatus(c.DatabaseID, c.ID)
	return []engine.TTLStatus{s}, err
}

func containerStatus(s *engine.TTLStatus) ttlContainer {
	c := ttlContainer{
		Database: s.Database, Container: s.Container,
		DefaultTTL: ttlValue(s.DefaultTTL), TTLFinality: s.TTLFinality,
		Live: amount(s.Live), ExpiredPending: amount(s.Expired),
		Purge: ttlPurge{
			LagSeconds: seconds(s.LagMs), ItemsPerSecond: s.Purge.ItemsPerSecond,
			PurgedItems: s.Purge.Purged.Items, PurgedBytes: s.Purge.Purged.Bytes,
			RequestUnits: hundredths(s.Purge.Units), Paused: s.Purge.Paused,
		},
		Throughput: ttlThroughput{
			Mode: "report", Provisioned: hundredths(s.Throughput.Provisioned), Used: hundredths(s.Throughput.Used),
			Leftover: hundredths(s.Throughput.Leftover), Shared: s.Throughput.Shared,
		},
	}
	if s.Throughput.Mode == engine.Enforce {
		c.Throughput.Mode = "enforce"
	}
	if s.Purge.Limit > 0 {
		c.Purge.Limit = &s.Purge.Limit
	}
	if held := string(s.Purge.HeldBack); held != "" {
		c.Purge.HeldBack = &held
	}
	for _, p := range s.Partitions {
		c.Partitions = append(c.Partitions, ttlPartition{p.ID, amount(p.Live), amount(p.Expired), seconds(p.LagMs)})
	}
	return c
}

// ttlWhatIf is the answer to GET /_mayfly/ttl/whatif.
type ttlWhatIf struct {
	Database          string `json:"database"`
	Container         string `json:"container"`
	Now               string `json:"now"`
	NowMs             int64  `json:"nowMs"`
	CurrentDefaultTTL *int32 `json:"currentDefaultTtl"`
	DefaultTTL        *int32 `json:"defaultTtl"`
	Live              amount `json:"live"`
	Expires           amount `json:"expires"`
	Returns           amount `json:"returns"`
	Remains           amount `json:"remains"`
	Never             amount `json:"never"`
	// LastExpiresAt is null if nothing would ever expire.
	LastExpiresAt   *string `json:"lastExpiresAt"`
	LastExpiresAtMs *int64  `json:"lastExpiresAtMs"`
}

func (x *exchange) serveWhatIf() error {
	p, err := parseParams(x.r.URL.RawQuery, paramDatabase, paramContainer, paramTTL)
	if err != nil {
		return err
	}
	name, err := p.oneContainer()
	if err != nil {
		return err
	}
	ttl, err := p.ttl()
	if err != nil {
		return err
	}
	c, err := x.find(name)
	if err != nil {
		return err
	}
	w, err := x.h.engine.WhatIf(x.r.Context(), c.DatabaseID, c.ID, ttl)
	if err != nil {
		return err
	}
	answer := ttlWhatIf{
		Database: c.DatabaseID, Container: c.ID, Now: stamp(w.NowMs), NowMs: w.NowMs,
		CurrentDefaultTTL: ttlValue(c.DefaultTTL), DefaultTTL: ttlValue(ttl),
		Live: amount(w.Live), Expires: amount(w.Expires), Returns: amount(w.Returns),
		Remains: amount(w.Remains), Never: amount(w.Never),
	}
	if w.LastMs > 0 {
		answer.LastExpiresAt, answer.LastExpiresAtMs = moment(w.LastMs)
	}
	return x.writeJSON(answer)
}

func moment(ms int64) (text *string, milliseconds *int64) {
	s := stamp(ms)
	return &s, &ms
}

// ttlForecast is the answer to GET /_mayfly/ttl/forecast.
type ttlForecast struct {
	Database  string        `json:"database"`
	Container string        `json:"container"`
	Now       string        `json:"now"`
	NowMs     int64         `json:"nowMs"`
	Intervals []ttlInterval `json:"intervals"`
	Later     amount        `json:"later"`
	Never     amount        `json:"never"`
}

// ttlInterval begins after From and ends with Until.
type ttlInterval struct {
	From  string `json:"from"`
	Until string `json:"until"`
	amount
}

func (x *exchange) serveForecast() error {
	p, err := parseParams(x.r.URL.RawQuery, paramDatabase, paramContainer, paramInterval, paramCount)
	if err != nil {
		return err
	}
	name, err := p.oneContainer()
	if err != nil {
		return err
	}
	interval, err := p.interval()
	if err != nil {
		return err
	}
	count, err := p.count()
	if err != nil {
		return err
	}
	c, err := x.find(name)
	if err != nil {
		return err
	}
	f, err := x.h.engine.Forecast(x.r.Context(), c.DatabaseID, c.ID, interval, count)
	if err != nil {
		return err
	}
	answer := ttlForecast{
		Database: c.DatabaseID, Container: c.ID, Now: stamp(f.NowMs), NowMs: f.NowMs,
		Later: amount(f.Later), Never: amount(f.Never),
	}
	for _, i := range f.Intervals {
		answer.Intervals = append(answer.Intervals, ttlInterval{stamp(i.FromMs), stamp(i.UntilMs), amount(i.Amount)})
	}
	return x.writeJSON(answer)
}

// ttlExplanation is the answer to GET /_mayfly/ttl/explain.
type ttlExplanation struct {
	Database     string          `json:"database"`
	Container    string          `json:"container"`
	ID           string          `json:"id"`
	PartitionKey json.RawMessage `json:"partitionKey"`
	Now          string          `json:"now"`
	NowMs        int64           `json:"nowMs"`
	Expired      bool            `json:"expired"`
	// Final says that ttlFinality alone keeps it expired.
	Final bool `json:"final"`
	// TTL is the item's own, DefaultTTL its container's, Source whichever counts:
	// "item", "container" or "none".
	TTL         *int32 `json:"ttl"`
	DefaultTTL  *int32 `json:"defaultTtl"`
	Source      string `json:"source"`
	WrittenAt   string `json:"writtenAt"`
	WrittenAtMs int64  `json:"writtenAtMs"`
	// ExpiresAt is null for an item that never does, and for one that only
	// ttlFinality keeps expired.
	ExpiresAt   *string `json:"expiresAt"`
	ExpiresAtMs *int64  `json:"expiresAtMs"`
	Reason      string  `json:"reason"`
}

func (x *exchange) serveExplain() error {
	p, err := parseParams(x.r.URL.RawQuery, paramDatabase, paramContainer, paramID, paramKey)
	if err != nil {
		return err
	}
	name, err := p.oneContainer()
	if err != nil {
		return err
	}
	id, err := p.id()
	if err != nil {
		return err
	}
	key, err := p.partitionKey()
	if err != nil {
		return err
	}
	c, err := x.find(name)
	if err != nil {
		return err
	}
	f, err := x.h.engine.Explain(engine.Target{Database: c.DatabaseID, Container: c.ID, ID: id, PartitionKey: key.String()})
	if errors.Is(err, store.ErrNotFound) {
		return &notFoundError{fmt.Sprintf("There is no item '%s' with the partition key %s: it was never written, was deleted, or has expired and was purged.",
			value.Clip(id), value.Clip(key.String()))}
	}
	if err != nil {
		return err
	}
	answer := ttlExplanation{
		Database: c.DatabaseID, Container: c.ID, ID: id, PartitionKey: json.RawMessage(key.String()),
		Now: stamp(f.NowMs), NowMs: f.NowMs, Expired: f.Expired, Final: f.Final,
		TTL: ttlValue(f.Own), DefaultTTL: ttlValue(f.Default), Source: f.Source,
		WrittenAt: stamp(f.WrittenMs), WrittenAtMs: f.WrittenMs, Reason: f.Reason,
	}
	if f.DeadlineMs != store.Never && !f.Final {
		answer.ExpiresAt, answer.ExpiresAtMs = moment(f.DeadlineMs)
	}
	return x.writeJSON(answer)
}
