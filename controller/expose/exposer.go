package expose

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// Exposer computes what must be and has it written.
type Exposer struct {
	computer *Computer
	writer   *Writer
	wanted   *Wanted
}

// New returns an Exposer that has done nothing yet.
func New(options Options, writer WriterOptions) *Exposer {
	return &Exposer{computer: NewComputer(options), writer: NewWriter(writer)}
}

// Run writes until ctx ends.
func (e *Exposer) Run(ctx context.Context) { e.writer.Run(ctx) }

// Expose makes a Graph, with the Snapshot that it was made from, the one that clients are to arrive at. It does not wait. It
// is for one goroutine, together with Exposures.
func (e *Exposer) Expose(g *graph.Graph, s cluster.Snapshot) {
	if wanted := e.computer.Compute(g, s, time.Now()); wanted != e.wanted {
		e.wanted = wanted
		e.writer.Take(wanted)
	}
}

// Exposures are the addresses of the Gateways of the last Graph.
func (e *Exposer) Exposures() map[types.NamespacedName]Exposure {
	if e.wanted == nil {
		return nil
	}
	return e.writer.Exposures(e.wanted)
}
