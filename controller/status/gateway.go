package status

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// addresses are those at which something of the Gateway is served.
	addresses []netip.Addr
}

type listenerInput struct {
	attached int
	leftOut  string
	// unbound says which of its addresses cannot be bound, and nowhere that none can.
	unbound string
	nowhere bool
	// expired names the certificates whose time is over.
	expired string
}

func (i gatewayInput) equal(o gatewayInput) bool {
	return i.running == o.running && i.problem == o.problem && i.leftOut == o.leftOut &&
		slices.Equal(i.listeners, o.listeners) && slices.Equal(i.addresses, o.addresses)
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
		one := listenerInput{attached: g.AttachedRoutes(listener), expired: expired(listener, r.Now)}
		if len(r.LeftOut) > 0 {
			one.leftOut = listenerLeftOut(listener, r.LeftOut)
			one.unbound = unbound(listener, r.LeftOut)
			one.nowhere = len(boundAddresses(listener, r.LeftOut)) == 0
		}
		input.listeners = append(input.listeners, one)
	}
	input.addresses = servedAddresses(gateway, input.running, r)
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
	for _, address := range gateway.Addresses {
		bound := func(l *graph.Listener) bool { return l.Valid && r.LeftOut[portOwner(l, address)] == "" }
		if slices.Contains(before, address) && slices.ContainsFunc(gateway.Listeners, bound) {
			served = append(served, address)
		}
	}
	return served
}

// Listening are the addresses and ports at which a valid listener is served, given what is left out.
func Listening(listener *graph.Listener, leftOut map[model.Owner]string) []netip.AddrPort {
	if leftOut[model.Owner("Gateway "+listener.Gateway.Key().String())] != "" || listenerLeftOut(listener, leftOut) != "" {
		return nil
	}
	return boundAddresses(listener, leftOut)
}

func boundAddresses(listener *graph.Listener, leftOut map[model.Owner]string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, address := range listener.Gateway.Addresses {
		if leftOut[portOwner(listener, address)] == "" {
			all = append(all, netip.AddrPortFrom(address, listener.Bind))
		}
	}
	return all
}

// unbound says why addresses of a listener cannot be bound; "" if all are.
func unbound(listener *graph.Listener, leftOut map[model.Owner]string) string {
	var all []string
	for _, address := range listener.Gateway.Addresses {
		if why := leftOut[portOwner(listener, address)]; why != "" {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// portOwner is who an address and port that cannot be bound is left out as.
func portOwner(listener *graph.Listener, address netip.Addr) model.Owner {
	return model.Owner("Port " + listener.Gateway.Key().String() + " " + netip.AddrPortFrom(address, listener.Bind).String())
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
	if listener.Clients != nil {
		source := listener.Clients.Authority.Source
		if why := leftOut[model.Owner(source)]; why != "" {
			return source + ": " + why
		}
	}
	return leftOut[model.Owner("Listener "+listener.Gateway.Key().String()+"/"+listener.Name)]
}

func gatewayUpdate(gateway *graph.Gateway, input gatewayInput) *Update {
	state := &gatewayv1.GatewayStatus{Conditions: gatewayConditions(gateway, input), Listeners: []gatewayv1.ListenerStatus{}}
	if gateway.Valid {
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
	if !gateway.Valid {
		return list
	}
	generation := gateway.Source.Generation
	switch {
	case !input.running:
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonPending, pending(input.problem)))
	case input.leftOut != "":
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid, refused(input.leftOut)))
	}
	out := notServed(gateway, input)
	lost := len(gateway.Source.Spec.Addresses) > 0 && len(input.addresses) < len(gateway.Addresses)
	switch {
	case (lost || out.all) && out.unbound != "":
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonAddressNotUsable, out.unbound))
	case out.all:
		return set(list, conditions.GatewayNotProgrammed(generation, gatewayv1.GatewayReasonInvalid, "None of its listeners is served. "+out.why))
	}
	programmed := conditions.GatewayProgrammed(generation)
	if out.why != "" {
		programmed.Message = "HAProxy serves the Gateway in part. " + out.why
	}
	return set(list, programmed)
}

// outcome is what is not served of a Gateway's valid listeners.
type outcome struct {
	all     bool
	why     string // by listener
	unbound string // addresses, each said once
}

func notServed(gateway *graph.Gateway, input gatewayInput) outcome {
	var why, unbound []string
	valid, served := 0, 0
	for i, listener := range gateway.Listeners {
		if !listener.Valid {
			continue
		}
		valid++
		one := input.listeners[i]
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

// why says what is not served of a listener; "" if all is.
func (i listenerInput) why() string {
	if i.leftOut != "" {
		return refused(i.leftOut)
	}
	return i.unbound
}

func listenerConditions(listener *graph.Listener, of gatewayInput, input listenerInput) []metav1.Condition {
	list := slices.Clone(listener.Conditions)
	if !listener.Valid || !listener.Gateway.Valid {
		return withProgrammed(list, listener)
	}
	generation, why := listener.Gateway.Source.Generation, input.why()
	if of.leftOut != "" {
		why = refused(of.leftOut)
	}
	switch {
	case !of.running:
		return set(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonPending, pending(of.problem)))
	case why != "":
		return set(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonInvalid, why))
	default:
		return set(list, conditions.ListenerProgrammed(generation, input.expired))
	}
}

// expired is a warning for the certificates of a listener whose time is over, which are served all the same; "" if none is.
func expired(listener *graph.Listener, now time.Time) string {
	var all []string
	for _, certificate := range listener.Certificates {
		if !now.IsZero() && now.After(certificate.NotAfter) {
			all = append(all, "The certificate in Secret "+certificate.Secret.String()+" expired on "+
				certificate.NotAfter.UTC().Format(time.DateOnly)+": it is served all the same, replace it.")
		}
	}
	return strings.Join(all, " ")
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
