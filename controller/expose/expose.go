// Package expose says what the cluster must hold so that clients arrive at the Gateways, and writes it: container ports in the
// table of Limpet's own namespace, a Service with EndpointSlices for each Gateway, a headless Service for each XBackend.
//
// A graph.Graph and the Snapshot that it was made from come in. Compute gives the changes that lead from what is there to
// what must be, and the addresses that each Gateway has; it is pure. Writer makes the changes: every replica can, the leader
// at once. It must never touch what is not ours, take the last address of a Gateway away, or let one tenant's object have
// a say in what another one's is.
package expose

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// HAProxyContainer is HAProxy's in our pods.
const HAProxyContainer = "haproxy"

// Options are what is computed besides from objects.
type Options struct {
	// Namespace is Limpet's own, PortsConfigMap the name of the table in it, and Pod this replica's pod.
	Namespace, PortsConfigMap, Pod string
	// ServiceType is that of Gateways' Services; ClusterIP by default.
	ServiceType corev1.ServiceType
	// Container is the one whose readiness says whether a pod takes traffic; HAProxyContainer by default.
	Container string
}

// Wanted is what the cluster must hold.
type Wanted struct {
	// Changes lead from what a Snapshot has to what must be, in the order in which they are to be made.
	Changes []Change
	// Exposures are the addresses of every Gateway of the Graph.
	Exposures map[types.NamespacedName]Exposure
	// Rank is this replica's place among those that are ready, from 0; Others is how many of those there are besides it.
	Rank, Others int
}

// Change is one object to write or delete.
type Change struct {
	Verb Verb
	// Object is what is to be, or to be deleted.
	Object client.Object
	// Owner is whose the object must be to be touched.
	Owner types.UID
	// Gateway is told if it fails; none for what belongs to no Gateway.
	Gateway types.NamespacedName
	// First says that the table was never seen: another replica may know what it held.
	First bool
}

// Verb is what to do with the object of a Change.
type Verb string

// Put creates or corrects an object, Delete deletes it. PutOne creates one with a generated name, if none is there.
const (
	Put    Verb = "put"
	PutOne Verb = "put one"
	Delete Verb = "delete"
)

// Key tells a Change from others: its object.
func (c Change) Key() string {
	return kindOf(c.Object) + " " + c.Object.GetNamespace() + "/" + c.Object.GetName() + c.Object.GetGenerateName()
}

func kindOf(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// Computer computes what the cluster must hold, and remembers the last answer while nothing it depends on changes. It is
// used by one goroutine.
type Computer struct {
	options Options
	graph   *graph.Graph
	last    cluster.Snapshot
	wanted  *Wanted
}

// NewComputer returns a Computer that remembers nothing.
func NewComputer(options Options) *Computer { return &Computer{options: options.withDefaults()} }

func (o Options) withDefaults() Options {
	if o.ServiceType == "" {
		o.ServiceType = corev1.ServiceTypeClusterIP
	}
	if o.Container == "" {
		o.Container = HAProxyContainer
	}
	return o
}

// Compute says what the cluster must hold for a Graph, given the Snapshot that it was made from.
func (c *Computer) Compute(g *graph.Graph, s cluster.Snapshot, now time.Time) *Wanted {
	if c.graph == nil || !c.same(g, s) {
		c.wanted = Compute(g, s, c.options, now)
	}
	c.graph, c.last = g, s
	return c.wanted
}

func (c *Computer) same(g *graph.Graph, s cluster.Snapshot) bool {
	return slices.Equal(c.graph.Gateways, g.Gateways) && slices.Equal(c.graph.Reported, g.Reported) && c.last.Ports == s.Ports &&
		c.last.Replicas.Same(s.Replicas) && c.last.Exposed.Same(s.Exposed) && c.last.Gateways.Same(s.Gateways) &&
		c.last.XBackends.Same(s.XBackends)
}

// Compute says what the cluster must hold for a Graph, given the Snapshot that it was made from. It is pure.
func Compute(g *graph.Graph, s cluster.Snapshot, options Options, now time.Time) *Wanted {
	c := &computation{graph: g, snapshot: s, options: options.withDefaults(), now: now, keep: make(map[types.UID]map[string]bool)}
	c.wanted = &Wanted{Exposures: make(map[types.NamespacedName]Exposure, len(g.Gateways))}
	c.wanted.Rank, c.wanted.Others = c.rank()
	c.replicas = c.readReplicas()
	unplaced := c.ports()
	for _, gateway := range g.Gateways {
		c.wanted.Exposures[gateway.Key()] = c.gateway(gateway, unplaced[gateway])
	}
	c.xbackends()
	c.surplus()
	return c.wanted
}

// computation is what one Compute works with.
type computation struct {
	graph    *graph.Graph
	snapshot cluster.Snapshot
	options  Options
	now      time.Time
	replicas []replica
	wanted   *Wanted
	// keep are the names of the objects that are to be, by owner and kind; nil for an owner of whom nothing is deleted.
	keep map[types.UID]map[string]bool
}

func (c *computation) change(change Change) { c.wanted.Changes = append(c.wanted.Changes, change) }

// ours says whether an object belongs to an owner. An ownerReference holds a UID, so that nobody inherits the objects of
// somebody else by his name.
func ours(object metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}
