package graph

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

func (d *ruleDraft) readRewrite(field string, source *gatewayv1.HTTPURLRewriteFilter) *Rewrite {
	rewrite := &Rewrite{Hostname: string(valueOr(source.Hostname, "")), Path: source.Path}
	if source.Hostname != nil {
		if wrong := checkPreciseHostname(rewrite.Hostname); wrong != "" {
			d.refuse(field+".hostname", "%q %s", rewrite.Hostname, wrong)
		}
	}
	if source.Path != nil {
		d.checkPathModifier(field+".path", source.Path)
	}
	return rewrite
}

// readFilterLimits checks what filters do not go together with, beyond the list that they are in.
func (d *ruleDraft) readFilterLimits() {
	d.checkPrefixes("filters", &d.node.Filters)
	if d.node.Filters.Redirect != nil && len(d.source.BackendRefs) > 0 {
		d.refuse("filters", "RequestRedirect must not be used together with backendRefs")
	}
	for i := range d.node.Backends {
		field, filters := indexed("backendRefs", i)+".filters", &d.node.Backends[i].Filters
		d.checkPrefixes(field, filters)
		if filters.Redirect != nil && d.node.Filters.Rewrite != nil {
			d.problems.add(gatewayv1.RouteReasonIncompatibleFilters,
				"%s.%s: RequestRedirect and the rule's URLRewrite must not be used together", d.field, field)
		}
	}
}

// checkPrefixes: "ReplacePrefixMatch is only compatible with a PathPrefix HTTPRouteMatch", of which the CRD demands exactly one.
func (d *ruleDraft) checkPrefixes(field string, filters *Filters) {
	if d.matchesOnePrefix() {
		return
	}
	const message = "%s with path.replacePrefixMatch needs exactly one match, of type PathPrefix"
	if filters.Redirect != nil && replacesPrefix(filters.Redirect.Path) {
		d.refuse(field, message, gatewayv1.HTTPRouteFilterRequestRedirect)
	}
	if filters.Rewrite != nil && replacesPrefix(filters.Rewrite.Path) {
		d.refuse(field, message, gatewayv1.HTTPRouteFilterURLRewrite)
	}
}

// matchesOnePrefix: the default of an absent match is a prefix.
func (d *ruleDraft) matchesOnePrefix() bool {
	matches := d.source.Matches
	return len(matches) == 0 || len(matches) == 1 && isPrefix(matches[0].Path)
}

func isPrefix(path *gatewayv1.HTTPPathMatch) bool {
	return path == nil || valueOr(path.Type, gatewayv1.PathMatchPathPrefix) == gatewayv1.PathMatchPathPrefix
}

func replacesPrefix(path *gatewayv1.HTTPPathModifier) bool {
	return path != nil && path.Type == gatewayv1.PrefixMatchHTTPPathModifier
}
