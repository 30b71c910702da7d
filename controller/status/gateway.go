package status

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// gatewayInput is everything besides the node that a Gateway's status depends on.
type gatewayInput struct {
	// running says that HAProxy serves the Gateway as it is now.
	running bool
	problem string
	// leftOut says what HAProxy refused of the Gateway itself, and of each listener.
	leftOut   string
	listeners []listenerInput
}

type listenerInput struct {
	attached int
	leftOut  string
}

func (i gatewayInput) equal(o gatewayInput) bool {
	return i.running == o.running && i.problem == o.problem && i.leftOut == o.leftOut && slices.Equal(i.listeners, o.listeners)
}

func gatewayInputOf(g *graph.Graph, gateway *graph.Gateway, r Result) gatewayInput {
	input := gatewayInput{running: runs(r.Running, g, gateway)}
	if !input.running {
		input.problem = r.Problem
	}
	if len(r.LeftOut) > 0 {
		input.leftOut = r.LeftOut[model.Owner("Gateway "+gateway.Key().String())]
	}
	for _, listener := range gateway.Listeners {
		one := listenerInput{attached: g.AttachedRoutes(listener)}
		if len(r.LeftOut) > 0 {
			one.leftOut = listenerLeftOut(listener, r.LeftOut)
		}
		input.listeners = append(input.listeners, one)
	}
	return input
}

// runs says whether the running Graph has the Gateway as it is in the latest one.
func runs(running, latest *graph.Graph, gateway *graph.Gateway) bool {
	return running != nil && (running == latest || slices.Contains(running.Gateways, gateway))
}

// listenerLeftOut is what HAProxy refused of a listener: one of its certificates, or the listener itself.
func listenerLeftOut(listener *graph.Listener, leftOut map[model.Owner]string) string {
	for _, certificate := range listener.Certificates {
		if why := leftOut[model.Owner("Secret "+certificate.Secret.String())]; why != "" {
			return "Secret " + certificate.Secret.String() + ": " + why
		}
	}
	return leftOut[model.Owner("Listener "+listener.Gateway.Key().String()+"/"+listener.Name)]
}

func gatewayUpdate(gateway *graph.Gateway, input gatewayInput) *Update {
	state := &gatewayv1.GatewayStatus{Conditions: gatewayConditions(gateway, input), Listeners: []gatewayv1.ListenerStatus{}}
	if gateway.Valid {
		state.Addresses = addresses(gateway)
	}
	for i, listener := range gateway.Listeners {
		state.Listeners = append(state.Listeners, gatewayv1.ListenerStatus{
			Name:           gatewayv1.SectionName(listener.Name),
			SupportedKinds: append([]gatewayv1.RouteGroupKind{}, listener.SupportedKinds...),
			AttachedRoutes: int32(input.listeners[i].attached),
			Conditions:     listenerConditions(listener, input, input.listeners[i]),
		})
	}
	return &Update{
		Object: Object{gatewayv1.GroupVersion.String(), "Gateway", gateway.Source.Namespace, gateway.Source.Name},
		Status: Status{Gateway: state},
	}
}

func addresses(gateway *graph.Gateway) []gatewayv1.GatewayStatusAddress {
	var all []gatewayv1.GatewayStatusAddress
	kind := gatewayv1.IPAddressType
	for _, address := range gateway.Addresses {
		all = append(all, gatewayv1.GatewayStatusAddress{Type: &kind, Value: address.String()})
	}
	return all
}

// gatewayConditions adds what only applying can tell: whether a valid Gateway is programmed.
func gatewayConditions(gateway *graph.Gateway, input gatewayInput) []metav1.Condition {
	list := slices.Clone(gateway.Conditions)
	if !gateway.Valid {
		return list
	}
	generation := gateway.Source.Generation
	switch {
	case !input.running:
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonPending, pending(input.problem)))
	case input.leftOut != "":
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid, refused(input.leftOut)))
	default:
		return set(list, conditions.GatewayProgrammed(generation))
	}
}

func listenerConditions(listener *graph.Listener, of gatewayInput, input listenerInput) []metav1.Condition {
	list := slices.Clone(listener.Conditions)
	if !listener.Valid || !listener.Gateway.Valid {
		return withProgrammed(list, listener)
	}
	generation, why := listener.Gateway.Source.Generation, of.leftOut
	if why == "" {
		why = input.leftOut
	}
	switch {
	case !of.running:
		return set(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonPending, pending(of.problem)))
	case why != "":
		return set(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonInvalid, refused(why)))
	default:
		return set(list, conditions.ListenerProgrammed(generation))
	}
}

// withProgrammed sees to it that a listener that is not served says so, also where the reason lies with its Gateway.
func withProgrammed(list []metav1.Condition, listener *graph.Listener) []metav1.Condition {
	kind := string(gatewayv1.ListenerConditionProgrammed)
	if _, there := find(list, kind); there {
		return list
	}
	message := "The listener is not valid."
	if of, there := find(listener.Gateway.Conditions, kind); there && listener.Valid {
		message = "The Gateway is not programmed: " + of.Message
	}
	generation := listener.Gateway.Source.Generation
	return append(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonInvalid, message))
}

func pending(problem string) string {
	if problem == "" {
		return "HAProxy does not serve this generation yet."
	}
	return "HAProxy does not serve this generation yet: " + problem
}

func refused(why string) string { return "HAProxy refuses it: " + why }

func itoa(number int64) string { return strconv.FormatInt(number, 10) }
