package status

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/expose"
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
	// addresses are those at which something of the Gateway is served.
	addresses []netip.Addr
	// exposure is what the cluster gives it; nil where HAProxy binds the Gateway's own addresses.
	exposure *expose.Exposure
	// lagging says which other replicas do not serve it yet.
	lagging string
}

func (i gatewayInput) equal(o gatewayInput) bool {
	return i.running == o.running && i.lagging == o.lagging && i.problem == o.problem && i.leftOut == o.leftOut &&
		slices.Equal(i.listeners, o.listeners) && slices.Equal(i.addresses, o.addresses) && sameExposure(i.exposure, o.exposure)
}

func sameExposure(a, b *expose.Exposure) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

func gatewayInputOf(g *graph.Graph, gateway *graph.Gateway, r Result) gatewayInput {
	input := gatewayInput{running: runs(r.Running, g, gateway)}
	if !input.running {
		input.problem = r.Problem
	}
	if len(r.LeftOut) > 0 {
		input.leftOut = r.LeftOut[model.Owner("Gateway "+gateway.Key().String())]
	}
	input.lagging = r.Lagging[string(gateway.Source.UID)]
	for _, listener := range gateway.Listeners {
		input.listeners = append(input.listeners, listenerInputOf(g, listener, r))
	}
	input.addresses = servedAddresses(gateway, input.running, r)
	if r.Exposures != nil {
		exposure := r.Exposures[gateway.Key()]
		input.exposure = &exposure
	}
	return input
}

// servedAddresses are those at which something of a Gateway is served, be it as it was before.
func servedAddresses(gateway *graph.Gateway, running bool, r Result) []netip.Addr {
	before := gateway.Addresses
	if !running {
		before = nil
		if r.Running != nil {
			at := slices.IndexFunc(r.Running.Gateways, func(g *graph.Gateway) bool { return g.Key() == gateway.Key() })
			if at >= 0 && r.Running.Gateways[at].Valid {
				before = r.Running.Gateways[at].Addresses
			}
		}
	}
	var served []netip.Addr
	listeners := gateway.AllListeners()
	for _, address := range gateway.Addresses {
		bound := func(l *graph.Listener) bool { return l.Valid && r.LeftOut[portOwner(l, address)] == "" }
		if slices.Contains(before, address) && slices.ContainsFunc(listeners, bound) {
			served = append(served, address)
		}
	}
	return served
}

// runs says whether the running Graph has the Gateway as it is in the latest one.
func runs(running, latest *graph.Graph, gateway *graph.Gateway) bool {
	return running != nil && (running == latest || slices.Contains(running.Gateways, gateway))
}

func gatewayUpdate(gateway *graph.Gateway, input gatewayInput) *Update {
	state := &gatewayv1.GatewayStatus{
		Conditions: gatewayConditions(gateway, input), Listeners: []gatewayv1.ListenerStatus{}, AttachedListenerSets: attachedSets(gateway),
	}
	switch {
	case input.exposure != nil && gateway.Accepted:
		state.Addresses = input.exposure.Addresses
	case input.exposure == nil && gateway.Valid:
		state.Addresses = addresses(input.addresses)
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

// attachedSets counts the ListenerSets that are accepted, for a Gateway that speaks of them at all.
func attachedSets(gateway *graph.Gateway) *int32 {
	if gateway.Source.Spec.AllowedListeners == nil {
		return nil
	}
	attached := new(int32)
	for _, set := range gateway.Sets {
		if set.Accepted {
			*attached++
		}
	}
	return attached
}

func addresses(bound []netip.Addr) []gatewayv1.GatewayStatusAddress {
	var all []gatewayv1.GatewayStatusAddress
	kind := gatewayv1.IPAddressType
	for _, address := range bound {
		all = append(all, gatewayv1.GatewayStatusAddress{Type: &kind, Value: address.String()})
	}
	return all
}

// gatewayConditions adds what only applying can tell: whether a valid Gateway is programmed. It is while something of it is
// served, also when a listener is not, which then says so itself; but not while an address that it asks for is unusable.
func gatewayConditions(gateway *graph.Gateway, input gatewayInput) []metav1.Condition {
	list := slices.Clone(gateway.Conditions)
	generation := gateway.Source.Generation
	if gateway.Accepted && input.exposure != nil && input.exposure.Reason != "" {
		return withCondition(list, conditions.GatewayNotProgrammed(generation, input.exposure.Reason, input.exposure.Problem))
	}
	if !gateway.Valid {
		return list
	}
	switch {
	case !input.running:
		return withCondition(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonPending, pending(input.problem)))
	case input.leftOut != "":
		return withCondition(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid, refused(input.leftOut)))
	}
	out := notServed(gateway.Listeners, input.listeners)
	lost := len(gateway.Source.Spec.Addresses) > 0 && len(input.addresses) < len(gateway.Addresses)
	switch {
	case (lost || out.all) && out.unbound != "":
		return withCondition(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonAddressNotUsable, out.unbound))
	case out.all:
		return withCondition(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid,
			"None of its listeners is served. "+out.why))
	case input.lagging != "":
		return withCondition(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonPending, others(input.lagging)))
	}
	programmed := conditions.GatewayProgrammed(generation)
	if out.why != "" {
		programmed.Message = "HAProxy serves the Gateway in part. " + out.why
	}
	return withCondition(list, programmed)
}

// outcome is what is not served of valid listeners.
type outcome struct {
	all     bool
	why     string // by listener
	unbound string // addresses, each said once
}

func notServed(listeners []*graph.Listener, inputs []listenerInput) outcome {
	var why, unbound []string
	valid, served := 0, 0
	for i, listener := range listeners {
		if !listener.Valid {
			continue
		}
		valid++
		one := inputs[i]
		if one.leftOut == "" && !one.nowhere {
			served++
		}
		if words := one.why(); words != "" {
			why = append(why, "Listener "+listener.Name+": "+words+".")
		}
		if one.unbound != "" && !slices.Contains(unbound, one.unbound) {
			unbound = append(unbound, one.unbound)
		}
	}
	return outcome{valid > 0 && served == 0, strings.Join(why, " "), strings.Join(unbound, "; ")}
}

func pending(problem string) string {
	if problem == "" {
		return "HAProxy does not serve this generation yet."
	}
	return "HAProxy does not serve this generation yet: " + problem
}

func others(lagging string) string {
	return "This replica of Limpet serves this generation; " + lagging + "."
}

func refused(why string) string { return "HAProxy refuses it: " + why }

func itoa(number int64) string { return strconv.FormatInt(number, 10) }
