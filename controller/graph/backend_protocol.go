package graph

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The values of appProtocol that Limpet knows, in lower case: those of KEP-3726, the IANA names of HTTP, and grpc, which many
// write for want of a standard one. GEP-1911: the value of the Service's port counts.
const (
	protocolHTTP  = "http"
	protocolHTTPS = "https"
	protocolGRPC  = "grpc"
	protocolH2C   = "kubernetes.io/h2c"
	protocolWS    = "kubernetes.io/ws"
	protocolWSS   = "kubernetes.io/wss"
)

// notGRPC are spoken in HTTP/1.1, which cannot carry gRPC: "If a Route is not able to send traffic to the backend using the
// specified protocol then the backend is considered invalid".
var notGRPC = []string{protocolHTTP, protocolWS, protocolWSS}

// protocolOf is a port's appProtocol in lower case: people write HTTP and HTTPS in capitals too.
func protocolOf(port *corev1.ServicePort) string {
	return strings.ToLower(valueOr(port.AppProtocol, ""))
}

// checkProtocol says why a kind of route cannot speak to a port of that appProtocol; tls says that a BackendTLSPolicy targets it.
func checkProtocol(route, protocol string, tls bool) string {
	if layer4(route) {
		return "" // bytes are forwarded, whatever they mean
	}
	if route == KindGRPCRoute && slices.Contains(notGRPC, protocol) {
		return "cannot carry gRPC: use kubernetes.io/h2c, grpc or none, or https with a BackendTLSPolicy"
	}
	switch protocol {
	case "", protocolHTTP, protocolGRPC, protocolWS, protocolH2C:
		// GEP-1897: a policy demands TLS whatever is spoken inside, so h2c with one is HTTP/2 over TLS.
		return ""
	case protocolHTTPS, protocolWSS:
		// GEP-1911 takes wss with a BackendTLSPolicy only. Nobody said whom to trust: TLS without verification is as bad as none.
		if !tls {
			return "is TLS: a BackendTLSPolicy must say whose certificates to trust"
		}
		return ""
	default:
		return "Limpet does not speak: use http, https, grpc, kubernetes.io/h2c, kubernetes.io/ws or kubernetes.io/wss"
	}
}

// speaksHTTP2 says whether a port is spoken to in HTTP/2 only.
func speaksHTTP2(port *corev1.ServicePort) bool {
	protocol := protocolOf(port)
	return protocol == protocolH2C || protocol == protocolGRPC
}
