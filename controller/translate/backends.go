package translate

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// maxServerID is the largest id that a server can have.
const maxServerID = math.MaxInt32

// backendVariant is a backend and how it is spoken to, where that is not the backend's own matter alone: each variant is
// an entry of Config.Backends. It must stay small: what differs between two of its values costs a slot.
type backendVariant struct {
	key graph.BackendKey
	// http2 is what a GRPCRoute infers for its backends: "Implementations MAY infer the protocol from the Route type".
	http2 bool
	// tcp is for routes at layer 4, passthrough if the client's TLS goes through to the backend.
	tcp, passthrough bool
	retry            model.Retry
	// gateway is the one whose client certificate a backend in TLS is shown; empty where none is.
	gateway types.NamespacedName
}

// unavailable is a backend that never has an endpoint.
var unavailable = backendVariant{key: graph.BackendKey{Kind: "Unavailable"}}

// name is how people know the variant, and its key: rules that ask for the same share it.
func (v backendVariant) name() string {
	name := backendName(v.key)
	switch {
	case v.http2:
		name += " http2"
	case v.passthrough:
		name += " passthrough"
	case v.tcp:
		name += " tcp"
	}
	if v.retry.Set {
		name += " retry " + strconv.Itoa(v.retry.Attempts)
	}
	if v.retry.Codes != "" {
		name += " on " + v.retry.Codes
	}
	if v.retry.Timeouts {
		name += " after timeouts"
	}
	if v.gateway.Name != "" {
		name += " for Gateway " + v.gateway.String()
	}
	return name
}

// backends are those that routes use, each with the number of routes that do.
type backends struct {
	byVariant map[backendVariant]*usedBackend
	// bySource finds those of a Service, by its key with port 0, or of an XBackend.
	bySource map[graph.BackendKey][]*usedBackend
	// inUse are all of them, side by side: to walk them is quicker than to walk a map.
	inUse []*usedBackend
	// touched are those that came into use or out of it since the last settle.
	touched []*usedBackend
}

type usedBackend struct {
	backendVariant

	// id is the variant's name.
	id    string
	users int
	// place is where it stands in inUse.
	place int
	// source and certificate are what the last Config's entry was made from; made says that there is one.
	source      *graph.Backend
	certificate *graph.Certificate
	made        bool
	// held is what the entry refers to.
	held holding
}

func (u *usedBackend) origin() graph.BackendKey {
	return graph.BackendKey{Kind: u.key.Kind, Namespace: u.key.Namespace, Name: u.key.Name}
}

// backendSource is where backends come from: a Graph.
type backendSource interface {
	Backend(graph.BackendKey) *graph.Backend
}

func newBackends() backends {
	return backends{byVariant: map[backendVariant]*usedBackend{}, bySource: map[graph.BackendKey][]*usedBackend{}}
}

// use counts a route that uses the backend.
func (b *backends) use(variant backendVariant) {
	used := b.byVariant[variant]
	if used == nil {
		used = &usedBackend{backendVariant: variant, id: variant.name(), place: len(b.inUse)}
		b.byVariant[variant] = used
		b.inUse = append(b.inUse, used)
		b.bySource[used.origin()] = append(b.bySource[used.origin()], used)
		b.touched = append(b.touched, used)
	}
	used.users++
}

// release ends a use.
func (b *backends) release(variant backendVariant) {
	used := b.byVariant[variant]
	if used.users--; used.users == 0 {
		b.touched = append(b.touched, used)
	}
}

// backendMaker makes the model's backends, with what they refer to.
type backendMaker struct {
	namer  namer
	source backendSource
	// certificates are those that Gateways show to backends.
	certificates map[types.NamespacedName]*graph.Certificate
	credentials  *credentials
	changed      *changes
}

// settle drops the backends that nobody uses any more, and makes those that are new or whose graph.Backend changed. It
// looks at the Services and XBackends that may have changed, or at all if suspects is nil.
func (b *backends) settle(maker *backendMaker, suspects iter.Seq[graph.BackendKey]) {
	for _, used := range b.touched {
		if used.users == 0 {
			b.drop(used)
			maker.drop(used)
		} else {
			maker.refresh(used)
		}
	}
	b.touched = b.touched[:0]
	if suspects == nil {
		for _, used := range b.inUse {
			maker.refresh(used)
		}
		return
	}
	for origin := range suspects {
		for _, used := range b.bySource[origin] {
			maker.refresh(used)
		}
	}
}

func (b *backends) drop(used *usedBackend) {
	delete(b.byVariant, used.backendVariant)
	last := b.inUse[len(b.inUse)-1]
	b.inUse[used.place], last.place = last, used.place
	b.inUse = b.inUse[:len(b.inUse)-1]
	rest := slices.DeleteFunc(b.bySource[used.origin()], func(other *usedBackend) bool { return other == used })
	if b.bySource[used.origin()] = rest; len(rest) == 0 {
		delete(b.bySource, used.origin())
	}
}

func (m *backendMaker) drop(used *usedBackend) {
	set(&m.changed.backends, used.id, nil)
	m.credentials.release(used.held, m.changed)
}

// refresh makes the backend anew if the graph did, or has another certificate for it.
func (m *backendMaker) refresh(used *usedBackend) {
	now, certificate := m.source.Backend(used.key), m.certificates[used.gateway]
	if used.made && used.source == now && used.certificate == certificate {
		return
	}
	used.source, used.certificate, used.made = now, certificate, true
	made, held := m.namer.backend(used, now), holding{}
	if made.TLS != nil {
		held = backendHolding(now, certificate)
	}
	set(&m.changed.backends, used.id, made)
	m.credentials.hold(held, m.changed)
	m.credentials.release(used.held, m.changed)
	used.held = held
}

// backend is the model's. One that the graph does not know (any more) has no endpoint: 503, until the route says so too.
func (n namer) backend(used *usedBackend, source *graph.Backend) *model.Backend {
	b := &model.Backend{Name: used.id, Owner: backendOwner(used.key), TCP: used.tcp, HTTP2: used.http2, Retry: used.retry}
	if source == nil || source.Untrusted && !used.passthrough {
		return b
	}
	b.Endpoints = n.endpoints(source.Endpoints)
	b.External = source.External
	b.HTTP2 = !used.tcp && (used.http2 || source.HTTP2)
	if !used.passthrough { // else it is the client that speaks TLS to the backend
		b.TLS = backendTLS(source.TLS, used.certificate)
	}
	return b
}

// endpoints are sorted by name, so that their order says nothing and does not depend on that of the slices. A name occurs
// once; of two with the same, the one that takes new sessions counts.
func (n namer) endpoints(source []graph.Endpoint) []model.Endpoint {
	if len(source) == 0 {
		return nil
	}
	all := make([]model.Endpoint, 0, len(source))
	for i := range source {
		name, id := n.endpoint(&source[i])
		all = append(all, model.Endpoint{
			Name: name, ID: id, Address: source[i].Address, Draining: source[i].Draining, Display: display(&source[i]),
		})
	}
	slices.SortFunc(all, func(a, b model.Endpoint) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), compareBool(a.Draining, b.Draining), a.Address.Compare(b.Address))
	})
	all = slices.CompactFunc(all, func(a, b model.Endpoint) bool { return a.Name == b.Name })
	giveIDs(all)
	return all
}

// giveIDs makes ids unique: in the order of the names, each takes the next that is free.
func giveIDs(endpoints []model.Endpoint) {
	taken := make(map[int32]bool, len(endpoints))
	for i := range endpoints {
		id := endpoints[i].ID
		for taken[id] {
			id = id%maxServerID + 1
		}
		taken[id] = true
		endpoints[i].ID = id
	}
}

func display(e *graph.Endpoint) string {
	if e.Pod.Name != "" {
		return "pod " + e.Pod.String()
	}
	return e.Address.String()
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
