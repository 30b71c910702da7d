package graph

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// routeProblems are what a route's conditions report.
type routeProblems = problems[gatewayv1.RouteConditionReason]

// references is what the references of a route lead to.
type references struct {
	// kind and namespace are the route's.
	kind, namespace string

	grants    grants
	services  backends
	xbackends xbackendTable
	// unresolved references are reported in ResolvedRefs, ignored things of Services that are used otherwise.
	unresolved routeProblems
	ignored    []string
	// needs are the objects that the outcome depends on, whether they exist or not.
	needs []objectKey
	// tls are the backends that are spoken to in TLS and shown the Gateway's client certificate.
	tls []BackendKey
	// collisions are XBackends that keep no sessions because of another one's name for them.
	collisions []collision
}

// The kinds of backends.
const (
	kindService  = "Service"
	kindXBackend = "XBackend"
)

// kindGrants stands for all ReferenceGrants of a namespace.
const kindGrants = "ReferenceGrants"

// backend follows a reference to a Service's port or to an XBackend. The field is where it stands.
func (r *references) backend(field string, ref *gatewayv1.BackendObjectReference) (BackendKey, bool) {
	if valueOr(ref.Group, "") == groupExperimental && valueOr(ref.Kind, "") == kindXBackend {
		return r.xbackend(field, ref)
	}
	if !r.supportedKind(field, ref) {
		return BackendKey{}, false
	}
	target := r.target("Service", ref)
	if !r.permitted(field, target) {
		return BackendKey{}, false
	}
	r.needs = append(r.needs, target)
	known, _ := r.services.Get(serviceKey(target.namespace, target.name))
	if known == nil || known.source == nil {
		r.unresolved.add(gatewayv1.RouteReasonBackendNotFound, "%s: Service %s/%s does not exist",
			field, target.namespace, target.name)
		return BackendKey{}, false
	}
	port, usable := r.port(field, known, ref.Port)
	if !usable {
		return BackendKey{}, false
	}
	r.note(known)
	key := BackendKey{kindService, target.namespace, target.name, port.Port}
	if known.policy(port.Name) != nil && !slices.Contains(r.tls, key) {
		r.tls = append(r.tls, key)
	}
	return key, true
}

func (r *references) supportedKind(field string, ref *gatewayv1.BackendObjectReference) bool {
	group, kind := valueOr(ref.Group, ""), valueOr(ref.Kind, "Service")
	if group == "" && kind == "Service" {
		return true
	}
	r.unresolved.add(gatewayv1.RouteReasonInvalidKind,
		"%s: kind %q in group %q is not supported, only Service in the core group and XBackend in "+groupExperimental+" are", field, kind, group)
	return false
}

func (r *references) target(kind string, ref *gatewayv1.BackendObjectReference) objectKey {
	return objectKey{kind, string(valueOr(ref.Namespace, gatewayv1.Namespace(r.namespace))), string(ref.Name)}
}

// permitted comes before any look-up: whether an object exists is nothing that another namespace may learn.
func (r *references) permitted(field string, target objectKey) bool {
	if target.namespace != r.namespace {
		r.needs = append(r.needs, objectKey{kindGrants, target.namespace, ""})
	}
	if r.grants.permits(referrer{gatewayv1.GroupName, r.kind, r.namespace}, target) {
		return true
	}
	r.unresolved.add(gatewayv1.RouteReasonRefNotPermitted,
		"%s: no ReferenceGrant in namespace %q lets %ss of namespace %q refer to Service %q",
		field, target.namespace, r.kind, r.namespace, target.name)
	return false
}

// port checks that a Service has the port and that Limpet can speak to it.
func (r *references) port(field string, known *service, number *gatewayv1.PortNumber) (*corev1.ServicePort, bool) {
	source := known.source
	name := nameOf(source)
	// CVE-2021-25740: an ExternalName leads to whatever its author wants, past every rule about references.
	if source.Spec.Type == corev1.ServiceTypeExternalName {
		r.unresolved.add(gatewayv1.RouteReasonInvalidKind,
			"%s: Service %s is of type ExternalName, which is refused (CVE-2021-25740)", field, name)
		return nil, false
	}
	if number == nil {
		r.unresolved.add(gatewayv1.RouteReasonBackendNotFound, "%s.port must be given for a Service", field)
		return nil, false
	}
	port, found := tcpPort(source, *number)
	switch {
	case !found && hasPort(source, *number):
		r.unresolved.add(gatewayv1.RouteReasonUnsupportedProtocol, "%s: port %d of Service %s is not TCP", field, *number, name)
	case !found:
		r.unresolved.add(gatewayv1.RouteReasonBackendNotFound, "%s: Service %s has no port %d, it has %s",
			field, name, *number, listPorts(source))
	default:
		if wrong := checkProtocol(r.kind, protocolOf(port), known.policy(port.Name) != nil); wrong != "" {
			r.unresolved.add(gatewayv1.RouteReasonUnsupportedProtocol, "%s: port %d of Service %s has appProtocol %q, which %s",
				field, *number, name, *port.AppProtocol, wrong)
			return nil, false
		}
		return port, true
	}
	return nil, false
}

func hasPort(source *corev1.Service, number int32) bool {
	return slices.ContainsFunc(source.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number })
}

func listPorts(source *corev1.Service) string {
	if len(source.Spec.Ports) == 0 {
		return "none"
	}
	numbers := make([]string, len(source.Spec.Ports))
	for i, port := range source.Spec.Ports {
		numbers[i] = fmt.Sprint(port.Port)
	}
	return strings.Join(numbers, ", ")
}

// note reports what a usable Service asks for and does not get.
func (r *references) note(known *service) {
	name := nameOf(known.source)
	if known.source.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		r.ignore("Service %s: spec.sessionAffinity ClientIP is not honoured yet", name)
	}
	for _, unusable := range known.unusable() {
		r.ignore("Service %s: %s", name, unusable)
	}
}

func (r *references) ignore(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !slices.Contains(r.ignored, message) {
		r.ignored = append(r.ignored, message)
	}
}
