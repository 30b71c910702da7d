package graph

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// allowedNamespaces is who may attach to a listener, or to a Gateway.
type allowedNamespaces struct {
	from     gatewayv1.FromNamespaces
	selector labels.Selector
}

// permits says whether routes of a namespace may attach. Labels are asked for only where they are selected by.
func (l *Listener) permits(namespace string, labelsOf func() labels.Set) bool {
	return l.allowed.permits(l.Namespace(), namespace, labelsOf)
}

// permits says whether what is in a namespace may attach to what is at home.
func (a allowedNamespaces) permits(home, namespace string, labelsOf func() labels.Set) bool {
	switch a.from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == home
	case gatewayv1.NamespacesFromSelector:
		return a.selector != nil && a.selector.Matches(labelsOf())
	}
	return false
}

// supports says whether the listener takes a kind of route.
func (l *Listener) supports(kind string) bool {
	for _, supported := range l.SupportedKinds {
		if string(supported.Kind) == kind {
			return true
		}
	}
	return false
}

func (d *listenerDraft) readAllowedRoutes() {
	d.node.allowed.from = gatewayv1.NamespacesFromSame
	allowed := d.node.Source.AllowedRoutes
	if allowed == nil || allowed.Namespaces == nil {
		return
	}
	d.node.allowed.from = valueOr(allowed.Namespaces.From, gatewayv1.NamespacesFromSame)
	switch d.node.allowed.from {
	case gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame:
	case gatewayv1.NamespacesFromSelector:
		d.readSelector(allowed.Namespaces.Selector)
	default:
		d.refuse("allowedRoutes.namespaces.from", "%q must be All, Same or Selector", d.node.allowed.from)
	}
}

func (d *listenerDraft) readSelector(source *metav1.LabelSelector) {
	if source == nil {
		d.refuse("allowedRoutes.namespaces.selector", "must be given where from is Selector")
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(source)
	if err != nil {
		d.refuse("allowedRoutes.namespaces.selector", "%s", err)
		return
	}
	d.node.allowed.selector = selector
}

// kindsOf are the kinds of routes for each protocol.
var kindsOf = map[Protocol][]gatewayv1.Kind{
	HTTP: {KindHTTPRoute, KindGRPCRoute}, HTTPS: {KindHTTPRoute, KindGRPCRoute},
	TLSTerminate: {KindTLSRoute}, TLSPassthrough: {KindTLSRoute}, TCP: {KindTCPRoute},
}

// readKinds intersects the kinds that are asked for with those that Limpet serves.
func (d *listenerDraft) readKinds() {
	d.node.SupportedKinds = []gatewayv1.RouteGroupKind{}
	served := kindsOf[d.node.Protocol]
	var asked []gatewayv1.RouteGroupKind
	for _, kind := range served {
		asked = append(asked, gatewayv1.RouteGroupKind{Kind: kind})
	}
	if allowed := d.node.Source.AllowedRoutes; allowed != nil && len(allowed.Kinds) > 0 {
		asked = allowed.Kinds
	}
	if len(asked) > 8 {
		d.refuse("allowedRoutes.kinds", "must not have more than 8 entries")
	}
	group := gatewayv1.Group(gatewayv1.GroupName)
	for i, kind := range asked {
		switch {
		case valueOr(kind.Group, group) != group || !slices.Contains(served, kind.Kind):
			d.refs.add(gatewayv1.ListenerReasonInvalidRouteKinds, "allowedRoutes.kinds[%d]: %s is no kind of route "+
				"for protocol %s, only %s", i, kind.Kind, d.node.Source.Protocol, onlyKinds(served))
		case !d.node.supports(string(kind.Kind)):
			d.node.SupportedKinds = append(d.node.SupportedKinds, gatewayv1.RouteGroupKind{Group: &group, Kind: kind.Kind})
		}
	}
}

// onlyKinds are the kinds in words that follow "only".
func onlyKinds(kinds []gatewayv1.Kind) string {
	if len(kinds) == 1 {
		return string(kinds[0]) + " is"
	}
	return string(kinds[0]) + " and " + string(kinds[1]) + " are"
}
