package graph

import (
	"regexp"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// grpcFilters are the filters that a GRPCRoute can have.
var grpcFilters = []gatewayv1.HTTPRouteFilterType{
	gatewayv1.HTTPRouteFilterRequestHeaderModifier, gatewayv1.HTTPRouteFilterResponseHeaderModifier,
	gatewayv1.HTTPRouteFilterRequestMirror, gatewayv1.HTTPRouteFilterExtensionRef,
}

// The CRD's patterns for type Exact.
var (
	grpcService = regexp.MustCompile(`^(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*$`)
	grpcMethod  = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)
)

const (
	maxGRPCName = 1024
	// anySegment stands for a service or method that a match does not name.
	anySegment = "[^/]+"
)

// readGRPCMatch: a call of a method is a request for /<service>/<method>.
func (d *ruleDraft) readGRPCMatch(source *gatewayv1.GRPCRouteMatch, field string) Match {
	var match Match
	match.PathType, match.Path = d.readMethod(source.Method, field+".method")
	all := make([]gatewayv1.HTTPHeaderMatch, len(source.Headers))
	for i, header := range source.Headers {
		all[i] = gatewayv1.HTTPHeaderMatch{Name: gatewayv1.HTTPHeaderName(header.Name), Value: header.Value}
		if header.Type != nil {
			kind := gatewayv1.HeaderMatchType(*header.Type)
			all[i].Type = &kind
		}
	}
	match.Headers = d.readHeaders(all, field+".headers")
	return match
}

// readMethod: "If left empty or omitted, will match any service", and any method likewise; but not both.
func (d *ruleDraft) readMethod(source *gatewayv1.GRPCMethodMatch, field string) (gatewayv1.PathMatchType, string) {
	if source == nil {
		return gatewayv1.PathMatchPathPrefix, ""
	}
	service, method := valueOr(source.Service, ""), valueOr(source.Method, "")
	if service == "" && method == "" {
		d.refuse(field, "must name a service or a method")
	}
	switch kind := valueOr(source.Type, gatewayv1.GRPCMethodMatchExact); kind {
	case gatewayv1.GRPCMethodMatchExact:
		d.checkGRPCName(field+".service", service, grpcService)
		d.checkGRPCName(field+".method", method, grpcMethod)
		switch {
		case method == "":
			return gatewayv1.PathMatchPathPrefix, "/" + service
		case service == "":
			return gatewayv1.PathMatchRegularExpression, "/" + anySegment + "/" + method
		}
		return gatewayv1.PathMatchExact, "/" + service + "/" + method
	case gatewayv1.GRPCMethodMatchRegularExpression:
		return gatewayv1.PathMatchRegularExpression, "/" + d.readSegment(field+".service", service) + "/" + d.readSegment(field+".method", method)
	default:
		d.refuse(field+".type", "%q is not one of Exact, RegularExpression", kind)
		return "", ""
	}
}

func (d *ruleDraft) checkGRPCName(field, name string, pattern *regexp.Regexp) {
	switch {
	case name == "":
	case len(name) > maxGRPCName:
		d.refuse(field, "is longer than %d characters", maxGRPCName)
	case !pattern.MatchString(name):
		d.refuse(field, "%s must match %s", quoted(name), pattern)
	}
}

// readSegment puts an expression into that of the path.
func (d *ruleDraft) readSegment(field, expression string) string {
	if expression == "" {
		return anySegment
	}
	d.readRegex(expression, field)
	return "(?:" + expression + ")"
}
