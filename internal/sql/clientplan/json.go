// SPDX-License-Identifier: MIT

// Query plans as clients read them. The names of properties, and which of them are null, are
// the service's: clients fail on others.

package clientplan

import (
	"bytes"
	"strconv"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// planVersion is the version of the form in which plans are written.
const planVersion = 2

// Range is a part of the key space, between two effective partition keys in the
// form that clients see them in.
type Range struct {
	Min, Max                   string
	MinInclusive, MaxInclusive bool
}

// AppendJSON appends the plan, with the ranges that hold the keys of its scope.
func (p *Plan) AppendJSON(dst []byte, ranges []Range) []byte {
	dst = strconv.AppendInt(append(dst, `{"partitionedQueryExecutionInfoVersion":`...), planVersion, 10)
	if p.Hybrid != nil {
		dst = p.Hybrid.appendJSON(append(dst, `,"hybridSearchQueryInfo":`...))
	} else {
		dst = p.Query.appendJSON(append(dst, `,"queryInfo":`...))
	}
	dst = appendList(append(dst, `,"queryRanges":`...), ranges, func(dst []byte, r Range) []byte {
		dst = value.AppendString(append(dst, `{"min":`...), r.Min)
		dst = value.AppendString(append(dst, `,"max":`...), r.Max)
		dst = strconv.AppendBool(append(dst, `,"isMinInclusive":`...), r.MinInclusive)
		dst = strconv.AppendBool(append(dst, `,"isMaxInclusive":`...), r.MaxInclusive)
		return append(dst, '}')
	})
	return append(dst, '}')
}

// appendJSON appends all properties, also those that the query has no use for.
func (i *QueryInfo) appendJSON(dst []byte) []byte {
	dst = value.AppendString(append(dst, `{"distinctType":`...), string(i.Distinct))
	dst = appendCount(append(dst, `,"top":`...), i.Top)
	dst = appendCount(append(dst, `,"offset":`...), i.Offset)
	dst = appendCount(append(dst, `,"limit":`...), i.Limit)
	dst = appendList(append(dst, `,"orderBy":`...), i.OrderBy, func(dst []byte, o SortOrder) []byte { return value.AppendString(dst, string(o)) })
	dst = appendStrings(append(dst, `,"orderByExpressions":`...), i.OrderByExpressions)
	dst = appendStrings(append(dst, `,"groupByExpressions":`...), i.GroupByExpressions)
	dst = appendStrings(append(dst, `,"groupByAliases":`...), i.GroupByAliases)
	dst = appendStrings(append(dst, `,"aggregates":`...), i.Aggregates)
	dst = append(dst, `,"groupByAliasToAggregateType":{`...)
	for n, a := range i.AliasAggregates {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(value.AppendString(dst, a.Alias), ':')
		dst = appendNameOrNull(dst, a.Aggregate)
	}
	dst = value.AppendString(append(dst, `},"rewrittenQuery":`...), i.Rewritten)
	dst = strconv.AppendBool(append(dst, `,"hasSelectValue":`...), i.SelectValue)
	dst = strconv.AppendBool(append(dst, `,"hasNonStreamingOrderBy":`...), i.NonStreamingOrderBy)
	dst = append(dst, `,"dCountInfo":`...)
	if !i.DistinctCount {
		return append(dst, "null}"...)
	}
	dst = appendNameOrNull(append(dst, `{"dCountAlias":`...), i.DistinctCountedAlias)
	return append(dst, "}}"...)
}

// appendJSON leaves out weights that are all alike: clients then weigh all scores the same.
func (h *HybridInfo) appendJSON(dst []byte) []byte {
	dst = value.AppendString(append(dst, `{"globalStatisticsQuery":`...), h.Statistics)
	dst = appendList(append(dst, `,"componentQueryInfos":`...), h.Components, func(dst []byte, i *QueryInfo) []byte { return i.appendJSON(dst) })
	if h.Weights != nil {
		dst = appendList(append(dst, `,"componentWeights":`...), h.Weights, appendWeight)
	}
	dst = appendCount(append(dst, `,"skip":`...), h.Skip)
	dst = appendCount(append(dst, `,"take":`...), h.Take)
	dst = strconv.AppendBool(append(dst, `,"requiresGlobalStatistics":`...), h.Statistics != "")
	return append(dst, '}')
}

// appendWeight appends a weight that is whole with a point, too: the Java SDK takes weights for
// floating-point numbers, and fails on one that its parser makes an integer of.
func appendWeight(dst []byte, w float64) []byte {
	start := len(dst)
	dst = datum.Float(w).AppendJSON(dst)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendCount appends a number, or null: to clients, TOP 0 is not the same as no TOP.
func appendCount(dst []byte, n *int64) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *n, 10)
}

// appendNameOrNull appends a name, or null for none: the empty text would be a name.
func appendNameOrNull(dst []byte, name string) []byte {
	if name == "" {
		return append(dst, "null"...)
	}
	return value.AppendString(dst, name)
}

func appendStrings(dst []byte, list []string) []byte {
	return appendList(dst, list, value.AppendString)
}

// appendList appends a list, which is never null: some clients iterate without a look.
func appendList[T any](dst []byte, list []T, one func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, x)
	}
	return append(dst, ']')
}
