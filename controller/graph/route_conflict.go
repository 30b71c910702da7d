package graph

import (
	"fmt"
	"maps"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// "Merging MUST not be done between GRPCRoutes and HTTPRoutes": a hostname on a listener belongs to one of the kinds, as the
// routes spell it. Where the hostname of one is broader than the other's they need not be merged, and both are accepted: the
// more specific one goes first. Of two that have the same one, the older is accepted.

// hostClaim is a hostname of a route, "" for every one, on a listener that it attaches to.
type hostClaim struct {
	listener *Listener
	hostname string
}

// claims are those of all accepted routes.
type claims struct {
	routes map[hostClaim]map[objectKey]bool
	// kinds counts the routes of each kind, mixed are the claims that have both.
	kinds map[hostClaim]map[string]int
	mixed map[hostClaim]bool
	// lost are the routes of which a parent does not take them because of a claim.
	lost map[objectKey]bool
}

func newClaims() claims {
	return claims{
		routes: make(map[hostClaim]map[objectKey]bool), kinds: make(map[hostClaim]map[string]int),
		mixed: make(map[hostClaim]bool), lost: make(map[objectKey]bool),
	}
}

// claimsOf are those that a route has through one of its parents.
func (r *Route) claimsOf(parent *RouteParent) []hostClaim {
	hostnames := r.Hostnames
	if len(hostnames) == 0 {
		hostnames = []string{""}
	}
	var all []hostClaim
	for _, listener := range parent.Listeners {
		for _, hostname := range hostnames {
			if hostname == "" || hostnamesIntersect(listener.Hostname, hostname) {
				all = append(all, hostClaim{listener, hostname})
			}
		}
	}
	return all
}

// replace counts a route's claims anew. Most routes that change keep theirs.
func (c *claims) replace(name objectKey, last, next *Route) {
	for _, route := range []*Route{last, next} {
		if route == nil {
			continue
		}
		for _, parent := range route.Parents {
			for _, claimed := range route.claimsOf(parent) {
				c.set(claimed, name, route == next)
			}
		}
	}
}

func (c *claims) set(at hostClaim, name objectKey, add bool) {
	if c.routes[at][name] == add {
		return
	}
	if c.routes[at] == nil {
		c.routes[at], c.kinds[at] = make(map[objectKey]bool), make(map[string]int)
	}
	if add {
		c.routes[at][name] = true
		c.kinds[at][name.kind]++
	} else {
		delete(c.routes[at], name)
		c.kinds[at][name.kind]--
	}
	if c.kinds[at][KindHTTPRoute] > 0 && c.kinds[at][KindGRPCRoute] > 0 {
		c.mixed[at] = true
	} else {
		delete(c.mixed, at)
	}
	if len(c.routes[at]) == 0 {
		delete(c.routes, at)
		delete(c.kinds, at)
	}
}

// settle shows the nodes of routes that share a hostname with the other kind as they are, and those of routes that did so
// before. next holds the states that changed; it gets those of others whose claims are lost or won.
func (r *routes) settle(next map[objectKey]*routeState) {
	if len(r.claims.mixed)+len(r.claims.lost) == 0 {
		return
	}
	state := func(name objectKey) *routeState {
		if changed, isChanged := next[name]; isChanged {
			return changed
		}
		return r.states[name]
	}
	contenders := maps.Clone(r.claims.lost)
	for at := range r.claims.mixed {
		for name := range r.claims.routes[at] {
			contenders[name] = true
		}
	}
	r.claims.lost = make(map[objectKey]bool)
	owners := make(map[hostClaim]*Route)
	for _, name := range byAge(contenders, state) {
		old := state(name)
		node := contested(old.wanted, owners)
		if node != old.wanted {
			r.claims.lost[name] = true
		}
		if last := r.states[name]; node != old.wanted && last != nil && last.node != nil {
			node = takeOverRoute(node, last.node)
		}
		if node != old.node {
			changed := *old
			changed.node = node
			next[name] = &changed
		}
	}
}

// byAge sorts the routes that are still there and ours, the oldest first.
func byAge(names map[objectKey]bool, state func(objectKey) *routeState) []objectKey {
	var all []objectKey
	for name := range names {
		if s := state(name); s != nil && s.wanted != nil {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b objectKey) int { return compareRoutes(state(a).wanted, state(b).wanted) })
	return all
}

// contested is the route with what its parents say when older routes own their claims; those that nobody does become its own.
func contested(wanted *Route, owners map[hostClaim]*Route) *Route {
	node := *wanted
	node.Parents = slices.Clone(wanted.Parents)
	lost := false
	for i, parent := range node.Parents {
		mine := wanted.claimsOf(parent)
		at := slices.IndexFunc(mine, func(c hostClaim) bool { return owners[c] != nil && owners[c].Kind != wanted.Kind })
		if at >= 0 {
			node.Parents[i], lost = refusedParent(wanted, parent, mine[at], owners[mine[at]]), true
			continue
		}
		for _, claimed := range mine {
			if owners[claimed] == nil {
				owners[claimed] = wanted
			}
		}
	}
	if !lost {
		return wanted
	}
	return &node
}

// refusedParent names the other route only to who may see it.
func refusedParent(route *Route, parent *RouteParent, lost hostClaim, owner *Route) *RouteParent {
	other := "an older " + owner.Kind
	if owner.Source.GetNamespace() == route.Source.GetNamespace() {
		other = owner.Kind + " " + owner.Key().String() + ", which is older,"
	}
	hostname := fmt.Sprintf("the hostname %q", lost.hostname)
	if lost.hostname == "" {
		hostname = "every hostname"
	}
	refused := &RouteParent{Ref: parent.Ref, Gateway: parent.Gateway, Conditions: slices.Clone(parent.Conditions)}
	for i := range refused.Conditions {
		if refused.Conditions[i].Type == string(gatewayv1.RouteConditionAccepted) {
			refused.Conditions[i] = conditions.RouteNotAccepted(route.Source.GetGeneration(), conditions.RouteReasonHostnameConflict,
				fmt.Sprintf("%s has %s on listener %q too, and HTTPRoutes and GRPCRoutes do not share one: give the route another "+
					"hostname, or use one kind for both.", other, hostname, lost.listener.Name))
		}
	}
	refused.Conditions = slices.DeleteFunc(refused.Conditions, conditions.IsPartiallyInvalid)
	return refused
}
