package graph

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// repeatable filters may stand in one list more than once.
var repeatable = []gatewayv1.HTTPRouteFilterType{
	gatewayv1.HTTPRouteFilterRequestMirror, gatewayv1.HTTPRouteFilterExtensionRef, gatewayv1.HTTPRouteFilterExternalAuth,
}

// readFilters reads all filters or makes the rule invalid: a filter must never be skipped.
func (d *ruleDraft) readFilters(field string, filters []gatewayv1.HTTPRouteFilter) Filters {
	if len(filters) > maxFilters {
		d.refuse(field, "must not have more than %d entries", maxFilters)
		return Filters{}
	}
	d.checkCombination(field, filters)
	var read Filters
	for i := range filters {
		filter, at := &filters[i], indexed(field, i)
		switch given, known := payloads(filter); {
		case !known:
			d.refuse(at+".type", "%q is not a filter that Limpet knows", filter.Type)
		case d.grpc != nil && !slices.Contains(grpcFilters, filter.Type):
			d.refuse(at+".type", "%q is not a filter of GRPCRoutes", filter.Type)
		case !slices.Equal(given, []gatewayv1.HTTPRouteFilterType{filter.Type}):
			d.refuse(at, "must set the field that belongs to type %s, and no other filter's", filter.Type)
		default:
			d.readFilter(&read, at, filter)
		}
	}
	return read
}

func (d *ruleDraft) readFilter(read *Filters, at string, filter *gatewayv1.HTTPRouteFilter) {
	switch filter.Type {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		read.RequestHeaders = d.readRequestHeaders(at+".requestHeaderModifier", filter.RequestHeaderModifier)
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		read.ResponseHeaders = d.readHeaderChange(at+".responseHeaderModifier", filter.ResponseHeaderModifier)
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		read.Redirect = d.readRedirect(at+".requestRedirect", filter.RequestRedirect)
	case gatewayv1.HTTPRouteFilterURLRewrite:
		read.Rewrite = d.readRewrite(at+".urlRewrite", filter.URLRewrite)
	case gatewayv1.HTTPRouteFilterCORS:
		read.CORS = d.readCORS(at+".cors", filter.CORS)
	case gatewayv1.HTTPRouteFilterRequestMirror:
		read.Mirrors = append(read.Mirrors, d.readMirror(at+".requestMirror", filter.RequestMirror)...)
	default:
		d.refuse(at+".type", "the filter %s is not built yet", filter.Type)
		d.followReferences(at, filter)
	}
}

// payloads are the types whose fields a filter sets, and whether its own type is one of the API's.
func payloads(filter *gatewayv1.HTTPRouteFilter) (given []gatewayv1.HTTPRouteFilterType, known bool) {
	for _, payload := range []struct {
		kind gatewayv1.HTTPRouteFilterType
		set  bool
	}{
		{gatewayv1.HTTPRouteFilterRequestHeaderModifier, filter.RequestHeaderModifier != nil},
		{gatewayv1.HTTPRouteFilterResponseHeaderModifier, filter.ResponseHeaderModifier != nil},
		{gatewayv1.HTTPRouteFilterRequestMirror, filter.RequestMirror != nil},
		{gatewayv1.HTTPRouteFilterRequestRedirect, filter.RequestRedirect != nil},
		{gatewayv1.HTTPRouteFilterURLRewrite, filter.URLRewrite != nil},
		{gatewayv1.HTTPRouteFilterCORS, filter.CORS != nil},
		{gatewayv1.HTTPRouteFilterExternalAuth, filter.ExternalAuth != nil},
		{gatewayv1.HTTPRouteFilterExtensionRef, filter.ExtensionRef != nil},
	} {
		if payload.set {
			given = append(given, payload.kind)
		}
		known = known || payload.kind == filter.Type
	}
	return given, known
}

// checkCombination refuses what the API says does not go together.
func (d *ruleDraft) checkCombination(field string, filters []gatewayv1.HTTPRouteFilter) {
	count := make(map[gatewayv1.HTTPRouteFilterType]int)
	for i := range filters {
		kind := filters[i].Type
		count[kind]++
		if count[kind] == 2 && !slices.Contains(repeatable, kind) {
			d.problems.add(gatewayv1.RouteReasonIncompatibleFilters,
				"%s.%s: the filter %s must not be repeated", d.field, field, kind)
		}
	}
	if count[gatewayv1.HTTPRouteFilterRequestRedirect] > 0 && count[gatewayv1.HTTPRouteFilterURLRewrite] > 0 {
		d.problems.add(gatewayv1.RouteReasonIncompatibleFilters,
			"%s.%s: RequestRedirect and URLRewrite must not be used together", d.field, field)
	}
}

// followReferences reports references of filters that are not built: ResolvedRefs speaks for all references of a route.
func (d *ruleDraft) followReferences(field string, filter *gatewayv1.HTTPRouteFilter) {
	at := d.field + "." + field
	switch {
	case filter.ExternalAuth != nil:
		d.refs.backend(at+".externalAuth.backendRef", &filter.ExternalAuth.BackendRef)
	case filter.ExtensionRef != nil:
		d.refs.unresolved.add(gatewayv1.RouteReasonInvalidKind, "%s.extensionRef: kind %q in group %q is not known",
			at, filter.ExtensionRef.Kind, filter.ExtensionRef.Group)
	}
}
