package graph

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// clientsDraft is what is demanded of clients, by default or on one port, with what is wrong with it.
type clientsDraft struct {
	// field of the Gateway that says so.
	field string
	// validation is nil where nothing is demanded, or cannot be.
	validation *ClientValidation
	// refs says which CA certificates cannot be used. The others suffice, unless refused says that listeners that depend on
	// this must not be served.
	refs    problems[authorityReason]
	refused listenerProblems
}

// readFrontendTLS reads which certificates clients must show (GEP-91). What is wrong with it hurts the HTTPS listeners that
// it applies to, and no others.
func (b *gatewayBuild) readFrontendTLS(d *gatewayDraft) {
	tls := d.node.Source.Spec.TLS
	if tls == nil || tls.Frontend == nil {
		return
	}
	if len(tls.Frontend.PerPort) > 64 {
		d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.tls.frontend.perPort must not have more than 64 entries")
	}
	d.clients = b.readValidation(d, "spec.tls.frontend.default", tls.Frontend.Default.Validation)
	d.clientsOf = make(map[gatewayv1.PortNumber]clientsDraft, len(tls.Frontend.PerPort))
	for i, entry := range tls.Frontend.PerPort {
		if _, seen := d.clientsOf[entry.Port]; seen {
			d.refused.add(gatewayv1.GatewayReasonInvalid, "spec.tls.frontend.perPort[%d]: another entry has port %d", i, entry.Port)
		}
		d.clientsOf[entry.Port] = b.readValidation(d, fmt.Sprintf("spec.tls.frontend.perPort[%d].tls", i), entry.TLS.Validation)
	}
}

func (b *gatewayBuild) readValidation(d *gatewayDraft, field string, source *gatewayv1.FrontendTLSValidation) clientsDraft {
	clients := clientsDraft{field: field + ".validation"}
	if source == nil {
		return clients
	}
	if mode := source.Mode; mode != "" && mode != gatewayv1.AllowValidOnly && mode != gatewayv1.AllowInsecureFallback {
		clients.refused.add(gatewayv1.ListenerReasonUnsupportedValue, "%s.mode of the Gateway: %q must be %s or %s", clients.field, mode,
			gatewayv1.AllowValidOnly, gatewayv1.AllowInsecureFallback)
	}
	refs := source.CACertificateRefs
	if len(refs) == 0 || len(refs) > 16 {
		clients.refs.add(authorityInvalid, ": must have from 1 to 16 entries, not %d", len(refs))
		refs = nil
	}
	authority, wrong := b.authorities.read(referrer{gatewayv1.GroupName, kindGateway, d.node.Source.Namespace}, refs)
	clients.refs = append(clients.refs, wrong...)
	if authority == nil {
		clients.refused.add(gatewayv1.ListenerReasonNoValidCACertificate,
			"%s.caCertificateRefs of the Gateway: no CA certificate can be used, so no client could prove who it is", clients.field)
		return clients
	}
	clients.validation = &ClientValidation{
		Authority: authority, InsecureFallback: source.Mode == gatewayv1.AllowInsecureFallback,
	}
	return clients
}

// insecureFields are those that let in clients whose certificate is not valid.
func (d *gatewayDraft) insecureFields() []string {
	tls := d.node.Source.Spec.TLS
	if tls == nil || tls.Frontend == nil {
		return nil
	}
	var fields []string
	if insecure(tls.Frontend.Default) {
		fields = append(fields, "spec.tls.frontend.default")
	}
	for i, entry := range tls.Frontend.PerPort {
		if insecure(entry.TLS) {
			fields = append(fields, fmt.Sprintf("spec.tls.frontend.perPort[%d] (port %d)", i, entry.Port))
		}
	}
	return fields
}

func insecure(tls gatewayv1.TLSConfig) bool {
	return tls.Validation != nil && tls.Validation.Mode == gatewayv1.AllowInsecureFallback
}

// readClients takes over what the Gateway demands of clients on the listener's port. An entry for the port overrides the
// default, also to demand nothing.
func (d *listenerDraft) readClients() {
	clients, found := d.gateway.clientsOf[d.node.Source.Port]
	if !found {
		clients = d.gateway.clients
	}
	d.node.Clients = clients.validation
	for _, wrong := range clients.refs {
		message := wrong.message
		if d.node.Namespace() != d.gateway.node.Source.Namespace {
			// What the Gateway's owner refers to is not for everybody who may add a listener.
			message = " of Gateway " + d.gateway.node.Key().String() + " are not all valid: see the conditions of its own listeners"
		}
		d.refs.add(gatewayv1.ListenerConditionReason(wrong.reason), "%s.caCertificateRefs%s", clients.field, message)
	}
	d.refused = append(d.refused, clients.refused...)
}
