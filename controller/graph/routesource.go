package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The kinds of routes that are served.
const (
	KindHTTPRoute = "HTTPRoute"
	KindGRPCRoute = "GRPCRoute"
	KindTLSRoute  = "TLSRoute"
	KindTCPRoute  = "TCPRoute"
)

// layer4 says that a kind of route forwards connections, whatever is spoken in them.
func layer4(kind string) bool { return kind == KindTLSRoute || kind == KindTCPRoute }

// routeSource is a route of any kind, as far as they are alike.
type routeSource struct {
	metav1.Object

	kind      string
	spec      *gatewayv1.CommonRouteSpec
	hostnames []gatewayv1.Hostname
	// rules are nil if the spec has none.
	rules []ruleSource
}

// ruleSource is a rule of an HTTPRoute, or another route's as one: without matches, as a GRPCRoute's are in grpc, and a rule at
// layer 4 takes every connection.
type ruleSource struct {
	*gatewayv1.HTTPRouteRule

	grpc *gatewayv1.GRPCRouteRule
}

// httpSource is nil for a route that is gone.
func httpSource(route *gatewayv1.HTTPRoute) *routeSource {
	if route == nil {
		return nil
	}
	source := &routeSource{Object: route, kind: KindHTTPRoute, spec: &route.Spec.CommonRouteSpec, hostnames: route.Spec.Hostnames}
	if route.Spec.Rules == nil {
		// The CRD's default: a route without rules takes everything, and has no backend for it.
		source.rules = []ruleSource{{HTTPRouteRule: &gatewayv1.HTTPRouteRule{}}}
	}
	for i := range route.Spec.Rules {
		source.rules = append(source.rules, ruleSource{HTTPRouteRule: &route.Spec.Rules[i]})
	}
	return source
}

// grpcSource is nil for a route that is gone. A GRPCRoute without rules is valid, and takes nothing.
func grpcSource(route *gatewayv1.GRPCRoute) *routeSource {
	if route == nil {
		return nil
	}
	source := &routeSource{Object: route, kind: KindGRPCRoute, spec: &route.Spec.CommonRouteSpec, hostnames: route.Spec.Hostnames}
	for i := range route.Spec.Rules {
		rule := &route.Spec.Rules[i]
		source.rules = append(source.rules, ruleSource{HTTPRouteRule: httpRule(rule), grpc: rule})
	}
	return source
}

// tlsSource is nil for a route that is gone.
func tlsSource(route *gatewayv1.TLSRoute) *routeSource {
	if route == nil {
		return nil
	}
	source := &routeSource{Object: route, kind: KindTLSRoute, spec: &route.Spec.CommonRouteSpec, hostnames: route.Spec.Hostnames}
	for i := range route.Spec.Rules {
		source.rules = append(source.rules, connectionRule(route.Spec.Rules[i].Name, route.Spec.Rules[i].BackendRefs))
	}
	return source
}

// tcpSource is nil for a route that is gone.
func tcpSource(route *gatewayv1.TCPRoute) *routeSource {
	if route == nil {
		return nil
	}
	source := &routeSource{Object: route, kind: KindTCPRoute, spec: &route.Spec.CommonRouteSpec}
	for i := range route.Spec.Rules {
		source.rules = append(source.rules, connectionRule(route.Spec.Rules[i].Name, route.Spec.Rules[i].BackendRefs))
	}
	return source
}

// connectionRule is a rule at layer 4: it has backends and nothing else.
func connectionRule(name *gatewayv1.SectionName, refs []gatewayv1.BackendRef) ruleSource {
	rule := &gatewayv1.HTTPRouteRule{Name: name}
	for _, ref := range refs {
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: ref})
	}
	return ruleSource{HTTPRouteRule: rule}
}

// httpRule has everything of a GRPCRoute's rule but the matches.
func httpRule(rule *gatewayv1.GRPCRouteRule) *gatewayv1.HTTPRouteRule {
	converted := &gatewayv1.HTTPRouteRule{
		Name: rule.Name, Filters: httpFilters(rule.Filters),
		SessionPersistence: rule.SessionPersistence, //nolint:staticcheck // deprecated upstream, widely used, and served by us
	}
	for i := range rule.BackendRefs {
		ref := &rule.BackendRefs[i]
		converted.BackendRefs = append(converted.BackendRefs,
			gatewayv1.HTTPBackendRef{BackendRef: ref.BackendRef, Filters: httpFilters(ref.Filters)})
	}
	return converted
}

func httpFilters(filters []gatewayv1.GRPCRouteFilter) []gatewayv1.HTTPRouteFilter {
	var converted []gatewayv1.HTTPRouteFilter
	for i := range filters {
		filter := &filters[i]
		converted = append(converted, gatewayv1.HTTPRouteFilter{
			Type: gatewayv1.HTTPRouteFilterType(filter.Type), RequestHeaderModifier: filter.RequestHeaderModifier,
			ResponseHeaderModifier: filter.ResponseHeaderModifier, RequestMirror: filter.RequestMirror, ExtensionRef: filter.ExtensionRef,
		})
	}
	return converted
}

// matches is how many the rule has.
func (s *ruleSource) matches() int {
	if s.grpc != nil {
		return len(s.grpc.Matches)
	}
	return len(s.Matches)
}
