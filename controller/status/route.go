package status

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// routesMemory is what was computed last: of each node, from what was left out of it, an update.
type routesMemory struct {
	nodes   []*graph.Route
	leftOut []string
	updates []*Update
}

func (c *Computer) routes(g *graph.Graph, r Result) routesMemory {
	last := c.last.routes
	now := routesMemory{g.Routes, make([]string, len(g.Routes)), make([]*Update, len(g.Routes))}
	before := positions{list: last.nodes}
	for i, route := range g.Routes {
		if len(r.LeftOut) > 0 {
			now.leftOut[i] = routeLeftOut(route, r.LeftOut)
		}
		if at := before.find(route); at >= 0 && last.leftOut[at] == now.leftOut[i] {
			now.updates[i] = last.updates[at]
		} else {
			now.updates[i] = c.routeUpdate(route, now.leftOut[i])
		}
	}
	return now
}

// positions finds nodes in a list, when most are asked for in its order.
type positions struct {
	list []*graph.Route
	next int
	all  map[*graph.Route]int
}

// find returns where the node is in the list, -1 if it is not.
func (p *positions) find(node *graph.Route) int {
	for at := p.next; at < min(p.next+2, len(p.list)); at++ {
		if p.list[at] == node {
			p.next = at + 1
			return at
		}
	}
	if p.next < len(p.list) && p.list[p.next].Key() == node.Key() {
		p.next++ // It is this one's successor.
		return -1
	}
	if p.all == nil {
		p.all = make(map[*graph.Route]int, len(p.list))
		for at, listed := range p.list {
			p.all[listed] = at
		}
	}
	if at, there := p.all[node]; there {
		p.next = at + 1
		return at
	}
	return -1
}

// routeLeftOut is what HAProxy refused of a route, or of a Service that it leads to.
func routeLeftOut(route *graph.Route, leftOut map[model.Owner]string) string {
	var all []string
	if why := leftOut[model.Owner(route.Kind+" "+route.Key().String())]; why != "" {
		all = append(all, why)
	}
	for _, rule := range route.Rules {
		for key := range rule.Reached() {
			backend := key.Kind + " " + key.Namespace + "/" + key.Name
			if why := leftOut[model.Owner(backend)]; why != "" && !slices.Contains(all, backend+": "+why) {
				all = append(all, backend+": "+why)
			}
		}
	}
	return strings.Join(all, "; ")
}

func (c *Computer) routeUpdate(route *graph.Route, leftOut string) *Update {
	state := &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{}}
	for _, parent := range route.Parents {
		state.Parents = append(state.Parents, gatewayv1.RouteParentStatus{
			ParentRef:      parent.Ref,
			ControllerName: c.controller,
			Conditions:     routeConditions(parent.Conditions, route.Source.GetGeneration(), leftOut),
		})
	}
	return &Update{
		Object: Object{gatewayv1.GroupVersion.String(), route.Kind, route.Source.GetNamespace(), route.Source.GetName()},
		Status: Status{Route: state},
	}
}

// routeConditions adds what HAProxy refused of an accepted route. Accepted stays as it is: what the route asks for is
// valid, and to deny that would make others act, as those who remove its DNS record.
func routeConditions(of []metav1.Condition, generation int64, leftOut string) []metav1.Condition {
	list := slices.Clone(of)
	accepted, _ := find(list, string(gatewayv1.RouteConditionAccepted))
	if leftOut == "" || accepted.Status != metav1.ConditionTrue {
		return list
	}
	if already, there := find(list, string(gatewayv1.RouteConditionPartiallyInvalid)); there {
		leftOut = strings.TrimPrefix(already.Message, "Dropped Rule: ") + " " + leftOut
	}
	return withCondition(list, conditions.RoutePartiallyInvalid(generation, leftOut))
}
