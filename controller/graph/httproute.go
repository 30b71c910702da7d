package graph

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// routes are all routes of the kinds that are served. What a Graph shows is replaced when it changes, never edited; the rest is the
// Builder's.
type routes struct {
	// shown are those of ours, oldest first; unclaimed the others by name; attached counts accepted routes.
	shown     []*Route
	unclaimed []*Unclaimed
	attached  map[*Listener]int

	states map[objectKey]*routeState
	// dependents leads from an object to the routes whose meaning depends on it.
	dependents map[objectKey]map[objectKey]bool
	claims     claims
	// touched are the backends to which a route leads or led that changed in the last update.
	touched map[objectKey]bool
}

// routeState is what is remembered of one route.
type routeState struct {
	source *routeSource
	// rules are nil while no parent is ours.
	rules *routeRules
	// Either node or unclaimed is set. wanted is node as it would be without routes of the other kind.
	node      *Route
	wanted    *Route
	unclaimed *Unclaimed
	needs     []objectKey
}

// routeInput is what routes are read against.
type routeInput struct {
	gateways   map[types.NamespacedName]*Gateway
	sets       map[types.NamespacedName]*ListenerSet
	namespaces namespaces
	references references
	sessions   map[*gatewayv1.SessionPersistence]*cluster.OldSession
}

func newRoutes() *routes {
	return &routes{
		states:     make(map[objectKey]*routeState),
		dependents: make(map[objectKey]map[objectKey]bool),
		claims:     newClaims(),
	}
}

// update reads the routes that changed, nil for one that is gone, and those that depend on an object that changed.
func (r *routes) update(in *routeInput, sources map[objectKey]*routeSource, changed []objectKey) {
	// The value says whether the rules must be read again, or only the parents.
	dirty := make(map[objectKey]bool)
	for _, key := range changed {
		for name := range r.dependents[key] {
			dirty[name] = dirty[name] || key.kind != kindGateway && key.kind != kindListenerSet && key.kind != kindNamespace
		}
	}
	for name := range sources {
		dirty[name] = true
	}
	r.touched = make(map[objectKey]bool)
	next := make(map[objectKey]*routeState, len(dirty))
	for name, rules := range dirty {
		last := r.states[name]
		if last == nil {
			last = &routeState{}
		}
		source, replaced := sources[name]
		if !replaced {
			source = last.source
		}
		next[name] = newRouteState(in, source, last, rules)
		r.claims.replace(name, last.wanted, next[name].wantedNode())
	}
	r.settle(next)
	edit := routesEdit{routes: r, attached: r.attached}
	for name, state := range next {
		last := r.states[name]
		if last == nil {
			last = &routeState{}
		}
		edit.set(name, last, state)
	}
	edit.finish()
}

// newRouteState returns nil for a route that is gone.
func newRouteState(in *routeInput, source *routeSource, last *routeState, readAgain bool) *routeState {
	if source == nil {
		return nil
	}
	state := &routeState{source: source}
	parents := findParents(in, source)
	for i := range parents {
		state.needs = append(state.needs, parents[i].needs...)
	}
	parents = slices.DeleteFunc(parents, func(p parentDraft) bool { return p.gateway == nil })
	if len(parents) == 0 {
		state.unclaimed = newUnclaimedRoute(source, last.unclaimed)
		return state
	}
	state.rules = last.rules
	if readAgain || state.rules == nil {
		state.rules = readRules(in, source, last.lastRules())
	}
	state.needs = append(state.needs, state.rules.needs...)
	var asked bool
	state.node, asked = newRoute(in, source, parents, state.rules)
	if plain := plainListener(state.node); plain != nil && state.rules.demandSecure() {
		var lastRules []*Rule
		if last.node != nil {
			lastRules = last.node.Rules
		}
		state.node, _ = newRoute(in, source, parents, state.rules.onPlain(plain, lastRules))
	}
	if asked {
		state.needs = append(state.needs, objectKey{kindNamespace, "", source.GetNamespace()})
	}
	if last.wanted != nil {
		state.node = takeOverRoute(state.node, last.wanted)
	}
	state.wanted = state.node
	return state
}

func (s *routeState) wantedNode() *Route {
	if s == nil {
		return nil
	}
	return s.wanted
}

// newRoute also says whether the labels of the route's namespace mattered.
func newRoute(
	in *routeInput, source *routeSource, parents []parentDraft, rules *routeRules,
) (node *Route, asked bool) {
	node = &Route{
		Kind: source.kind, Source: source.Object, Hostnames: rules.hostnames, Rules: rules.rules, TLSBackends: rules.tls,
		NoHostname: len(rules.hostnames) == 0 && len(source.hostnames) > 0,
	}
	for i := range parents {
		parent, askedHere := parents[i].attach(in, source, rules)
		node.Parents = append(node.Parents, parent)
		asked = asked || askedHere
	}
	return node, asked
}

// plainListener returns one that the route attaches to and that speaks plain HTTP.
func plainListener(node *Route) *Listener {
	for _, parent := range node.Parents {
		for _, listener := range parent.Listeners {
			if listener.Protocol == HTTP {
				return listener
			}
		}
	}
	return nil
}

func (s *routeState) lastRules() []*Rule {
	if s.rules == nil {
		return nil
	}
	return s.rules.rules
}

// takeOverRoute keeps what is equal to last time's node: all of it, or single parents. Rules were taken over already.
func takeOverRoute(node, last *Route) *Route {
	for i, parent := range node.Parents {
		if i < len(last.Parents) && sameRouteParent(parent, last.Parents[i]) {
			node.Parents[i] = last.Parents[i]
		}
	}
	if node.Source == last.Source && slices.Equal(node.Hostnames, last.Hostnames) && slices.Equal(node.Rules, last.Rules) &&
		slices.Equal(node.TLSBackends, last.TLSBackends) &&
		slices.Equal(node.Parents, last.Parents) {
		return last
	}
	return node
}

func sameRouteParent(a, b *RouteParent) bool {
	return a.Gateway == b.Gateway && slices.Equal(a.Listeners, b.Listeners) && slices.Equal(a.Blocked, b.Blocked) &&
		reflect.DeepEqual(a.Ref, b.Ref) && slices.Equal(a.Conditions, b.Conditions)
}

func newUnclaimedRoute(source *routeSource, last *Unclaimed) *Unclaimed {
	message := "it has no parentRefs."
	if refs := source.spec.ParentRefs; len(refs) > 0 {
		names := make([]string, len(refs))
		for i := range refs {
			key := parentKey(source, &refs[i])
			names[i] = fmt.Sprintf("%s %s/%s", key.kind, key.namespace, key.name)
		}
		message = "none of its parentRefs leads to a Gateway of ours: " + strings.Join(names, ", ") + "."
	}
	fresh := Unclaimed{Kind: source.kind, Namespace: source.GetNamespace(), Name: source.GetName(), Message: message}
	if last != nil && *last == fresh {
		return last
	}
	return &fresh
}

// routesEdit collects what changes, so that what earlier Graphs show stays as it is.
type routesEdit struct {
	*routes
	removed, added                   []*Route
	removedUnclaimed, addedUnclaimed []*Unclaimed
	attached                         map[*Listener]int
	copied                           bool
}

func (e *routesEdit) set(name objectKey, last, next *routeState) {
	e.depend(name, last.needs, false)
	if next == nil {
		next = &routeState{}
		delete(e.states, name)
	} else {
		e.depend(name, next.needs, true)
		e.states[name] = next
	}
	e.removed, e.added = replace(e.removed, e.added, last.node, next.node)
	e.removedUnclaimed, e.addedUnclaimed = replace(e.removedUnclaimed, e.addedUnclaimed, last.unclaimed, next.unclaimed)
	if last.node != next.node {
		e.touch(last.needs)
		e.touch(next.needs)
		e.count(last.node, -1)
		e.count(next.node, 1)
	}
}

func replace[T any](removed, added []*T, last, next *T) ([]*T, []*T) {
	if last == next {
		return removed, added
	}
	if last != nil {
		removed = append(removed, last)
	}
	if next != nil {
		added = append(added, next)
	}
	return removed, added
}

func (e *routesEdit) depend(name objectKey, needs []objectKey, add bool) {
	for _, key := range needs {
		switch dependents := e.dependents[key]; {
		case !add:
			delete(dependents, name)
			if len(dependents) == 0 {
				delete(e.dependents, key)
			}
		case dependents == nil:
			e.dependents[key] = map[objectKey]bool{name: true}
		default:
			dependents[name] = true
		}
	}
}

// count adds a route to the counts of the listeners that it attaches to, each once.
func (e *routesEdit) count(node *Route, by int) {
	if node == nil {
		return
	}
	if !e.copied {
		e.attached, e.copied = maps.Clone(e.attached), true
		if e.attached == nil {
			e.attached = make(map[*Listener]int)
		}
	}
	seen := make(map[*Listener]bool)
	for _, parent := range node.Parents {
		for _, listener := range parent.Listeners {
			if seen[listener] {
				continue
			}
			seen[listener] = true
			e.attached[listener] += by
			if e.attached[listener] == 0 {
				delete(e.attached, listener)
			}
		}
	}
}

// compareRoutes is the order in which the specification breaks ties. It does not say which of two kinds goes first.
func compareRoutes(a, b *Route) int {
	return cmp.Or(older(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind))
}

func (e *routesEdit) finish() {
	if len(e.removed)+len(e.added) > 0 {
		e.shown = splice(e.shown, e.removed, e.added, compareRoutes)
	}
	if len(e.removedUnclaimed)+len(e.addedUnclaimed) > 0 {
		e.unclaimed = splice(e.unclaimed, e.removedUnclaimed, e.addedUnclaimed, func(a, b *Unclaimed) int {
			return cmp.Or(strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name), cmp.Compare(a.Kind, b.Kind))
		})
	}
	e.routes.attached = e.attached
}
