package graph

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// The kinds that a route's parents depend on; all others concern its rules.
const (
	kindGateway     = "Gateway"
	kindListenerSet = "ListenerSet"
	kindNamespace   = "Namespace"
)

// parentDraft is a parentRef with what it leads to.
type parentDraft struct {
	ref *gatewayv1.ParentReference
	key objectKey
	// gateway is nil if the parent is not ours. set is the parent itself, if it is not the Gateway.
	gateway *Gateway
	set     *ListenerSet
	needs   []objectKey
}

// findParents follows all parentRefs.
func findParents(in *routeInput, source *routeSource) []parentDraft {
	parents := make([]parentDraft, len(source.spec.ParentRefs))
	for i := range parents {
		ref := &source.spec.ParentRefs[i]
		parents[i] = parentDraft{ref: ref, key: parentKey(source, ref)}
		parents[i].find(in)
	}
	return parents
}

func parentKey(source *routeSource, ref *gatewayv1.ParentReference) objectKey {
	kind := string(valueOr(ref.Kind, kindGateway))
	if group := valueOr(ref.Group, gatewayv1.GroupName); group != gatewayv1.GroupName {
		kind += "." + string(group)
	}
	return objectKey{kind, string(valueOr(ref.Namespace, gatewayv1.Namespace(source.GetNamespace()))), string(ref.Name)}
}

// find follows the reference to a Gateway, or to a ListenerSet of one.
func (p *parentDraft) find(in *routeInput) {
	p.needs = []objectKey{p.key}
	name := types.NamespacedName{Namespace: p.key.namespace, Name: p.key.name}
	switch p.key.kind {
	case kindGateway:
		p.gateway = in.gateways[name]
	case kindListenerSet:
		if p.set = in.sets[name]; p.set != nil {
			p.gateway = p.set.Gateway
		}
	}
}

// listeners are those of the parent itself: a reference to a Gateway never means those of its ListenerSets, nor the other
// way round (GEP-1713).
func (p *parentDraft) listeners() []*Listener {
	if p.set != nil {
		return p.set.Listeners
	}
	return p.gateway.Listeners
}

// String is the parent in words.
func (p *parentDraft) String() string {
	return fmt.Sprintf("%s %s/%s", p.key.kind, p.key.namespace, p.key.name)
}

// attach says what comes of a parentRef, and whether the labels of the route's namespace mattered.
func (p *parentDraft) attach(in *routeInput, source *routeSource, rules *routeRules) (*RouteParent, bool) {
	attempt := attachment{parent: p, in: in, source: source, rules: rules}
	listeners, failed := attempt.listeners()
	parent := &RouteParent{Ref: *p.ref, Gateway: p.gateway}
	generation := source.GetGeneration()
	accepted := conditions.RouteAccepted(generation)
	switch {
	case failed != nil:
		message := failed.message + "."
		if rules.refused.any() {
			message = sentences([]string{failed.message, "the route is not valid either: " + rules.refused.text()})
		}
		accepted = conditions.RouteNotAccepted(generation, failed.reason, message)
	case rules.refused.any():
		accepted = conditions.RouteNotAccepted(generation, rules.refused.reason(), rules.refused.text())
		parent.Blocked = listeners
	case rules.allDropped():
		accepted = conditions.RouteNotAccepted(generation, rules.dropped.reason(), rules.dropped.text())
		parent.Blocked = listeners
	default:
		parent.Listeners = listeners
	}
	parent.Conditions = append(parent.Conditions, accepted, rules.resolved(generation))
	if len(parent.Listeners) > 0 && rules.dropped.any() {
		parent.Conditions = append(parent.Conditions, conditions.RoutePartiallyInvalid(generation, rules.dropped.text()+
			" What it matches is answered with 500."))
	}
	if len(rules.ignored) > 0 {
		parent.Conditions = append(parent.Conditions, conditions.Ignored(generation, sentences(rules.ignored)))
	}
	return parent, attempt.asked
}

// attachment is the attempt to attach a route to the listeners of one parentRef.
type attachment struct {
	parent *parentDraft
	in     *routeInput
	source *routeSource
	rules  *routeRules
	asked  bool
}

// listeners are those that take the route. If none does, the reason is that of the step which left none.
func (a *attachment) listeners() ([]*Listener, *problem[gatewayv1.RouteConditionReason]) {
	all := a.parent.listeners()
	if len(all) == 0 && a.parent.set != nil {
		return nil, &problem[gatewayv1.RouteConditionReason]{gatewayv1.RouteReasonNoMatchingParent,
			a.parent.String() + " adds no listeners to its Gateway: see its conditions"}
	}
	matching := filter(all, func(l *Listener) bool { return selects(a.parent.ref, l) })
	if len(matching) == 0 {
		return nil, &problem[gatewayv1.RouteConditionReason]{gatewayv1.RouteReasonNoMatchingParent,
			fmt.Sprintf("%s has no listener%s", a.parent, describeRef(a.parent.ref)) + a.describe(", it has ", all)}
	}
	allowed := filter(matching, a.allows)
	if len(allowed) == 0 {
		return nil, &problem[gatewayv1.RouteConditionReason]{gatewayv1.RouteReasonNotAllowedByListeners,
			fmt.Sprintf("no listener of %s allows %ss of namespace %q", a.parent, a.source.kind, a.source.GetNamespace()) +
				a.describe(": ", matching)}
	}
	shared := filter(allowed, a.sharesHostname)
	if len(shared) == 0 {
		return nil, &problem[gatewayv1.RouteConditionReason]{gatewayv1.RouteReasonNoMatchingListenerHostname,
			fmt.Sprintf("no hostname of the route (%q) matches one of a listener of %s",
				a.source.hostnames, a.parent) + a.describe(": ", allowed)}
	}
	return shared, nil
}

func filter(listeners []*Listener, keep func(*Listener) bool) []*Listener {
	var kept []*Listener
	for _, listener := range listeners {
		if keep(listener) {
			kept = append(kept, listener)
		}
	}
	return kept
}

// selects says whether a parentRef means the listener: "the name and port of the selected listener must match both".
func selects(ref *gatewayv1.ParentReference, listener *Listener) bool {
	return (valueOr(ref.SectionName, "") == "" || string(*ref.SectionName) == listener.Name) &&
		(valueOr(ref.Port, 0) == 0 || *ref.Port == listener.Source.Port)
}

func describeRef(ref *gatewayv1.ParentReference) string {
	var text string
	if name := valueOr(ref.SectionName, ""); name != "" {
		text += fmt.Sprintf(" named %q", name)
	}
	if port := valueOr(ref.Port, 0); port != 0 {
		text += fmt.Sprintf(" on port %d", port)
	}
	return text
}

// describe lists listeners for those who may know: a parent that lets no route of a namespace attach is not shown there.
func (a *attachment) describe(introduction string, listeners []*Listener) string {
	if a.parent.key.namespace != a.source.GetNamespace() && !slices.ContainsFunc(a.parent.listeners(), a.permits) {
		return ""
	}
	if len(listeners) == 0 {
		return introduction + "none"
	}
	texts := make([]string, len(listeners))
	for i, listener := range listeners {
		texts[i] = fmt.Sprintf("%q (port %d, hostname %q)", listener.Name, listener.Source.Port, listener.Hostname)
	}
	return introduction + strings.Join(texts, ", ")
}

func (a *attachment) permits(listener *Listener) bool {
	return listener.permits(a.source.GetNamespace(), func() labels.Set {
		a.asked = true
		return a.in.namespaces.labels(a.source.GetNamespace())
	})
}

func (a *attachment) allows(listener *Listener) bool {
	return listener.supports(a.source.kind) && a.permits(listener)
}

// sharesHostname: a route that names hostnames, none of them valid, shares none. It must not take all.
func (a *attachment) sharesHostname(listener *Listener) bool {
	if len(a.source.hostnames) == 0 {
		return true
	}
	return slices.ContainsFunc(a.rules.hostnames, func(hostname string) bool {
		return hostnamesIntersect(listener.Hostname, hostname)
	})
}
