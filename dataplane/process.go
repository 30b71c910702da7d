package dataplane

import (
	"context"

	"github.com/limpet-gateway/limpet/dataplane/haproxy"
)

// process is the HAProxy that is driven: our own (haproxy.Process), or that of another container (haproxy.Neighbour).
type process interface {
	// Find looks whether it runs; then it is known.
	Find(ctx context.Context) (bool, error)
	// Alive tells whether the known one still runs.
	Alive() bool
	// PID is the master's number, and Incarnation changes whenever HAProxy was started anew; 0 if none is known.
	PID() int
	Incarnation() uint64
	// Start makes it run with the current generation, or is haproxy.ErrAbsent where that is another one's work.
	Start(ctx context.Context) error
	// Reload makes it serve the current generation, and Settled tells whether no reload is under way.
	Reload(ctx context.Context) error
	Settled(ctx context.Context) bool
	// Busy tells whether one that could not be reached may only be busy, and Reached that it was reached.
	Busy(err error) bool
	Reached()
	// Stop ends it softly, Forget lets go of it.
	Stop(ctx context.Context) error
	Forget()
	TrimLog()
}

func newProcess(o Options) (process, error) {
	if o.Neighbour {
		return haproxy.NewNeighbour(o.Dir, o.Logger)
	}
	return haproxy.NewProcess(o.Binary, o.Dir, o.Logger)
}
