package graph

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevalidation "k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// maxMatchLabels is the CRD's limit.
const maxMatchLabels = 64

// xbackendSettings is what the spec of an XBackend says, and what its references lead to.
type xbackendSettings struct {
	tlsValidation

	// unsupported is why Limpet cannot serve it, valid as it is.
	unsupported policyProblems
	// protocol as given, HTTP by default.
	protocol gatewayxv1alpha1.BackendProtocol
	http2    bool
	// http1 says that it is not to be spoken to in HTTP/2.
	http1 bool
	// demandsTLS says that nothing may go there in plain text.
	demandsTLS bool
	// external is the name and port to resolve, "" for a selector of endpoints.
	external string
	session  *Session
	// needs are the objects that it refers to.
	needs []objectKey
}

// xbackendInput is what XBackends are read against.
type xbackendInput struct {
	authorities *authorities
	configMaps  cluster.Objects[*corev1.ConfigMap]
	secrets     cluster.Objects[*corev1.Secret]
}

// readXBackend checks what the CRD does, since objects from files never met it, and follows the references.
func readXBackend(source *gatewayxv1alpha1.XBackend, in *xbackendInput) *xbackendSettings {
	s := &xbackendSettings{}
	spec := &source.Spec
	if spec.Port.Number < 1 || spec.Port.Number > 65535 {
		s.refuse("spec.port.number must be from 1 to 65535, not %d", spec.Port.Number)
	}
	s.readType(spec)
	s.readTLS(source, in)
	if s.external != "" && s.tls != nil && len(s.tls.SubjectAltNames) > 0 {
		s.unsupported.add(reasonUnsupportedValue, "spec.tls.validation.subjectAltNames are not built yet for type ExternalHostname")
	}
	s.readProtocol(spec)
	s.readXBackendSession(spec)
	if s.invalid.any() {
		s.tls = nil
	}
	return s
}

func (s *xbackendSettings) readType(spec *gatewayxv1alpha1.BackendSpec) {
	switch spec.Type {
	case gatewayxv1alpha1.BackendTypeExternalHostname:
		s.readExternal(spec)
	case gatewayxv1alpha1.BackendTypeEndpointSelector:
		s.readSelector(spec)
	default:
		s.refuse("spec.type: %s is not one of EndpointSelector, ExternalHostname", quoted(string(spec.Type)))
	}
}

func (s *xbackendSettings) readExternal(spec *gatewayxv1alpha1.BackendSpec) {
	if spec.EndpointSelector != nil {
		s.refuse("spec.endpointSelector must not be set for type ExternalHostname")
	}
	if spec.ExternalHostname == nil {
		s.refuse("spec.externalHostname must be set for type ExternalHostname")
		return
	}
	hostname := string(spec.ExternalHostname.Hostname)
	if wrong := checkExternalHostname(hostname); wrong != "" {
		s.refuse("spec.externalHostname.hostname: %s %s", quoted(hostname), wrong)
		return
	}
	s.external = fmt.Sprintf("%s:%d", hostname, spec.Port.Number)
}

// reasonUnsupportedValue is what routes call it.
const reasonUnsupportedValue = gatewayv1.PolicyConditionReason(gatewayv1.RouteReasonUnsupportedValue)

// checkExternalHostname takes names outside of the cluster. GEP-4894: no IP address and nothing of the cluster's domain,
// for such a name leads past the rules about references between namespaces; nor this machine, which trusts itself.
func checkExternalHostname(name string) string {
	if wrong := checkPreciseHostname(name); wrong != "" {
		return wrong
	}
	switch {
	case within(name, "cluster.local"):
		return "must not be a name of the cluster: refer to a Service, or select Pods"
	case within(name, "localhost"):
		return "must not be a name of this machine"
	case !strings.Contains(name, "."):
		return "must be a fully qualified domain name"
	}
	return ""
}

func within(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

func (s *xbackendSettings) readSelector(spec *gatewayxv1alpha1.BackendSpec) {
	if spec.ExternalHostname != nil {
		s.refuse("spec.externalHostname must not be set for type EndpointSelector")
	}
	if spec.EndpointSelector == nil {
		s.refuse("spec.endpointSelector must be set for type EndpointSelector")
		return
	}
	labels := spec.EndpointSelector.MatchLabels
	if len(labels) == 0 || len(labels) > maxMatchLabels {
		s.refuse("spec.endpointSelector.matchLabels must have from 1 to %d entries, not %d", maxMatchLabels, len(labels))
	}
	for key, value := range labels {
		if len(kubevalidation.IsQualifiedName(string(key))) > 0 || len(kubevalidation.IsValidLabelValue(string(value))) > 0 {
			s.refuse("spec.endpointSelector.matchLabels: a key or a value is none of a label")
			return
		}
	}
}

func (s *xbackendSettings) readTLS(source *gatewayxv1alpha1.XBackend, in *xbackendInput) {
	tls := source.Spec.TLS
	if tls == nil {
		return
	}
	mode := tls.Mode
	s.demandsTLS = mode != gatewayxv1alpha1.BackendTLSModeNone
	switch mode {
	case gatewayxv1alpha1.BackendTLSModeNone, gatewayxv1alpha1.BackendTLSModeServerOnly, gatewayxv1alpha1.BackendTLSModeClientAndServer:
	default:
		s.refuse("spec.tls.mode: %s is not one of None, ServerOnly, ClientAndServer", quoted(string(mode)))
	}
	if (tls.ClientCertificateRef != nil) != (mode == gatewayxv1alpha1.BackendTLSModeClientAndServer) {
		s.refuse("spec.tls.clientCertificateRef must be set for mode ClientAndServer, and for no other")
	}
	if (tls.Validation != nil) != s.demandsTLS {
		s.refuse("spec.tls.validation must be set for the modes ServerOnly and ClientAndServer, and for no other")
	}
	if tls.Validation == nil {
		return
	}
	used := make(map[types.NamespacedName]*corev1.ConfigMap)
	reader := &authorityReader{authorities: in.authorities, configMaps: in.configMaps, used: used}
	read := readTLSValidation("spec.tls.validation", tls.Validation, referrer{groupExperimental, kindXBackend, source.Namespace}, reader)
	s.tls, s.refs, s.invalid = read.tls, read.refs, append(s.invalid, read.invalid...)
	for _, ref := range tls.Validation.CACertificateRefs {
		s.needs = append(s.needs, objectKey{"ConfigMap", source.Namespace, string(ref.Name)})
	}
	if tls.ClientCertificateRef != nil {
		s.readClientCertificate(source.Namespace, tls.ClientCertificateRef, in)
	}
}

// reasonInvalidClientCertificate is what Gateways call it.
const reasonInvalidClientCertificate = gatewayv1.PolicyConditionReason(gatewayv1.GatewayReasonInvalidClientCertificateRef)

// readClientCertificate takes Secrets of the XBackend's own namespace (GEP-4894). Without the certificate that is asked for
// nothing is sent.
func (s *xbackendSettings) readClientCertificate(namespace string, ref *gatewayv1.SecretObjectReference, in *xbackendInput) {
	certificate, wrong := s.clientCertificate(namespace, ref, in)
	if wrong != "" {
		s.refs.add(reasonInvalidClientCertificate, "spec.tls.clientCertificateRef: %s", wrong)
		s.tls = nil
		return
	}
	if s.tls != nil {
		s.tls.Certificate = certificate
	}
}

func (s *xbackendSettings) clientCertificate(
	namespace string, ref *gatewayv1.SecretObjectReference, in *xbackendInput,
) (*Certificate, string) {
	if group, kind := valueOr(ref.Group, ""), valueOr(ref.Kind, "Secret"); group != "" || kind != "Secret" {
		return nil, fmt.Sprintf("%s %q in group %q cannot hold a certificate, only a Secret can", kind, ref.Name, group)
	}
	if valueOr(ref.Namespace, gatewayv1.Namespace(namespace)) != gatewayv1.Namespace(namespace) {
		return nil, "the Secret must be in the XBackend's namespace"
	}
	s.needs = append(s.needs, objectKey{"Secret", namespace, string(ref.Name)})
	secret, found := in.secrets.Get(namespace, string(ref.Name))
	if !found {
		return nil, fmt.Sprintf("Secret %s/%s does not exist", namespace, ref.Name)
	}
	certificate, err := newCertificate(secret)
	if err != nil {
		return nil, fmt.Sprintf("Secret %s/%s %s", namespace, ref.Name, err)
	}
	return certificate, ""
}

func (s *xbackendSettings) readProtocol(spec *gatewayxv1alpha1.BackendSpec) {
	s.protocol = valueOr(spec.Protocol, gatewayxv1alpha1.BackendProtocolHTTP)
	switch s.protocol {
	case gatewayxv1alpha1.BackendProtocolHTTP, gatewayxv1alpha1.BackendProtocolTCP:
	case gatewayxv1alpha1.BackendProtocolHTTP11:
		s.http1 = true
	case gatewayxv1alpha1.BackendProtocolGRPC:
		s.http2 = true
	case gatewayxv1alpha1.BackendProtocolHTTP2:
		s.http2 = true
		if !s.demandsTLS {
			s.refuse("spec.protocol HTTP2 demands TLS: use H2C for HTTP/2 in plain text")
		}
	case gatewayxv1alpha1.BackendProtocolH2C:
		s.http2 = true
		if s.demandsTLS {
			s.refuse("spec.protocol H2C is in plain text: use HTTP2 for HTTP/2 with TLS")
		}
	case gatewayxv1alpha1.BackendProtocolWSS:
		s.http1 = true
		if !s.demandsTLS {
			s.refuse("spec.protocol WSS demands TLS")
		}
	case gatewayxv1alpha1.BackendProtocolMCP:
		s.unsupported.add(gatewayv1.PolicyConditionReason(gatewayv1.RouteReasonUnsupportedProtocol),
			"spec.protocol: %s is not spoken by Limpet", s.protocol)
	default:
		s.refuse("spec.protocol: %s is not one of HTTP, HTTP11, HTTP2, H2C, GRPC, WSS, MCP, TCP", quoted(string(s.protocol)))
	}
}

func (s *xbackendSettings) readXBackendSession(spec *gatewayxv1alpha1.BackendSpec) {
	if spec.SessionPersistence != nil && spec.Type != gatewayxv1alpha1.BackendTypeEndpointSelector {
		s.refuse("spec.sessionPersistence must not be set for type %s", spec.Type)
		return
	}
	source := spec.SessionPersistence
	if source == nil {
		return
	}
	if source.Cookie == nil && source.Header == nil {
		s.refuse("spec.sessionPersistence: cookie or header must be set, {} suffices for a cookie")
		return
	}
	// It has the form that it has in a rule.
	asRule := &gatewayv1.HTTPRouteRule{SessionPersistence: source} //nolint:staticcheck // deprecated in rules, where we read it too
	rule := ruleDraft{source: asRule, node: &Rule{}, field: "spec"}
	rule.readSession()
	for _, problem := range rule.problems {
		s.refuse("%s", problem.message)
	}
	s.session = rule.node.Session
}
