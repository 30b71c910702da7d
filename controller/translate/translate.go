// Package translate says what the data plane must do: it gives everything its identity, puts matches in the
// specification's order of precedence, and settles splits and sessions.
//
// A graph.Graph comes in, a model.Config goes out, together with the faults that only show when routes meet at one path.
// It is pure: no I/O, no clock, and the Graph is never changed. Translator remembers what it made, so that a call costs
// what changed since the last one; a fresh Translator gives an equal Config, and what did not change keeps its pointer.
// It must never know HAProxy's syntax, never name anything by its place in a list, and never let one route's change move
// another one's sessions.
package translate

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// Options are what a Config depends on besides the Graph.
type Options struct {
	// NamesKey is the key of the hash that endpoints are named by. It is never rotated: a new one ends every session.
	NamesKey []byte
	// TrustedProxies may say who the client is.
	TrustedProxies []netip.Prefix
}

// Translator makes Configs and remembers the last one, so that a call costs what changed. It is used by one goroutine.
type Translator struct {
	namer     namer
	trusted   []netip.Prefix
	gateways  []*graph.Gateway
	listeners listeners
	// sources are the last Graph's routes, routes what was made of each.
	sources  []*graph.Route
	routes   []*route
	paths    paths
	backends backends
	// credentials are those in use, framed what the frame holds of them.
	credentials credentials
	// certificates are those that Gateways show to backends.
	certificates map[types.NamespacedName]*graph.Certificate
	framed       holding
	config       model.Config
	// last is the Graph that config was made from.
	last *graph.Graph
}

// New returns a Translator that remembers nothing.
func New(options Options) *Translator {
	return &Translator{
		namer:    namer{key: slices.Clone(options.NamesKey)},
		trusted:  slices.Clone(options.TrustedProxies),
		paths:    newPaths(),
		backends: newBackends(), credentials: newCredentials(),
	}
}

// Config says what the data plane must do for a Graph.
func (t *Translator) Config(g *graph.Graph) model.Config {
	suspects := t.suspects(g)
	t.last = g
	t.translate(g.Gateways, g.Routes, g, suspects)
	t.config.Frame.HAProxy = haproxy(g.HAProxy)
	return t.config
}

// suspects are the Services and XBackends that may have changed since the last Graph.
func (t *Translator) suspects(g *graph.Graph) iter.Seq[graph.BackendKey] {
	if t.last == nil {
		return slices.Values([]graph.BackendKey(nil)) // every backend is new
	}
	return g.ChangedBackends(t.last)
}

// translate is Config with the Graph in its parts.
func (t *Translator) translate(
	gateways []*graph.Gateway, routes []*graph.Route, source backendSource, suspects iter.Seq[graph.BackendKey],
) model.Config {
	changed := changes{rules: map[string]*model.Rule{}}
	if !slices.Equal(t.gateways, gateways) {
		t.restart(gateways, &changed)
	}
	t.take(routes, &changed)
	t.paths.settle(&changed)
	t.listeners.settle(&changed)
	t.backends.settle(&backendMaker{t.namer, source, t.certificates, &t.credentials, &changed}, suspects)
	changed.apply(&t.config)
	return t.config
}

// restart begins with new listeners. A change of a Gateway costs a full translation, but what comes out equal keeps its
// pointers nevertheless.
func (t *Translator) restart(gateways []*graph.Gateway, changed *changes) {
	t.take(nil, changed)
	t.gateways = slices.Clone(gateways)
	frame, listeners, held := frameOf(gateways, t.trusted)
	t.credentials.release(t.framed, changed)
	t.credentials.hold(held, changed)
	t.framed = held
	t.certificates = clientCertificates(gateways)
	frame.HAProxy = t.config.Frame.HAProxy
	t.config.Frame = keepFrame(t.config.Frame, frame)
	t.listeners = listeners
	changed.everyHost(t.config)
}

// take makes routes the ones that are translated.
func (t *Translator) take(routes []*graph.Route, changed *changes) {
	next, gone, fresh := compareRoutes(t.sources, t.routes, routes)
	for _, r := range gone {
		t.remove(r, changed)
	}
	t.sources, t.routes = routes, next
	for _, r := range fresh {
		t.add(r, changed)
	}
}

// Fault is a part of an object that the last Config leaves out, because of what other objects ask for at the same place.
type Fault struct {
	Owner model.Owner
	// Message says what is left out, why, and what requests get instead.
	Message string
}

// Faults returns those of the last Config, each once, by owner and message.
func (t *Translator) Faults() []Fault {
	faults := t.paths.faults()
	slices.SortFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(faults)
}
