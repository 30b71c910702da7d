package status

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// listenerInput is everything besides the node that a listener's status depends on.
type listenerInput struct {
	attached int
	leftOut  string
	// unbound says which of its addresses cannot be bound, and nowhere that none can.
	unbound string
	nowhere bool
	// expired names the certificates whose time is over.
	expired string
}

func listenerInputOf(g *graph.Graph, listener *graph.Listener, r Result) listenerInput {
	one := listenerInput{attached: g.AttachedRoutes(listener), expired: expired(listener, r.Now)}
	if len(r.LeftOut) > 0 {
		one.leftOut = listenerLeftOut(listener, r.LeftOut)
		one.unbound = unbound(listener, r.LeftOut)
		one.nowhere = len(boundAddresses(listener, r.LeftOut)) == 0
	}
	return one
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
	return leftOut[model.Owner(listener.String())]
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
	generation, why := listener.Generation(), input.why()
	if of.leftOut != "" {
		why = refused(of.leftOut)
	}
	switch {
	case of.exposure != nil && of.exposure.Reason != "":
		return withCondition(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonPending,
			"clients do not reach the Gateway: "+of.exposure.Problem))
	case !of.running:
		return withCondition(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonPending, pending(of.problem)))
	case why != "":
		return withCondition(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonInvalid, why))
	default:
		return withCondition(list, conditions.ListenerProgrammed(generation, input.expired))
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
	generation := listener.Generation()
	return append(list, conditions.ListenerNotProgrammed(generation, gatewayv1.ListenerReasonInvalid, message))
}
