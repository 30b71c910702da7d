// Command bench measures what Limpet's rules cost HAProxy and how long a change takes, and reports ratios within one run.
//
// It starts HAProxys of its own on loopback, loads them with wrk in turns, and divides the CPU time that each used by the
// requests that it answered; a bare time on a shared machine says little. It exits 1 when a ratio is over its limit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often each subject is measured, in turns")
	span := flag.Duration("time", 2*time.Second, "how long each measurement lasts")
	routes := flag.Int("routes", 5000, "routes in the large configuration")
	only := flag.Bool("filters", false, "measure filters alone")
	changes := flag.Int("changes", 60, "how many changes of each kind are timed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options{*rounds, *span, *routes, *changes, *only}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds  int
	span    time.Duration
	routes  int
	changes int
	// filters alone are measured.
	filters bool
}

// run measures everything and returns an error that names each ratio that is over its limit.
func run(ctx context.Context, o options) error {
	lab, err := newLab()
	if err != nil {
		return err
	}
	defer lab.close()
	if o.filters {
		return measureFilters(ctx, lab, o)
	}
	var report report
	if err := measureChange(ctx, lab, o, &report); err != nil {
		return err
	}
	if err := measureCPU(ctx, lab, o, &report); err != nil {
		return err
	}
	if err := measureFilters(ctx, lab, o); err != nil {
		return err
	}
	return report.verdict()
}
