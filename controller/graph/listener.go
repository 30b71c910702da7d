package graph

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// listenerProblems are what a listener's conditions report.
type listenerProblems = problems[gatewayv1.ListenerConditionReason]

// listenerDraft is a listener with what is wrong with it, until its conditions are written.
type listenerDraft struct {
	node    *Listener
	gateway *gatewayDraft
	// set is nil for one of the Gateway's own.
	set *setDraft
	// refused makes it not Accepted, refs says which references are not resolved, conflict which listeners are not distinct.
	refused, refs, conflict listenerProblems
	// overlaps names the TLS listeners that share hostnames with it.
	overlaps []string
	// lost says that a listener which comes first has what this one asks for.
	lost bool
	// distinguishable listeners have a port, protocol and hostname that can be compared.
	distinguishable bool
}

// newListener reads one listener on its own, of a Gateway or of a set.
func (b *gatewayBuild) newListener(gateway *gatewayDraft, set *setDraft, source *gatewayv1.Listener) *listenerDraft {
	node := &Listener{Gateway: gateway.node, Source: source, Name: string(source.Name)}
	if set != nil {
		node.Set = set.node
	}
	draft := &listenerDraft{node: node, gateway: gateway, set: set}
	if wrong := checkSectionName(node.Name); wrong != "" {
		draft.refuse("name", "%q %s", node.Name, wrong)
	}
	draft.readHostname()
	b.readPort(draft)
	draft.readAllowedRoutes()
	if draft.readProtocol() {
		draft.readKinds()
		b.readTLS(draft)
		if draft.node.Protocol == TCP && draft.node.Hostname != "" {
			draft.refuse("hostname", "must not be set for protocol TCP, which has none")
		}
	}
	if filters := source.Filters; filters != nil && len(filters.Requests) > 0 {
		draft.refuse("filters", "filters of listeners are not built yet, and serving without them would be unsafe")
	}
	return draft
}

// refuse says that a field's value cannot be honoured.
func (d *listenerDraft) refuse(field, format string, args ...any) {
	d.refused.add(gatewayv1.ListenerReasonUnsupportedValue, field+": "+format, args...)
}

func (d *listenerDraft) readHostname() {
	hostname := string(valueOr(d.node.Source.Hostname, ""))
	d.distinguishable = true
	if hostname == "" {
		return
	}
	if wrong := checkHostname(hostname); wrong != "" {
		d.refuse("hostname", "%q %s", hostname, wrong)
		d.distinguishable = false
	}
	d.node.Hostname = strings.ToLower(hostname)
}

func (b *gatewayBuild) readPort(d *listenerDraft) {
	port := int(d.node.Source.Port)
	if port < 1 || port > 65535 {
		d.refuse("port", "%d must be from 1 to 65535", port)
		d.distinguishable = false
		return
	}
	d.node.Port = uint16(port)
	if b.options.Pod != nil {
		d.node.Bind = b.ports.Port(d.node.Holder())
		return
	}
	offset := b.options.PortOffset
	bind := port + offset
	if bind < 1 || bind > 65535 {
		d.refused.add(gatewayv1.ListenerReasonPortUnavailable,
			"port: %d and the port offset %d make %d, which is not a port: choose a smaller offset", port, offset, bind)
		return
	}
	d.node.Bind = uint16(bind)
}

// readProtocol says whether Limpet serves it.
func (d *listenerDraft) readProtocol() bool {
	switch d.node.Source.Protocol {
	case gatewayv1.HTTPProtocolType:
		d.node.Protocol = HTTP
	case gatewayv1.HTTPSProtocolType:
		d.node.Protocol = HTTPS
	case gatewayv1.TLSProtocolType:
		d.node.Protocol = TLSTerminate
		if tls := d.node.Source.TLS; tls != nil && valueOr(tls.Mode, "") == gatewayv1.TLSModePassthrough {
			d.node.Protocol = TLSPassthrough
		}
	case gatewayv1.TCPProtocolType:
		d.node.Protocol = TCP
	default:
		d.refused.add(gatewayv1.ListenerReasonUnsupportedProtocol,
			"protocol: %q is not served, only HTTP, HTTPS, TLS and TCP are", d.node.Source.Protocol)
		// A listener that supports no kind says so with an empty list.
		d.node.SupportedKinds = []gatewayv1.RouteGroupKind{}
		d.distinguishable = false
		return false
	}
	return true
}

// conditions are all that apply, but Programmed of a listener that can be served: only applying can tell.
func (d *listenerDraft) conditions(generation int64, unserved *problem[gatewayv1.ListenerConditionReason]) []metav1.Condition {
	accepted := conditions.ListenerAccepted(generation)
	if d.refused.any() {
		accepted = conditions.ListenerNotAccepted(generation, d.refused.reason(), d.refused.text())
	}
	conflicted := conditions.ListenerNoConflicts(generation)
	if d.conflict.any() {
		conflicted = conditions.ListenerConflicted(generation, d.conflict.reason(), d.conflict.text())
	}
	resolved := conditions.ListenerResolvedRefs(generation)
	if d.refs.any() {
		resolved = conditions.ListenerRefsNotResolved(generation, d.refs.reason(), d.refs.text())
	}
	all := []metav1.Condition{accepted, conflicted, resolved}
	if len(d.overlaps) > 0 {
		all = append(all, conditions.ListenerOverlappingHostnames(generation, fmt.Sprintf(
			"on the same port, these TLS listeners have hostnames in common with this one: %s.",
			strings.Join(d.overlaps, ", "))))
	}
	if unserved != nil {
		all = append(all, conditions.ListenerNotProgrammed(generation, unserved.reason, unserved.message))
	}
	return all
}

// served says whether the listener can be served as far as it knows itself.
func (d *listenerDraft) served() bool {
	return !d.refused.any() && (!d.node.Protocol.Terminates() || len(d.node.Certificates) > 0)
}

// whyUnserved is the reason and message of Programmed for a listener that is not served.
func (d *listenerDraft) whyUnserved() problem[gatewayv1.ListenerConditionReason] {
	why := problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonInvalid, "no certificate can be used."}
	switch {
	case d.conflict.any():
		why = problem[gatewayv1.ListenerConditionReason]{d.conflict.reason(), d.conflict.text()}
	case d.refused.any():
		why.message = "the listener is not accepted: " + d.refused.text()
	}
	return why
}

// referrer is what the listener's references come from: its own object, so that what is granted to a Gateway is not granted
// to its ListenerSets, nor the other way round.
func (d *listenerDraft) referrer() referrer {
	if d.set != nil {
		return referrer{gatewayv1.GroupName, kindListenerSet, d.node.Namespace()}
	}
	return referrer{gatewayv1.GroupName, kindGateway, d.node.Namespace()}
}

// servedOf counts the listeners that can be served as far as they know themselves.
func servedOf(drafts []*listenerDraft) int {
	served := 0
	for _, draft := range drafts {
		if draft.served() {
			served++
		}
	}
	return served
}
