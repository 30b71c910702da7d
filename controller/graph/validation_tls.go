package graph

import (
	"fmt"
	"regexp"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// The CRDs' limits.
const (
	maxCACertificateRefs = 8
	maxSubjectAltNames   = 5
	maxURI               = 253
)

// policyProblems are what the conditions of an object that is reported by ancestor say.
type policyProblems = problems[gatewayv1.PolicyConditionReason]

// tlsValidation is what BackendTLSPolicies and XBackends say of a backend's certificate.
type tlsValidation struct {
	// tls is nil if there is nothing that a certificate could be verified by.
	tls *BackendTLS
	// invalid is what an API server would refuse, refs which CA certificates cannot be had.
	invalid, refs policyProblems
}

// readTLSValidation reads what backends must prove. Where that is not valid, or no CA certificate can be had, tls is nil and
// nothing may be sent to the backend: GEP-1897 has it fail rather than go unverified or in plain text.
func readTLSValidation(
	field string, source *gatewayv1.BackendTLSPolicyValidation, from referrer, reader *authorityReader,
) tlsValidation {
	var v tlsValidation
	tls := &BackendTLS{Hostname: string(source.Hostname)}
	if wrong := checkPreciseHostname(tls.Hostname); wrong != "" {
		v.refuse(field+".hostname: %s %s", quoted(tls.Hostname), wrong)
	}
	tls.SubjectAltNames = v.readSubjectAltNames(field, source.SubjectAltNames)
	system := valueOr(source.WellKnownCACertificates, "")
	refs := source.CACertificateRefs
	switch {
	case len(refs) > maxCACertificateRefs:
		v.refuse("%s.caCertificateRefs must not have more than %d entries", field, maxCACertificateRefs)
	case system != "" && len(refs) > 0:
		v.refuse("%s: only one of caCertificateRefs and wellKnownCACertificates must be set", field)
	case system != "" && system != gatewayv1.WellKnownCACertificatesSystem:
		v.refuse("%s.wellKnownCACertificates: %s is not known, only System is", field, quoted(string(system)))
	case system == "" && len(refs) == 0:
		v.refuse("%s: caCertificateRefs or wellKnownCACertificates must be set", field)
	case len(refs) > 0:
		tls.Authority = v.readAuthority(field, refs, from, reader)
	}
	if !v.invalid.any() && (system != "" || tls.Authority != nil) {
		v.tls = tls
	}
	return v
}

func (v *tlsValidation) refuse(format string, args ...any) {
	v.invalid.add(gatewayv1.PolicyReasonInvalid, format, args...)
}

func (v *tlsValidation) readAuthority(
	field string, refs []gatewayv1.LocalObjectReference, from referrer, reader *authorityReader,
) *Authority {
	local := make([]gatewayv1.ObjectReference, len(refs))
	for i, ref := range refs {
		local[i] = gatewayv1.ObjectReference{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	}
	authority, wrong := reader.read(from, local)
	for _, problem := range wrong {
		v.refs.add(policyReason(problem.reason), "%s.caCertificateRefs%s", field, problem.message)
	}
	return authority
}

// policyReason is what a policy calls what is wrong with a reference.
func policyReason(reason authorityReason) gatewayv1.PolicyConditionReason {
	switch reason {
	case authorityKind:
		return gatewayv1.BackendTLSPolicyReasonInvalidKind
	case authorityUnusable:
		return gatewayv1.PolicyConditionReason(conditions.ReasonUnusableCertificate)
	}
	return gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef
}

func (v *tlsValidation) readSubjectAltNames(field string, sources []gatewayv1.SubjectAltName) []SubjectAltName {
	if len(sources) > maxSubjectAltNames {
		v.refuse("%s.subjectAltNames must not have more than %d entries", field, maxSubjectAltNames)
		return nil
	}
	var names []SubjectAltName
	for i := range sources {
		source := &sources[i]
		if wrong := checkSubjectAltName(source); wrong != "" {
			v.refuse("%s.subjectAltNames[%d].%s", field, i, wrong)
			continue
		}
		names = append(names, SubjectAltName{DNS: string(source.Hostname), URI: string(source.URI)})
	}
	return names
}

func checkSubjectAltName(source *gatewayv1.SubjectAltName) string {
	hostname, uri := string(source.Hostname), string(source.URI)
	switch source.Type {
	case gatewayv1.HostnameSubjectAltNameType:
		if uri != "" {
			return "uri must not be set for type Hostname"
		}
		if wrong := checkHostname(hostname); wrong != "" {
			return fmt.Sprintf("hostname: %s %s", quoted(hostname), wrong)
		}
	case gatewayv1.URISubjectAltNameType:
		if hostname != "" {
			return "hostname must not be set for type URI"
		}
		if wrong := checkAbsoluteURI(uri); wrong != "" {
			return fmt.Sprintf("uri: %s %s", quoted(uri), wrong)
		}
	default:
		return fmt.Sprintf("type: %s is not one of Hostname, URI", quoted(string(source.Type)))
	}
	return ""
}

// absoluteURI is RFC 3986's expression, which the CRD has too, for a URI with a scheme and an authority.
var absoluteURI = regexp.MustCompile(`^[^:/?#]+://[^/?#]*[^?#]*(\?[^#]*)?(#.*)?$`)

func checkAbsoluteURI(uri string) string {
	if wrong := checkText(uri, maxURI); wrong != "" {
		return wrong
	}
	if !absoluteURI.MatchString(uri) {
		return "must be a URI with a scheme, such as spiffe://example.com/ns/default/sa/shop"
	}
	return ""
}
