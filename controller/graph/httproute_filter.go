package graph

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// repeatable filters may stand in one list more than once.
var repeatable = []gatewayv1.HTTPRouteFilterType{
	gatewayv1.HTTPRouteFilterRequestMirror, gatewayv1.HTTPRouteFilterExtensionRef, gatewayv1.HTTPRouteFilterExternalAuth,
}

// readFilters honours the filters that are built. Any other makes the rule invalid: a filter must never be skipped.
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
		case !slices.Equal(given, []gatewayv1.HTTPRouteFilterType{filter.Type}):
			d.refuse(at, "must set the field that belongs to type %s, and no other filter's", filter.Type)
		case filter.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier:
			read.RequestHeaders = d.readHeaderChange(at+".requestHeaderModifier", filter.RequestHeaderModifier)
		case filter.Type == gatewayv1.HTTPRouteFilterRequestRedirect:
			read.Redirect = d.readRedirect(at+".requestRedirect", filter.RequestRedirect)
		default:
			d.refuse(at+".type", "the filter %s is not built yet", filter.Type)
			d.followReferences(at, filter)
		}
	}
	return read
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
	case filter.RequestMirror != nil:
		d.refs.backend(at+".requestMirror.backendRef", &filter.RequestMirror.BackendRef)
	case filter.ExternalAuth != nil:
		d.refs.backend(at+".externalAuth.backendRef", &filter.ExternalAuth.BackendRef)
	case filter.ExtensionRef != nil:
		d.refs.unresolved.add(gatewayv1.RouteReasonInvalidKind, "%s.extensionRef: kind %q in group %q is not known",
			at, filter.ExtensionRef.Kind, filter.ExtensionRef.Group)
	}
}

// framing headers belong to one connection or say where a message ends: who changes them can smuggle requests, and
// HAProxy writes them itself.
var framing = []string{
	"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

func (d *ruleDraft) readHeaderChange(field string, source *gatewayv1.HTTPHeaderFilter) *HeaderChange {
	if len(source.Set) > maxConditions || len(source.Add) > maxConditions || len(source.Remove) > maxConditions {
		d.refuse(field, "set, add and remove must not have more than %d entries each", maxConditions)
		return nil
	}
	change := &HeaderChange{
		Set: d.readHeaderValues(field+".set", source.Set),
		Add: d.readHeaderValues(field+".add", source.Add),
	}
	for i, name := range source.Remove {
		d.checkHeaderName(indexed(field+".remove", i), name)
		if !slices.ContainsFunc(change.Remove, func(other string) bool { return strings.EqualFold(other, name) }) {
			change.Remove = append(change.Remove, name)
		}
	}
	d.checkHost(field, change)
	d.checkOneAction(field, change)
	return change
}

// readHeaderValues: of equivalent names the first counts, the others must be ignored.
func (d *ruleDraft) readHeaderValues(field string, sources []gatewayv1.HTTPHeader) []HeaderValue {
	var values []HeaderValue
	for i, source := range sources {
		name := string(source.Name)
		if slices.ContainsFunc(values, func(v HeaderValue) bool { return strings.EqualFold(v.Name, name) }) {
			continue
		}
		at := indexed(field, i)
		d.checkHeaderName(at+".name", name)
		if wrong := checkHeaderValue(source.Value); wrong != "" {
			d.refuse(at+".value", "%s %s", quoted(source.Value), wrong)
		}
		values = append(values, HeaderValue{name, source.Value})
	}
	return values
}

func (d *ruleDraft) checkHeaderName(field, name string) {
	if wrong := checkToken(name, maxName); wrong != "" {
		d.refuse(field, "%q %s", name, wrong)
	}
	if slices.Contains(framing, strings.ToLower(name)) {
		d.refuse(field, "%q belongs to the connection and must not be changed", name)
	}
}

// checkHost lets Host be set, for the text of the API allows that it is modified, but never be missing or doubled.
func (d *ruleDraft) checkHost(field string, change *HeaderChange) {
	isHost := func(v HeaderValue) bool { return strings.EqualFold(v.Name, "host") }
	if slices.ContainsFunc(change.Add, isHost) || slices.ContainsFunc(change.Remove, func(name string) bool {
		return strings.EqualFold(name, "host")
	}) {
		d.refuse(field, "Host can be set, but not be added to or removed: a request has exactly one")
	}
	for _, value := range change.Set {
		if isHost(value) && !isAuthority(value.Value) {
			d.refuse(field+".set", "Host: %s must be a host name or IP address, and a port if need be", quoted(value.Value))
		}
	}
}

// checkOneAction enforces that "filters specifying multiple actions of the same or different type for any one header name
// are invalid", as far as different types go: of one type, the first counts.
func (d *ruleDraft) checkOneAction(field string, change *HeaderChange) {
	seen := make(map[string]bool)
	names := slices.Clone(change.Remove)
	for _, value := range slices.Concat(change.Set, change.Add) {
		names = append(names, value.Name)
	}
	for _, name := range names {
		if key := strings.ToLower(name); seen[key] {
			d.refuse(field, "only one of set, add and remove may name the header %q", name)
		} else {
			seen[key] = true
		}
	}
}
