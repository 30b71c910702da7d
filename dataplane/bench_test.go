package dataplane

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
)

// timed applies a configuration and notes how long that took.
func (l *lab) timed(ctx context.Context, config model.Config, times *[]time.Duration) Result {
	begin := time.Now()
	result := l.engine.Apply(ctx, config)
	*times = append(*times, time.Since(begin))
	return result
}

func reportMedian(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkApplyOnePath changes the entry of one path among many, and shows the time from the configuration in memory
// to HAProxy's last word.
func BenchmarkApplyOnePath(b *testing.B) {
	for _, routes := range []int{100, 5000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			l, _ := servingMany(b, routes)
			ctx := context.Background()
			var times []time.Duration
			defer func() { reportMedian(b, times) }()
			for i := 0; b.Loop(); i++ {
				l.route(fmt.Sprintf("host-%d", routes/2), []string{"one", "two"}[i%2])
				if got := l.timed(ctx, l.config, &times); got.Err != nil || got.Reloaded || i > 0 && got.Commands != 1 {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}

// BenchmarkApplyNewRoute adds a backend with three endpoints and a route to it, and removes them.
func BenchmarkApplyNewRoute(b *testing.B) {
	for _, routes := range []int{100, 5000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			l, _ := servingMany(b, routes)
			ctx := context.Background()
			one, two, three := l.endpoint("x", 1), l.endpoint("y", 2), l.endpoint("z", 3)
			var times []time.Duration
			defer func() { reportMedian(b, times) }()
			for b.Loop() {
				l.backend("new", one, two, three)
				l.route("new", "new")
				if got := l.timed(ctx, l.config, &times); got.Err != nil || got.Reloaded {
					b.Fatalf("%+v", got)
				}
				b.StopTimer()
				l.backend("new")
				l.route("new", "")
				if got := l.engine.Apply(ctx, l.config); got.Err != nil || got.Reloaded {
					b.Fatalf("%+v", got)
				}
				b.StartTimer()
			}
		})
	}
}

func servingMany(t testing.TB, routes int) (*lab, string) {
	t.Helper()
	l, address := serving(t)
	for i := range routes {
		l.route(fmt.Sprintf("host-%d", i), "one")
	}
	l.apply()
	return l, address
}
