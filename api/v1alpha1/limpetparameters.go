package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// LimpetParameters are settings of Gateways that the Gateway API has no fields for. A GatewayClass names one in
// spec.parametersRef, for all its Gateways; a Gateway names one in its own namespace in
// spec.infrastructure.parametersRef, whose fields go before those of the class.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=gateway-api,path=limpetparameters,singular=limpetparameters
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LimpetParameters struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is set; a field that is left out says nothing.
	// +required
	Spec LimpetParametersSpec `json:"spec"`
}

// LimpetParametersList is a list of LimpetParameters.
//
// +kubebuilder:object:root=true
type LimpetParametersList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LimpetParameters `json:"items"`
}

// LimpetParametersSpec is what LimpetParameters set.
type LimpetParametersSpec struct {
	// Service is about the Service that each Gateway gets in a cluster.
	// +optional
	Service *ServiceParameters `json:"service,omitempty"`

	// TrustedProxies are the addresses, or ranges of them, of proxies before the Gateway. What they say of a client in
	// X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Port and Forwarded is kept and extended; what anybody else says there
	// is replaced. An empty list trusts nobody.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	TrustedProxies []AddressRange `json:"trustedProxies,omitempty"`

	// ProxyProtocol is about load balancers that put a header of the PROXY protocol before each connection.
	// +optional
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol,omitempty"`

	// Timeouts are those of connections from clients.
	// +optional
	Timeouts *ClientTimeouts `json:"timeouts,omitempty"`

	// TLS is about connections from clients to listeners that terminate TLS.
	// +optional
	TLS *TLSParameters `json:"tls,omitempty"`

	// HAProxy has settings that one HAProxy can have only once, and so all its Gateways together. They count in the
	// LimpetParameters of a GatewayClass, of the oldest one that sets any; elsewhere a condition says that they are ignored.
	// +optional
	HAProxy *HAProxyParameters `json:"haproxy,omitempty"`
}

// AddressRange is an IPv4 or IPv6 address, or a range of them as "10.0.0.0/8" or "2001:db8::/32".
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isIP(self) || isCIDR(self)",message="must be an address, or a range as 10.0.0.0/8"
type AddressRange string

// ServiceParameters are about the Service of a Gateway.
type ServiceParameters struct {
	// Type of the Service: LoadBalancer, NodePort or ClusterIP. What the installation says if left out.
	// +optional
	// +kubebuilder:validation:Enum=LoadBalancer;NodePort;ClusterIP
	Type *corev1.ServiceType `json:"type,omitempty"`

	// Annotations of the Service, which load balancers read. Those of a Gateway's parameters are added to those of its
	// class's, and the Gateway's spec.infrastructure.annotations go before both.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ProxyProtocol is about load balancers that speak the PROXY protocol, version 1 or 2.
type ProxyProtocol struct {
	// Trusted are the addresses, or ranges of them, of these load balancers. A connection from one of them must begin with
	// the header, whose client address is then the client's; all other connections are served without one. An empty list
	// switches the protocol off.
	// +required
	// +kubebuilder:validation:MaxItems=64
	Trusted []AddressRange `json:"trusted"`
}

// ClientTimeouts bound how long a client may do nothing.
type ClientTimeouts struct {
	// Idle is how long a client may neither send nor take anything while a request or a stream is under way: 5m if left out,
	// from 1s to 24h.
	// +optional
	Idle *gatewayv1.Duration `json:"idle,omitempty"`

	// Request is how long a client may take to send the header of a request: 10s if left out, from 1s to 24h.
	// +optional
	Request *gatewayv1.Duration `json:"request,omitempty"`

	// KeepAlive is how long a connection may wait for the next request: 15s if left out, from 1s to 24h.
	// +optional
	KeepAlive *gatewayv1.Duration `json:"keepAlive,omitempty"`
}

// TLSVersion is a version of TLS.
//
// +kubebuilder:validation:Enum=TLSv1.2;TLSv1.3
type TLSVersion string

// The versions of TLS that are spoken to clients.
const (
	TLS12 TLSVersion = "TLSv1.2"
	TLS13 TLSVersion = "TLSv1.3"
)

// CipherSuite is a cipher suite by OpenSSL's name: those that begin with TLS_ are for TLS 1.3, the others for TLS 1.2.
//
// +kubebuilder:validation:Enum=TLS_AES_128_GCM_SHA256;TLS_AES_256_GCM_SHA384;TLS_CHACHA20_POLY1305_SHA256;ECDHE-ECDSA-AES128-GCM-SHA256;ECDHE-RSA-AES128-GCM-SHA256;ECDHE-ECDSA-AES256-GCM-SHA384;ECDHE-RSA-AES256-GCM-SHA384;ECDHE-ECDSA-CHACHA20-POLY1305;ECDHE-RSA-CHACHA20-POLY1305
//
//nolint:lll // a marker is one line
type CipherSuite string

// TLSParameters are about TLS with clients.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minVersion) || self.minVersion != 'TLSv1.3' || !has(self.cipherSuites) || self.cipherSuites.exists(c, c.startsWith('TLS_'))",message="minVersion TLSv1.3 needs a cipher suite that begins with TLS_"
//
//nolint:lll // a marker is one line
type TLSParameters struct {
	// MinVersion is the oldest version that is spoken: TLSv1.2 if left out.
	// +optional
	MinVersion *TLSVersion `json:"minVersion,omitempty"`

	// CipherSuites are the only ones that are spoken, the preferred first. A version of TLS without a cipher suite in the list
	// is not spoken. OpenSSL's own choice if left out.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	CipherSuites []CipherSuite `json:"cipherSuites,omitempty"`
}

// AccessLog is the form of the access log.
//
// +kubebuilder:validation:Enum=None;Text;JSON
type AccessLog string

// The forms of the access log.
const (
	AccessLogNone AccessLog = "None"
	AccessLogText AccessLog = "Text"
	AccessLogJSON AccessLog = "JSON"
)

// HAProxyParameters are what one HAProxy has only once.
type HAProxyParameters struct {
	// AccessLog is a line for each request: None, Text or JSON. What the installation says if left out.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`

	// Threads that HAProxy works with: if left out, the CPUs of its container's limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads *int32 `json:"threads,omitempty"`

	// MaxConnections from clients at one time: if left out, what fits into the memory of its container's limit. More wait.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=2000000
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// Timeouts are those of connections to backends.
	// +optional
	Timeouts *BackendTimeouts `json:"timeouts,omitempty"`
}

// BackendTimeouts bound how long a backend may do nothing.
type BackendTimeouts struct {
	// Connect is how long one attempt to connect may take: 1s if left out, from 10ms to 1m.
	// +optional
	Connect *gatewayv1.Duration `json:"connect,omitempty"`

	// Idle is how long a backend may neither send nor take anything while a request is under way, so also how long it may
	// take to answer: 5m if left out, from 1s to 24h. A route's own timeouts go before it.
	// +optional
	Idle *gatewayv1.Duration `json:"idle,omitempty"`

	// Tunnel is how long a WebSocket, or another connection that was upgraded, may be idle: 1h if left out, from 1s to 168h.
	// +optional
	Tunnel *gatewayv1.Duration `json:"tunnel,omitempty"`
}
