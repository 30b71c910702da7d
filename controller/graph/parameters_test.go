package graph

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
)

// parametersOf are LimpetParameters with that spec.
func parametersOf(name, spec string) string {
	return fmt.Sprintf("kind: LimpetParameters\nmetadata: {name: %s, namespace: default}\nspec: %s\n---\n", name, spec)
}

// classOfBoth is the GatewayClass "limpet" with the LimpetParameters "class", and gatewayOfBoth a Gateway of it with others.
const (
	classOfBoth = `kind: GatewayClass
metadata: {name: limpet}
spec:
  controllerName: limpet.dev/gateway-controller
  parametersRef: {group: limpet.dev, kind: LimpetParameters, name: class, namespace: default}
---
`
	gatewayOfBoth = `kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: limpet
  infrastructure: {parametersRef: {group: limpet.dev, kind: LimpetParameters, name: own}}
  listeners: [{name: http, port: 80, protocol: HTTP}]`
)

func TestParametersOfAGatewayGoBeforeThoseOfItsClass(t *testing.T) {
	g := build(t, parametersOf("class", `
  service: {type: NodePort, annotations: {a: class, b: class}}
  trustedProxies: [10.0.0.0/8]
  proxyProtocol: {trusted: [10.1.0.0/16, "::1"]}
  timeouts: {idle: 1m, request: 2s}
  tls: {minVersion: TLSv1.3}
  haproxy: {threads: 3, accessLog: JSON, maxConnections: 1000, timeouts: {connect: 500ms, idle: 1h, tunnel: 2h}}`)+
		parametersOf("own", `
  service: {type: ClusterIP, annotations: {b: own}}
  trustedProxies: []
  timeouts: {request: 3s, keepAlive: 4s}
  tls: {cipherSuites: [TLS_AES_128_GCM_SHA256, ECDHE-RSA-AES128-GCM-SHA256]}`)+classOfBoth+gatewayOfBoth)
	expect(t, g.Classes[0].Conditions, "Accepted=True/Accepted SupportedVersion=True/SupportedVersion")
	expect(t, g.Gateways[0].Conditions, gatewayOK)
	want := fmt.Sprintf("%+v", Parameters{
		Service:        ServiceParameters{Type: corev1.ServiceTypeClusterIP, Annotations: map[string]string{"a": "class", "b": "own"}},
		TrustedProxies: []netip.Prefix{},
		ProxyProtocol:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")},
		Timeouts:       ClientTimeouts{Idle: time.Minute, Request: 3 * time.Second, KeepAlive: 4 * time.Second},
		TLS: TLSParameters{Min: limpetv1alpha1.TLS13, CipherSuites13: []string{"TLS_AES_128_GCM_SHA256"},
			CipherSuites12: []string{"ECDHE-RSA-AES128-GCM-SHA256"}},
	})
	if got := fmt.Sprintf("%+v", g.Gateways[0].Parameters); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if g.Gateways[0].Parameters.TrustedProxies == nil {
		t.Error("an empty list of the Gateway says as much as none")
	}
	haproxy := HAProxyParameters{limpetv1alpha1.AccessLogJSON, 3, 1000, 500 * time.Millisecond, time.Hour, 2 * time.Hour}
	if g.HAProxy != haproxy {
		t.Errorf("got %+v, want %+v", g.HAProxy, haproxy)
	}
}

func TestParametersThatAreNotValidAreRefusedWithTheField(t *testing.T) {
	for spec, message := range map[string]string{
		"{timeouts: {idle: soon}}":                                                  `spec.timeouts.idle is "soon": give a duration from 1s to 24h0m0s`,
		"{timeouts: {request: 0s}}":                                                 "spec.timeouts.request",
		"{timeouts: {keepAlive: 25h}}":                                              "spec.timeouts.keepAlive",
		"{trustedProxies: [10.0.0.0/33]}":                                           `spec.trustedProxies[0] is "10.0.0.0/33": give an address`,
		"{trustedProxies: [\"fe80::1%eth0\"]}":                                      "spec.trustedProxies[0]",
		"{trustedProxies: [" + strings.Repeat("10.0.0.1,", 65) + "]}":               "65 entries",
		"{proxyProtocol: {}}":                                                       "spec.proxyProtocol.trusted must be given",
		"{proxyProtocol: {trusted: [\"10.0.0.1\\n  x\"]}}":                          "spec.proxyProtocol.trusted[0]",
		"{service: {type: ExternalName}}":                                           "spec.service.type",
		"{service: {annotations: {\"a b\": c}}}":                                    `holds "a b"`,
		"{tls: {minVersion: TLSv1.1}}":                                              "give TLSv1.2 or TLSv1.3",
		"{tls: {cipherSuites: []}}":                                                 "must not be empty",
		"{tls: {cipherSuites: [RC4-MD5]}}":                                          `spec.tls.cipherSuites[0] is "RC4-MD5"`,
		"{tls: {cipherSuites: [TLS_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]}}":   "is there twice",
		"{tls: {minVersion: TLSv1.3, cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]}}": "leaves no version",
		"{haproxy: {threads: 65}}":                                                  "spec.haproxy.threads",
		"{haproxy: {maxConnections: 1}}":                                            "spec.haproxy.maxConnections",
		"{haproxy: {accessLog: loud}}":                                              "give None, Text or JSON",
		"{haproxy: {timeouts: {connect: 1ms}}}":                                     "spec.haproxy.timeouts.connect",
		"{haproxy: {timeouts: {idle: 1ms}}}":                                        "spec.haproxy.timeouts.idle",
		"{haproxy: {timeouts: {tunnel: 169h}}}":                                     "spec.haproxy.timeouts.tunnel",
	} {
		g := build(t, parametersOf("own", spec)+parametersOf("class", "{}")+classOfBoth+gatewayOfBoth)
		expect(t, g.Gateways[0].Conditions, "Accepted=False/InvalidParameters ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid",
			"LimpetParameters default/own", message)
		g = build(t, parametersOf("own", "{}")+parametersOf("class", spec)+classOfBoth+gatewayOfBoth)
		expect(t, g.Classes[0].Conditions, "Accepted=False/InvalidParameters SupportedVersion=True/SupportedVersion",
			"LimpetParameters default/class", message)
	}
}

func TestTLSOfAGatewayAndItsClassMustLeaveAVersion(t *testing.T) {
	g := build(t, parametersOf("class", "{tls: {minVersion: TLSv1.3}}")+
		parametersOf("own", "{tls: {cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]}}")+classOfBoth+gatewayOfBoth)
	expect(t, g.Gateways[0].Conditions, "Accepted=False/InvalidParameters ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid",
		"together with that of the GatewayClass leaves no version")
}

func TestOnlyLimpetParametersCanBeNamed(t *testing.T) {
	g := build(t, "kind: GatewayClass\nmetadata: {name: limpet}\nspec: {controllerName: limpet.dev/gateway-controller, "+
		"parametersRef: {group: \"\", kind: ConfigMap, name: c, namespace: default}}")
	expect(t, g.Classes[0].Conditions, "Accepted=False/InvalidParameters SupportedVersion=True/SupportedVersion",
		`names ConfigMap "c"`, "only LimpetParameters of group limpet.dev")
}

func TestWhatOneHAProxyHasOnlyOnceIsNotForGateways(t *testing.T) {
	g := build(t, parametersOf("class", "{}")+parametersOf("own", "{haproxy: {threads: 4}}")+classOfBoth+gatewayOfBoth)
	expect(t, g.Gateways[0].Conditions, gatewayOK+" limpet.dev/Ignored=True/NotBuilt",
		"spec.haproxy of LimpetParameters default/own: one HAProxy serves all Gateways")
	if g.HAProxy != (HAProxyParameters{}) {
		t.Errorf("a Gateway sets %+v", g.HAProxy)
	}
}

func TestTheOldestClassDecidesWhatOneHAProxyHasOnlyOnce(t *testing.T) {
	class := func(name, created, parameters string) string {
		return fmt.Sprintf("kind: GatewayClass\nmetadata: {name: %s, creationTimestamp: %q}\nspec: {controllerName: "+
			"limpet.dev/gateway-controller, parametersRef: {group: limpet.dev, kind: LimpetParameters, name: %s, namespace: default}}\n---\n",
			name, created, parameters)
	}
	g := build(t, parametersOf("says-nothing", "{}")+parametersOf("two", "{haproxy: {threads: 2}}")+
		class("a", "2026-01-03T00:00:00Z", "three")+class("b", "2026-01-02T00:00:00Z", "two")+class("c", "2026-01-01T00:00:00Z", "says-nothing")+
		class("d", "2026-01-04T00:00:00Z", "two")+strings.TrimSuffix(parametersOf("three", "{haproxy: {threads: 3}}"), "---\n"))
	const ok = "Accepted=True/Accepted SupportedVersion=True/SupportedVersion"
	expect(t, g.Classes[0].Conditions, ok+" limpet.dev/Ignored=True/NotBuilt", `GatewayClass "b", which is older, decides`)
	for _, other := range g.Classes[1:] {
		expect(t, other.Conditions, ok)
	}
	if g.HAProxy.Threads != 2 {
		t.Errorf("%d threads, want those of the oldest class that says a number", g.HAProxy.Threads)
	}
}
