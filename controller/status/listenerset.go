package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// setInput is everything besides the node that a ListenerSet's status depends on.
type setInput struct {
	// gateway is the same for all sets of a Gateway, but for its listeners, which are the set's own.
	gateway gatewayInput
	// programmed is what the Gateway's condition of that type says.
	programmed metav1.Condition
}

func (i setInput) equal(o setInput) bool {
	return i.gateway.equal(o.gateway) && i.programmed == o.programmed
}

type setMemory struct {
	input  setInput
	update *Update
}

func setInputOf(g *graph.Graph, set *graph.ListenerSet, gateway gatewayMemory, r Result) setInput {
	input := setInput{gateway: gateway.input}
	input.gateway.listeners = nil
	for _, listener := range set.Listeners {
		input.gateway.listeners = append(input.gateway.listeners, listenerInputOf(g, listener, r))
	}
	input.programmed, _ = find(gateway.update.Status.Gateway.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	return input
}

func setUpdate(set *graph.ListenerSet, input setInput) *Update {
	state := &gatewayv1.ListenerSetStatus{Conditions: setConditions(set, input)}
	for i, listener := range set.Listeners {
		state.Listeners = append(state.Listeners, gatewayv1.ListenerEntryStatus{
			Name:           gatewayv1.SectionName(listener.Name),
			SupportedKinds: append([]gatewayv1.RouteGroupKind{}, listener.SupportedKinds...),
			AttachedRoutes: int32(input.gateway.listeners[i].attached),
			Conditions:     listenerConditions(listener, input.gateway, input.gateway.listeners[i]),
		})
	}
	return &Update{
		Object: Object{gatewayv1.GroupVersion.String(), "ListenerSet", set.Source.Namespace, set.Source.Name},
		Status: Status{Set: state},
	}
}

// setConditions adds what only applying can tell: whether a valid set is programmed. It is while one of its listeners is
// served; but not while its Gateway is not programmed (GEP-1713).
func setConditions(set *graph.ListenerSet, input setInput) []metav1.Condition {
	list := slices.Clone(set.Conditions)
	if !set.Valid {
		return list
	}
	generation := set.Source.Generation
	out := notServed(set.Listeners, input.gateway.listeners)
	switch {
	case input.programmed.Status != metav1.ConditionTrue:
		return withCondition(list, conditions.ListenerSetNotProgrammed(generation, conditions.ListenerSetReasonParentNotProgrammed,
			"The Gateway is not programmed: "+input.programmed.Message))
	case out.all:
		return withCondition(list, conditions.ListenerSetNotProgrammed(generation, gatewayv1.ListenerSetReasonInvalid,
			"None of its listeners is served. "+out.why))
	}
	programmed := conditions.ListenerSetProgrammed(generation)
	if out.why != "" {
		programmed.Message = "HAProxy serves the ListenerSet in part. " + out.why
	}
	return withCondition(list, programmed)
}
