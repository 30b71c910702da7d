package graph

import (
	"net/netip"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// DefaultControllerName is the controllerName of the GatewayClasses that are ours.
const DefaultControllerName = "limpet.dev/gateway-controller"

// Options are what a Graph depends on besides the objects.
type Options struct {
	// ControllerName is what a GatewayClass must name to be ours; DefaultControllerName if empty.
	ControllerName string
	// DefaultAddress is what a Gateway without spec.addresses binds; 127.0.0.1 if not set.
	DefaultAddress netip.Addr
	// PortOffset is added to every listener's port to give the port that is bound.
	PortOffset int
}

// Builder makes Graphs and remembers the last one, so that a Build costs what changed. It is used by one goroutine.
type Builder struct {
	options Options
}

// NewBuilder returns a Builder that remembers nothing.
func NewBuilder(options Options) *Builder {
	if options.ControllerName == "" {
		options.ControllerName = DefaultControllerName
	}
	if !options.DefaultAddress.IsValid() {
		options.DefaultAddress = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return &Builder{options: options}
}

// Build says what the objects of a Snapshot mean.
func (b *Builder) Build(cluster.Snapshot) *Graph {
	return &Graph{backends: &backends{}}
}
