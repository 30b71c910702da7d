package graph

import (
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// xbackend follows a reference to an XBackend, which has one port and is of the route's namespace (GEP-4894).
func (r *references) xbackend(field string, ref *gatewayv1.BackendObjectReference) (BackendKey, bool) {
	target := r.target(kindXBackend, ref)
	if target.namespace != r.namespace {
		r.unresolved.add(gatewayv1.RouteReasonRefNotPermitted, "%s: an XBackend must be in the route's namespace", field)
		return BackendKey{}, false
	}
	r.needs = append(r.needs, target)
	known, found := r.xbackends.Get(serviceKey(target.namespace, target.name))
	name := target.namespace + "/" + target.name
	switch {
	case ref.Port != nil:
		r.unresolved.add(gatewayv1.RouteReasonUnsupportedValue, "%s.port must not be set for an XBackend", field)
	case !found:
		r.unresolved.add(gatewayv1.RouteReasonBackendNotFound, "%s: XBackend %s does not exist", field, name)
	case known.invalid.any():
		r.unresolved.add(gatewayv1.RouteReasonUnsupportedValue, "%s: XBackend %s is not valid: %s", field, name,
			strings.TrimSuffix(known.invalid.text(), "."))
	case known.protocol == gatewayxv1alpha1.BackendProtocolTCP && !layer4(r.kind):
		r.unresolved.add(gatewayv1.RouteReasonUnsupportedProtocol, "%s: XBackend %s has spec.protocol TCP, which only TCPRoutes and "+
			"TLSRoutes lead to", field, name)
	case known.unsupported.any():
		reason := gatewayv1.RouteConditionReason(known.unsupported.reason())
		r.unresolved.add(reason, "%s: XBackend %s: %s", field, name, strings.TrimSuffix(known.unsupported.text(), "."))
	case r.kind == KindGRPCRoute && known.http1:
		r.unresolved.add(gatewayv1.RouteReasonUnsupportedProtocol,
			"%s: XBackend %s has protocol %s, which cannot carry gRPC: use GRPC, H2C, HTTP2 or HTTP", field, name, *known.source.Spec.Protocol)
	default:
		return BackendKey{Kind: kindXBackend, Namespace: target.namespace, Name: target.name}, true
	}
	return BackendKey{}, false
}

// ignoreSessions reports the sessions that no token can keep: a connection has neither cookies nor headers.
func (r *references) ignoreSessions(rule *Rule) {
	for i := range rule.Backends {
		if node, _ := r.sessionOf(&rule.Backends[i]); node != nil {
			r.ignore("XBackend %s: spec.sessionPersistence needs HTTP, connections are balanced without", nameOf(node.source))
		}
	}
}

// giveSessions has the backends of a rule keep the sessions that their XBackends ask for.
//
// GEP-1619: two of a split must not share the name of a cookie or header. The older XBackend keeps it, and the younger one is
// balanced without sessions, which its status says.
func (r *references) giveSessions(field string, rule *Rule) {
	owners := make(map[string]*xbackend)
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		node, name := r.sessionOf(ref)
		if node == nil {
			continue
		}
		if owner := owners[name]; owner == nil || older(node.source, owner.source) < 0 {
			owners[name] = node
		}
	}
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		node, name := r.sessionOf(ref)
		if node == nil {
			continue
		}
		if owner := owners[name]; owner != node && node.session.Name != "" {
			r.collisions = append(r.collisions, collision{nameOf(node.source), fmt.Sprintf(
				"%s of a route has XBackend %s too, whose session has the name %q as well: there it does not keep its own",
				field, nameOf(owner.source), node.session.Name)})
			continue
		}
		ref.Session = node.session
	}
}

// sessionOf returns the XBackend of a reference if it keeps sessions, and what they are told apart by.
func (r *references) sessionOf(ref *BackendRef) (*xbackend, string) {
	if ref.Invalid || ref.Backend.Kind != kindXBackend {
		return nil, ""
	}
	node, found := r.xbackends.Get(serviceKey(ref.Backend.Namespace, ref.Backend.Name))
	switch {
	case !found || node.session == nil:
		return nil, ""
	case node.session.Name == "":
		return node, "XBackend " + ref.Backend.Namespace + "/" + ref.Backend.Name
	case node.session.Type == gatewayv1.HeaderBasedSessionPersistence:
		return node, "Header " + strings.ToLower(node.session.Name)
	default:
		return node, "Cookie " + node.session.Name
	}
}
