package graph

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// refuseConflicts refuses all listeners of one object that cannot be told from another one of it: the specification forbids
// choosing a winner. Those that lost already are out of it.
func refuseConflicts(drafts []*listenerDraft) {
	for _, draft := range drafts {
		for _, other := range drafts {
			if reason := conflictOf(draft, other); reason != "" && !draft.lost && !other.lost {
				draft.conflict.add(reason, "the listener has the port %d in common with listener %q, which has %s",
					draft.node.Port, other.node.Name, describe(other))
			}
		}
	}
	refuseConflicted(drafts)
}

// refuseTaken refuses the listeners of a ListenerSet that cannot be told from those before it: the Gateway's, and those of
// older sets. What is before must not suffer from what is added to it.
func refuseTaken(before, drafts []*listenerDraft) {
	for _, draft := range drafts {
		for _, other := range before {
			if reason := conflictOf(draft, other); reason != "" && !other.lost {
				// Whose listener it is may be a secret to who reads this; what it has is known to whoever can ask the port.
				draft.conflict.add(reason, "port %d of Gateway %s has another listener, which comes first, with %s",
					draft.node.Port, draft.node.Gateway.Key(), describe(other))
			}
		}
	}
	for _, draft := range drafts {
		draft.lost = draft.conflict.any()
	}
	refuseConflicted(drafts)
}

func refuseConflicted(drafts []*listenerDraft) {
	for _, draft := range drafts {
		if draft.conflict.any() && !slices.Contains(draft.refused, draft.conflict[0]) {
			// First, so that its reason is the condition's.
			draft.refused = slices.Concat(draft.conflict, draft.refused)
		}
	}
}

func describe(d *listenerDraft) string {
	if d.node.Hostname == "" {
		return fmt.Sprintf("protocol %s and no hostname", d.node.Source.Protocol)
	}
	return fmt.Sprintf("protocol %s and hostname %q", d.node.Source.Protocol, d.node.Hostname)
}

// conflictOf says why two listeners are not distinct, if they are not. A port speaks either HTTP or TLS, or is forwarded as it is:
// to one listener, for nothing tells its connections apart.
func conflictOf(a, b *listenerDraft) gatewayv1.ListenerConditionReason {
	switch {
	case a == b || !a.distinguishable || !b.distinguishable || a.node.Port != b.node.Port:
		return ""
	case a.node.Protocol != b.node.Protocol && !a.node.Protocol.SharesPort(b.node.Protocol):
		return gatewayv1.ListenerReasonProtocolConflict
	case a.node.Hostname == b.node.Hostname || a.node.Protocol == TCP:
		return gatewayv1.ListenerReasonHostnameConflict
	}
	return ""
}

// findOverlaps notes, for each TLS listener, the others on its port that have hostnames in common with it.
func findOverlaps(drafts []*listenerDraft) {
	for _, a := range drafts {
		for _, b := range drafts {
			if a != b && a.node.Protocol.TLS() && b.node.Protocol.TLS() && a.distinguishable && b.distinguishable && !a.lost && !b.lost &&
				a.node.Port == b.node.Port && hostnamesIntersect(a.node.Hostname, b.node.Hostname) {
				a.addOverlap(b)
			}
		}
	}
}

// addOverlap names another listener to those who may know it.
func (d *listenerDraft) addOverlap(other *listenerDraft) {
	name := other.node.Name
	switch {
	case other.set == d.set:
	case other.node.Namespace() != d.node.Namespace():
		name = "one of another namespace"
	case other.set == nil:
		name = "Gateway " + other.node.Gateway.Key().String() + " listener " + name
	default:
		name = "ListenerSet " + other.set.node.Key().String() + " listener " + name
	}
	if !slices.Contains(d.overlaps, name) {
		d.overlaps = append(d.overlaps, name)
	}
}
