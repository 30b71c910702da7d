package graph

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/conditions"
)

// readTLS reads the TLS configuration of a listener.
func (b *gatewayBuild) readTLS(d *listenerDraft) {
	tls := d.node.Source.TLS
	switch {
	case !d.node.Protocol.TLS() && tls != nil:
		d.refuse("tls", "must not be set for protocol %s", d.node.Source.Protocol)
		return
	case !d.node.Protocol.TLS():
		return
	case tls == nil && d.node.Protocol == HTTPS:
		d.refuse("tls", "must be set for protocol HTTPS: name a Secret in tls.certificateRefs")
		return
	case tls == nil:
		d.refuse("tls", "must be set for protocol TLS: say in tls.mode whether it is Terminate or Passthrough")
		return
	}
	d.readMode(valueOr(tls.Mode, ""))
	if d.node.Protocol == TLSPassthrough {
		return // "TLS certificates are ignored": they are the backends' matter, and so are options and certificates of clients
	}
	if len(tls.Options) > 0 {
		d.refuse("tls.options", "options are not built yet, and serving without them could be unsafe: remove them")
	}
	d.readClients()
	b.readCertificates(d, tls.CertificateRefs)
}

// readMode checks what the CRD demands: HTTPS is terminated, and for TLS the mode is said.
func (d *listenerDraft) readMode(mode gatewayv1.TLSModeType) {
	switch {
	case mode == gatewayv1.TLSModeTerminate || mode == "" && d.node.Protocol == HTTPS:
	case d.node.Protocol == HTTPS:
		d.refuse("tls.mode", "%q must be Terminate for protocol HTTPS", mode)
	case mode != gatewayv1.TLSModePassthrough:
		d.refuse("tls.mode", "%q must be Terminate or Passthrough for protocol TLS", mode)
	}
}

// readCertificates takes every certificate that can be used; a bad one fails alone.
func (b *gatewayBuild) readCertificates(d *listenerDraft, refs []gatewayv1.SecretObjectReference) {
	if len(refs) == 0 {
		d.refuse("tls.certificateRefs", "must name at least one Secret")
	}
	if len(refs) > 64 {
		d.refuse("tls.certificateRefs", "must not have more than 64 entries")
		return
	}
	for i := range refs {
		certificate, wrong := b.certificate(d.referrer(), &refs[i])
		if wrong != nil {
			// What a certificate is worth has no reason of its own here: whatever cannot be used is invalid.
			if wrong.reason == conditions.ReasonUnusableCertificate {
				wrong.reason = gatewayv1.ListenerReasonInvalidCertificateRef
			}
			d.refs.add(wrong.reason, "tls.certificateRefs[%d]: %s", i, wrong.message)
			continue
		}
		if !slices.Contains(d.node.Certificates, certificate) {
			d.node.Certificates = append(d.node.Certificates, certificate)
		}
	}
}

// certificate follows a reference to a Secret.
func (b *gatewayBuild) certificate(
	from referrer, ref *gatewayv1.SecretObjectReference,
) (*Certificate, *problem[gatewayv1.ListenerConditionReason]) {
	if group, kind := valueOr(ref.Group, ""), valueOr(ref.Kind, "Secret"); group != "" || kind != "Secret" {
		return nil, invalidCertificate("%s %q in group %q cannot hold a certificate, only a Secret can", kind, ref.Name, group)
	}
	target := objectKey{"Secret", string(valueOr(ref.Namespace, gatewayv1.Namespace(from.namespace))), string(ref.Name)}
	if !b.grants.permits(from, target) {
		return nil, &problem[gatewayv1.ListenerConditionReason]{gatewayv1.ListenerReasonRefNotPermitted, fmt.Sprintf(
			"no ReferenceGrant in namespace %q lets %ss of namespace %q refer to Secret %q",
			target.namespace, from.kind, from.namespace, target.name)}
	}
	name := types.NamespacedName{Namespace: target.namespace, Name: target.name}
	secret, found := b.secrets.Get(name.Namespace, name.Name)
	b.usedSecrets[name] = secret
	if !found {
		return nil, invalidCertificate("Secret %s does not exist", name)
	}
	certificate, err := b.certificates.read(secret)
	if err != nil {
		wrong := invalidCertificate("Secret %s %s", name, err)
		if errors.As(err, new(*unusableError)) {
			wrong.reason = conditions.ReasonUnusableCertificate
		}
		return nil, wrong
	}
	return certificate, nil
}

func invalidCertificate(format string, args ...any) *problem[gatewayv1.ListenerConditionReason] {
	return &problem[gatewayv1.ListenerConditionReason]{
		gatewayv1.ListenerReasonInvalidCertificateRef, fmt.Sprintf(format, args...),
	}
}
