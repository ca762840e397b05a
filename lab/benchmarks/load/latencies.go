package main

import (
	"math"
	"sort"
	"time"
)

// Latencies, in microseconds each.
type latencies []uint32

func (l *latencies) add(elapsed time.Duration) { *l = append(*l, uint32(elapsed/time.Microsecond)) }

// quantileMs is the smallest latency that the given share of all does not exceed, in milliseconds; 0 where there are none.
func (l latencies) quantileMs(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	sort.Slice(l, func(a, b int) bool { return l[a] < l[b] })
	at := int(math.Ceil(share*float64(len(l)))) - 1
	if at < 0 {
		at = 0
	}
	return float64(l[at]) / 1000
}
