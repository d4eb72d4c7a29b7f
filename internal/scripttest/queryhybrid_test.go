// SPDX-License-Identifier: MIT

// The client's part of ORDER BY RANK.

package scripttest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// hybridInfo is how a plan tells a client to run ORDER BY RANK.
type hybridInfo struct {
	GlobalStatisticsQuery    string
	ComponentQueryInfos      []queryInfo
	ComponentWeights         []float64
	Skip, Take               *int
	RequiresGlobalStatistics bool
}

// rankConstant is the constant of reciprocal rank fusion.
const rankConstant = 60

// hybrid runs ORDER BY RANK: first the statistics of all ranges, then a query for each
// score, whose rows are ordered by their ranks.
func (q *queryCall) hybrid(info *hybridInfo, ids []string) ([]datum.Value, error) {
	fill := nothingSeen
	if info.RequiresGlobalStatistics {
		perRange, err := q.each(&queryInfo{RewrittenQuery: info.GlobalStatisticsQuery}, ids)
		if err != nil {
			return nil, err
		}
		fill = statisticsReplacer(slices.Concat(perRange...))
	}
	q.scores = true
	defer func() { q.scores = false }()
	seen := map[string]bool{}
	var rows []datum.Value
	for i := range info.ComponentQueryInfos {
		component := info.ComponentQueryInfos[i]
		component.RewrittenQuery = fill.Replace(component.RewrittenQuery)
		perRange, err := q.each(&component, ids)
		if err != nil {
			return nil, err
		}
		for _, row := range sliced(mergeOrdered(&component, perRange), component.Offset, component.Limit, component.Top) {
			rid, _ := row.Member("_rid").AsString()
			if !seen[rid] {
				seen[rid] = true
				rows = append(rows, payloadOf(row))
			}
		}
	}
	fused := fuse(info, rows)
	for i := range fused {
		fused[i] = payloadOf(fused[i])
	}
	return sliced(fused, info.Skip, info.Take, nil), nil
}

// statisticsReplacer adds up the statistics and replaces their names with the sums.
func statisticsReplacer(rows []datum.Value) *strings.Replacer {
	const name = "{documentdb-formattablehybridsearchquery-"
	add := func(of func(datum.Value) datum.Value) string {
		return string(summed(rows, of).AppendJSON(nil))
	}
	pairs := []string{
		"{documentdb-formattableorderbyquery-filter}", "true",
		name + "totaldocumentcount}", add(func(r datum.Value) datum.Value { return r.Member("documentCount") }),
	}
	for i := range rows[0].Member("fullTextStatistics").Len() {
		text := func(r datum.Value) datum.Value { return r.Member("fullTextStatistics").Index(i) }
		var hits []string
		for n := range text(rows[0]).Member("hitCounts").Len() {
			hits = append(hits, add(func(r datum.Value) datum.Value { return text(r).Member("hitCounts").Index(n) }))
		}
		at := strconv.Itoa(i) + "}"
		pairs = append(pairs,
			name+"totalwordcount-"+at, add(func(r datum.Value) datum.Value { return text(r).Member("totalWordCount") }),
			name+"hitcountsarray-"+at, "["+strings.Join(hits, ",")+"]")
	}
	return strings.NewReplacer(pairs...)
}

// fuse orders rows by the sum of the reciprocals of their ranks under each score.
func fuse(info *hybridInfo, rows []datum.Value) []datum.Value {
	total := make([]float64, len(rows))
	for c := range info.ComponentQueryInfos {
		weight, ascending := 1.0, info.ComponentQueryInfos[c].OrderBy[0] == "Ascending"
		if len(info.ComponentWeights) > 0 {
			weight = info.ComponentWeights[c]
		}
		scores := make([]float64, len(rows))
		for i, row := range rows {
			scores[i], _ = row.Member("componentScores").Index(c).AsFloat()
		}
		for i, score := range scores {
			better := map[float64]bool{}
			for _, other := range scores {
				if ascending && other < score || !ascending && other > score {
					better[other] = true
				}
			}
			total[i] += weight / float64(rankConstant+1+len(better))
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(total[b], total[a]) })
	fused := make([]datum.Value, len(rows))
	for i, at := range order {
		fused[i] = rows[at]
	}
	return fused
}
