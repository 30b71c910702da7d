package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/expose"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// Result is what came of applying a Graph.
type Result struct {
	// Running is the Graph that HAProxy serves: the last one that was applied, nil before the first.
	Running *graph.Graph
	// LeftOut says what of an object HAProxy does not serve although the Graph says so, and why, by owner.
	LeftOut map[model.Owner]string
	// Exposures are what the cluster gives the Gateways so that clients arrive; nil where HAProxy binds their own addresses.
	Exposures map[types.NamespacedName]expose.Exposure
	// Problem says why HAProxy does not serve the latest Graph; "" if it does.
	Problem string
	// Lagging says of each Gateway that not all replicas serve why, by its UID.
	Lagging map[string]string
	// Features are what our classes publish. They stay the same.
	Features []gatewayv1.SupportedFeature
	// Now is the time at which certificates have expired or not; without it, none has.
	Now time.Time
}

// Computer computes Updates, and remembers them to save work: a fresh one computes equal ones. An Update that did not
// change keeps its pointer. It is used by one goroutine.
type Computer struct {
	controller gatewayv1.GatewayController
	last       memory
}

// NewComputer returns a Computer for the controller of that name.
func NewComputer(controllerName string) *Computer {
	return &Computer{controller: gatewayv1.GatewayController(controllerName)}
}

// Compute returns the status of every object in a Graph, in the Graph's order.
func Compute(controllerName string, g *graph.Graph, r Result) []*Update {
	return NewComputer(controllerName).Compute(g, r)
}

// Compute returns the status of every object in a Graph, in the Graph's order: classes, Gateways, ListenerSets, routes, what is
// reported by ancestor, others.
func (c *Computer) Compute(g *graph.Graph, r Result) []*Update {
	now := memory{
		classes:  make(map[*graph.GatewayClass]*Update, len(g.Classes)),
		gateways: make(map[*graph.Gateway]gatewayMemory, len(g.Gateways)),
		sets:     make(map[*graph.ListenerSet]setMemory, len(g.ListenerSets)),
		reported: make(map[*graph.Reported]*Update, len(g.Reported)),
		others:   make(map[*graph.Other]*Update, len(g.Others)),
	}
	updates := make([]*Update, 0,
		len(g.Classes)+len(g.Gateways)+len(g.ListenerSets)+len(g.Routes)+len(g.Reported)+len(g.Others))
	for _, class := range g.Classes {
		update := c.last.classes[class]
		if update == nil {
			update = classUpdate(class, r.Features)
		}
		now.classes[class] = update
		updates = append(updates, update)
	}
	for _, gateway := range g.Gateways {
		input := gatewayInputOf(g, gateway, r)
		memory := c.last.gateways[gateway]
		if memory.update == nil || !memory.input.equal(input) {
			memory = gatewayMemory{input, gatewayUpdate(gateway, input)}
		}
		now.gateways[gateway] = memory
		updates = append(updates, memory.update)
	}
	for _, set := range g.ListenerSets {
		input := setInputOf(g, set, now.gateways[set.Gateway], r)
		memory := c.last.sets[set]
		if memory.update == nil || !memory.input.equal(input) {
			memory = setMemory{input, setUpdate(set, input)}
		}
		now.sets[set] = memory
		updates = append(updates, memory.update)
	}
	now.routes = c.routes(g, r)
	updates = append(updates, now.routes.updates...)
	for _, object := range g.Reported {
		update := c.last.reported[object]
		if update == nil {
			update = c.reportedUpdate(object)
		}
		now.reported[object] = update
		updates = append(updates, update)
	}
	for _, other := range g.Others {
		update := c.last.others[other]
		if update == nil {
			update = c.otherUpdate(other)
		}
		now.others[other] = update
		updates = append(updates, update)
	}
	c.last = now
	return updates
}

// memory is what was computed last, and of what.
type memory struct {
	classes  map[*graph.GatewayClass]*Update
	gateways map[*graph.Gateway]gatewayMemory
	sets     map[*graph.ListenerSet]setMemory
	routes   routesMemory
	reported map[*graph.Reported]*Update
	others   map[*graph.Other]*Update
}

type gatewayMemory struct {
	input  gatewayInput
	update *Update
}

func classUpdate(class *graph.GatewayClass, features []gatewayv1.SupportedFeature) *Update {
	return &Update{
		Object: Object{gatewayv1.GroupVersion.String(), "GatewayClass", "", class.Source.Name},
		Status: Status{Class: &gatewayv1.GatewayClassStatus{
			Conditions: slices.Clone(class.Conditions), SupportedFeatures: features,
		}},
	}
}

// withCondition puts a condition in the place of the one of its type, or at the end.
func withCondition(list []metav1.Condition, c metav1.Condition) []metav1.Condition {
	for i := range list {
		if list[i].Type == c.Type {
			list[i] = c
			return list
		}
	}
	return append(list, c)
}

func find(list []metav1.Condition, kind string) (metav1.Condition, bool) {
	at := slices.IndexFunc(list, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 {
		return metav1.Condition{}, false
	}
	return list[at], true
}
