// SPDX-License-Identifier: MIT

// Whether requests take longer because of purge. That is known only by comparison: their
// latency in windows in which purge works, against that in windows in which it rests. A
// machine that is slow by itself is slow in both.

package purge

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// octaveParts is how many classes of latency there are from one power of two to the
	// next, and latencyBuckets how many there are in all.
	octaveParts    = 4
	latencyBuckets = 32 * octaveParts

	// enoughSamples is how many requests with purge, and how many without, it takes to
	// compare them.
	enoughSamples = 50
	// Requests are slow if their 99th percentile with purge is above slower times what it
	// is without.
	slower = 1.3
	// Windows fade: each new one with purge leaves faded of what earlier ones counted, and
	// so does each without.
	faded = 0.6
)

// Traffic counts the requests since the start, and their latencies once they have ended.
type Traffic struct {
	requests atomic.Int64
	latency  [latencyBuckets]atomic.Int64
}

// latencies counts requests by how long they took.
type latencies [latencyBuckets]int64

// Begin records that a request has come.
func (t *Traffic) Begin() { t.requests.Add(1) }

// End records how long a request took.
func (t *Traffic) End(took time.Duration) { t.latency[latencyBucket(took)].Add(1) }

// latencyBucket returns the class of a latency.
func latencyBucket(took time.Duration) int {
	micros := uint64(max(1, took.Microseconds()))
	octave := bits.Len64(micros) - 1
	part := int(micros * octaveParts >> octave & (octaveParts - 1))
	return min(octave*octaveParts+part, latencyBuckets-1)
}

// bucketLatency returns the latency that those of a class are below.
func bucketLatency(i int) time.Duration {
	octave, part := i/octaveParts, i%octaveParts
	return time.Duration((octaveParts+part+1)<<octave) * time.Microsecond / octaveParts
}

func (t *Traffic) latencies() (l latencies) {
	for i := range l {
		l[i] = t.latency[i].Load()
	}
	return l
}

// comparison holds the latencies of requests with purge and without.
type comparison struct{ with, without fading }

// fading counts requests by how long they took; older ones count less.
type fading [latencyBuckets]float64

// add counts the requests of a window.
func (f *fading) add(l, before *latencies) {
	for i := range f {
		f[i] = faded*f[i] + float64(l[i]-before[i])
	}
}

// quantile returns a latency that the given share of the requests did not exceed, and how
// many requests there were.
func (f *fading) quantile(share float64) (time.Duration, float64) {
	var n, seen float64
	for _, v := range f {
		n += v
	}
	rank := math.Ceil(share * n)
	for i, v := range f {
		if seen += v; v > 0 && seen >= rank {
			return bucketLatency(i), n
		}
	}
	return 0, n
}

// slow reports whether requests take longer with purge than without.
func (c *comparison) slow() bool {
	with, n := c.with.quantile(0.99)
	without, m := c.without.quantile(0.99)
	return n >= enoughSamples && m >= enoughSamples && float64(with) > slower*float64(without)
}
