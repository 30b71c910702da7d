package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// route is what one route adds to the Config, remembered so that it can be taken back.
type route struct {
	source *graph.Route
	owner  model.Owner
	// rank is its place among all routes, the only order that breaks ties: the graph has put the oldest first.
	rank     int
	hosts    []*virtualHost
	entries  []*pathEntry
	rules    map[string]*model.Rule
	backends []backendVariant
	// way is what fill makes variants of backends for; empty where they do not differ.
	way way
}

// compareRoutes tells which routes are gone and which ones are new, by comparing the pointers of the last Graph's routes and
// this one's in what the two lists have between an equal beginning and an equal end. A route that was overtaken by another
// one is gone and new: its precedence changed. Ranks are brought up to date.
func compareRoutes(last []*graph.Route, old []*route, sources []*graph.Route) (next, gone, fresh []*route) {
	head, tail := equalEnds(last, sources)
	if head == len(last) && head == len(sources) {
		return old, nil, nil
	}
	middle := old[head : len(old)-tail]
	known := make(map[*graph.Route]*route, len(middle))
	for _, r := range middle {
		known[r.source] = r
	}
	next = make([]*route, len(sources))
	copy(next, old[:head])
	copy(next[len(sources)-tail:], old[len(old)-tail:])
	highest := -1
	for i, source := range sources[head : len(sources)-tail] {
		r := known[source]
		if r != nil && r.rank > highest {
			highest = r.rank
			delete(known, source)
		} else {
			r = &route{source: source, owner: routeOwner(source)}
			fresh = append(fresh, r)
		}
		next[head+i] = r
	}
	for _, r := range middle {
		if known[r.source] == r {
			gone = append(gone, r)
		}
	}
	giveRanks(next, head, tail, len(next) != len(old))
	return next, gone, fresh
}

// giveRanks numbers the routes between the equal ends, and those behind only if they moved.
func giveRanks(routes []*route, head, tail int, moved bool) {
	end := len(routes)
	if !moved {
		end -= tail
	}
	for i := head; i < end; i++ {
		routes[i].rank = i
	}
}

// equalEnds returns how many routes two lists have in common at their beginning and, behind that, at their end.
func equalEnds(a, b []*graph.Route) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && a[head] == b[head] {
		head++
	}
	for tail < shorter-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// add puts a route into everything that it is part of. One that no serving listener takes adds nothing.
func (t *Translator) add(r *route, changed *changes) {
	r.hosts = t.listeners.attach(r.source)
	if len(r.hosts) == 0 {
		return
	}
	r.rules = map[string]*model.Rule{}
	for _, group := range t.byWay(r) {
		matches := r.fill(group.way)
		for _, host := range group.hosts {
			for _, m := range matches {
				r.entries = append(r.entries, t.paths.insert(host.id+m.path, m))
			}
		}
	}
	for id, rule := range r.rules {
		changed.rules[id] = rule
	}
	for _, variant := range r.backends {
		t.backends.use(variant)
	}
}

// way is how a route comes to its backends, where that makes a difference.
type way struct {
	// gateway is the one that shows backends in TLS a client certificate of its own.
	gateway types.NamespacedName
	// passthrough connections are in TLS already, the client's.
	passthrough bool
}

// with is an identity with what the way adds to it.
func (w way) with(id identity) identity {
	if w.gateway.Name != "" {
		id = id.with("gateway", w.gateway.Namespace, w.gateway.Name)
	}
	if w.passthrough {
		id = id.with("passthrough")
	}
	return id
}

// hostGroup is virtual hosts of a route in which its backends are the same variants.
type hostGroup struct {
	way   way
	hosts []*virtualHost
}

// byWay puts the virtual hosts apart that differ in the way from them to the backends.
func (t *Translator) byWay(r *route) []hostGroup {
	var groups []hostGroup
	for _, host := range r.hosts {
		from := way{passthrough: host.listener.passthrough}
		if gateway := host.listener.name.gateway; len(r.source.TLSBackends) > 0 && !from.passthrough && t.certificates[gateway] != nil {
			from.gateway = gateway
		}
		at := slices.IndexFunc(groups, func(g hostGroup) bool { return g.way == from })
		if at < 0 {
			at = len(groups)
			groups = append(groups, hostGroup{way: from})
		}
		groups[at].hosts = append(groups[at].hosts, host)
	}
	return groups
}

// remove takes back what add did.
func (t *Translator) remove(r *route, changed *changes) {
	for id := range r.rules {
		changed.rules[id] = nil
	}
	for _, variant := range r.backends {
		t.backends.release(variant)
	}
	for _, entry := range r.entries {
		t.paths.drop(entry, r)
	}
	for _, host := range r.hosts {
		t.listeners.release(host)
	}
}
