package cluster

import (
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// named are the Secrets and ConfigMaps that objects name, whether they may or not: that is for others to say.
type named map[Name]bool

// sameNamers says that nothing changed that names any.
func sameNamers(a, b Snapshot) bool {
	return a.Gateways.Same(b.Gateways) && a.ListenerSets.Same(b.ListenerSets) && a.XBackends.Same(b.XBackends) &&
		a.Policies.Same(b.Policies)
}

func namedBy(s Snapshot) named {
	all := named{}
	for _, gateway := range s.Gateways.All() {
		for i := range gateway.Spec.Listeners {
			all.certificates(gateway.Namespace, gateway.Spec.Listeners[i].TLS)
		}
		if gateway.Spec.TLS != nil {
			all.gateway(gateway.Namespace, gateway.Spec.TLS)
		}
	}
	for _, set := range s.ListenerSets.All() {
		for i := range set.Spec.Listeners {
			all.certificates(set.Namespace, set.Spec.Listeners[i].TLS)
		}
	}
	for _, policy := range s.Policies.All() {
		all.authorities(policy.Namespace, &policy.Spec.Validation)
	}
	for _, backend := range s.XBackends.All() {
		if tls := backend.Spec.TLS; tls != nil {
			all.secret(backend.Namespace, tls.ClientCertificateRef)
			all.authorities(backend.Namespace, tls.Validation)
		}
	}
	return all
}

func (n named) certificates(namespace string, tls *gatewayv1.ListenerTLSConfig) {
	if tls == nil {
		return
	}
	for i := range tls.CertificateRefs {
		n.secret(namespace, &tls.CertificateRefs[i])
	}
}

func (n named) gateway(namespace string, tls *gatewayv1.GatewayTLSConfig) {
	if tls.Backend != nil {
		n.secret(namespace, tls.Backend.ClientCertificateRef)
	}
	if tls.Frontend == nil {
		return
	}
	n.validation(namespace, tls.Frontend.Default.Validation)
	for i := range tls.Frontend.PerPort {
		n.validation(namespace, tls.Frontend.PerPort[i].TLS.Validation)
	}
}

func (n named) validation(namespace string, of *gatewayv1.FrontendTLSValidation) {
	if of == nil {
		return
	}
	for _, ref := range of.CACertificateRefs {
		in := namespace
		if ref.Namespace != nil {
			in = string(*ref.Namespace)
		}
		n.add(string(ref.Group), string(ref.Kind), in, string(ref.Name))
	}
}

func (n named) authorities(namespace string, of *gatewayv1.BackendTLSPolicyValidation) {
	if of == nil {
		return
	}
	for _, ref := range of.CACertificateRefs {
		n.add(string(ref.Group), string(ref.Kind), namespace, string(ref.Name))
	}
}

func (n named) secret(namespace string, ref *gatewayv1.SecretObjectReference) {
	if ref == nil {
		return
	}
	group, kind := "", "Secret"
	if ref.Group != nil {
		group = string(*ref.Group)
	}
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	n.add(group, kind, namespace, string(ref.Name))
}

func (n named) add(group, kind, namespace, name string) {
	if group == "" && (kind == "Secret" || kind == "ConfigMap") {
		n[Name{kind, types.NamespacedName{Namespace: namespace, Name: name}}] = true
	}
}

// String is the object in words, as "HTTPRoute default/shop".
func (n Name) String() string {
	return objectID{kind: n.Kind, namespace: n.Namespace, name: n.Name}.String()
}
