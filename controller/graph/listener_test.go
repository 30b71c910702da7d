package graph

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// withListeners is a Gateway with the given listeners, each a flow mapping.
func withListeners(listeners ...string) string {
	return class + gatewayWith("gw", "listeners:\n  - "+strings.Join(listeners, "\n  - "))
}

// both are the kinds that a listener takes by default.
const both = "HTTPRoute GRPCRoute"

func TestListeners(t *testing.T) {
	t.Parallel()
	const (
		value   = "Accepted=False/UnsupportedValue Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid"
		proto   = "Accepted=False/UnsupportedProtocol Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid"
		kinds   = "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/InvalidRouteKinds"
		noCert  = "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCertificateRef Programmed=False/Invalid"
		noGrant = "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid"
		badTLS  = "Accepted=False/UnsupportedValue Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCertificateRef Programmed=False/Invalid"
	)
	for _, test := range []struct {
		name, listener, want, kinds string
		messages                    []string
	}{
		{"HTTP is served", "{name: l, port: 80, protocol: HTTP}", listenerOK, both, nil},
		{"a hostname is taken", "{name: l, port: 80, protocol: HTTP, hostname: '*.example.com'}", listenerOK, both, nil},
		{"an empty hostname is none", "{name: l, port: 80, protocol: HTTP, hostname: ''}", listenerOK, both, nil},
		{"UDP is not served and supports no kind", "{name: l, port: 80, protocol: UDP}", proto, "", []string{`"UDP"`}},
		{"TCP", "{name: l, port: 80, protocol: TCP}", listenerOK, "TCPRoute", nil},
		{"TCP has no hostname", "{name: l, port: 80, protocol: TCP, hostname: a.com}", value, "TCPRoute", []string{"hostname: must not be set"}},
		{"TCP has no TLS", "{name: l, port: 80, protocol: TCP, tls: {mode: Passthrough}}", value, "TCPRoute", []string{"tls: must not be set"}},
		{"TLS that is passed through", "{name: l, port: 443, protocol: TLS, tls: {mode: Passthrough}}", listenerOK, "TLSRoute", nil},
		{"TLS that is passed through needs no certificate of ours", "{name: l, port: 443, protocol: TLS, tls: {mode: Passthrough, certificateRefs: [{name: gone}]}}", listenerOK, "TLSRoute", nil},
		{"TLS without a mode", "{name: l, port: 443, protocol: TLS, tls: {certificateRefs: [{name: gone}]}}",
			badTLS, "TLSRoute", []string{"tls.mode"}},
		{"TLS without tls", "{name: l, port: 443, protocol: TLS}", value, "TLSRoute", []string{"say in tls.mode"}},
		{"TLS that is terminated without a certificate", "{name: l, port: 443, protocol: TLS, tls: {mode: Terminate}}", value, "TLSRoute", []string{"certificateRefs"}},
		{"a TCPRoute is none for TLS", "{name: l, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {kinds: [{kind: TCPRoute}, {kind: TLSRoute}]}}",
			kinds, "TLSRoute", []string{"only TLSRoute is"}},
		{"an unknown protocol is not served", "{name: l, port: 80, protocol: example.com/x}", proto, "", nil},
		{"an upper case hostname is refused", "{name: l, port: 80, protocol: HTTP, hostname: A.example.com}", value, both, []string{"hostname"}},
		{"a wildcard in the middle is refused", "{name: l, port: 80, protocol: HTTP, hostname: a.*.com}", value, both, nil},
		{"an IP address is no hostname", "{name: l, port: 80, protocol: HTTP, hostname: 10.0.0.1}", value, both, []string{"IP address"}},
		{"port 0 is refused", "{name: l, port: 0, protocol: HTTP}", value, both, []string{"port: 0"}},
		{"port 65536 is refused", "{name: l, port: 65536, protocol: HTTP}", value, both, nil},
		{"a port that the offset makes too large is not available", "{name: l, port: 60000, protocol: HTTP}",
			"Accepted=False/PortUnavailable Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid", both,
			[]string{"60000", "8000", "68000"}},
		{"a bad name is refused", "{name: 'L!', port: 80, protocol: HTTP}", value, both, []string{"name"}},
		{"filters are refused, for serving without them is unsafe",
			"{name: l, port: 80, protocol: HTTP, filters: {requests: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: c}}]}}",
			value, both, []string{"filters"}},
		{"the kind HTTPRoute is served", "{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}]}}", listenerOK, "HTTPRoute", nil},
		{"a kind twice is listed once",
			"{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: HTTPRoute, group: gateway.networking.k8s.io}]}}",
			listenerOK, "HTTPRoute", nil},
		{"the kind GRPCRoute is served", "{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}", listenerOK, "GRPCRoute", nil},
		{"only a kind that is not served leaves none",
			"{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}", kinds, "", []string{"TCPRoute"}},
		{"of a good and a bad kind the good one stays",
			"{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}, {kind: HTTPRoute}]}}", kinds, "HTTPRoute", nil},
		{"the kind HTTPRoute of another group is another kind",
			"{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute, group: example.com}]}}", kinds, "", nil},
		{"routes from None is no choice", "{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: None}}}", value, both,
			[]string{"allowedRoutes.namespaces.from"}},
		{"Selector needs a selector", "{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector}}}", value, both,
			[]string{"selector"}},
		{"a selector must be valid",
			"{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Near}]}}}}",
			value, both, []string{"selector"}},
		{"HTTP with tls is refused", "{name: l, port: 80, protocol: HTTP, tls: {}}", value, both, []string{"tls: must not be set"}},
		{"HTTPS without tls is refused", "{name: l, port: 443, protocol: HTTPS}", value, both, []string{"tls: must be set"}},
		{"HTTPS without certificate is refused", "{name: l, port: 443, protocol: HTTPS, tls: {}}", value, both,
			[]string{"tls.certificateRefs"}},
		{"HTTPS passes nothing through", "{name: l, port: 443, protocol: HTTPS, tls: {mode: Passthrough, certificateRefs: [{name: x}]}}",
			badTLS, both, []string{"tls.mode"}},
		{"TLS options are refused", "{name: l, port: 443, protocol: HTTPS, tls: {options: {a.com/b: c}, certificateRefs: [{name: x}]}}",
			badTLS, both, []string{"tls.options"}},
		{"a Secret that does not exist is not resolved", "{name: l, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: x}]}}",
			noCert, both, []string{"tls.certificateRefs[0]: Secret default/x does not exist"}},
		{"a certificate must be in a Secret",
			"{name: l, port: 443, protocol: HTTPS, tls: {certificateRefs: [{kind: ConfigMap, name: x}]}}", noCert, both, []string{"ConfigMap"}},
		{"a certificate must be in the core group",
			"{name: l, port: 443, protocol: HTTPS, tls: {certificateRefs: [{group: example.com, name: x}]}}", noCert, both, nil},
		{"a Secret of another namespace needs a grant, whether it exists or not",
			"{name: l, port: 443, protocol: HTTPS, tls: {certificateRefs: [{namespace: other, name: x}]}}", noGrant, both,
			[]string{`no ReferenceGrant in namespace "other"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, withListeners(test.listener)).Gateways[0].Listeners[0]
			expect(t, node.Conditions, test.want, test.messages...)
			if got := names(node.SupportedKinds, func(k gatewayv1.RouteGroupKind) string { return string(k.Kind) }); got != test.kinds {
				t.Errorf("supports %q, want %q", got, test.kinds)
			}
			if node.SupportedKinds == nil {
				t.Error("a listener that supports no kind must say so with an empty list")
			}
			if node.Valid == strings.Contains(test.want, "Programmed=False") {
				t.Errorf("valid: %v", node.Valid)
			}
		})
	}
}

func TestTheBoundPortHasTheOffset(t *testing.T) {
	node := build(t, gateway).Gateways[0].Listeners[0]
	if node.Port != 80 || node.Bind != 8080 {
		t.Errorf("%d %d", node.Port, node.Bind)
	}
}

// passthrough is a listener that passes TLS through, on port 443 unless another one is given.
func passthrough(name, hostname string, port ...int) string {
	port = append(port, 443)
	return fmt.Sprintf("{name: %s, port: %d, protocol: TLS, hostname: '%s', tls: {mode: Passthrough}}", name, port[0], hostname)
}

func TestListenersThatAreNotDistinctAreAllRefused(t *testing.T) {
	t.Parallel()
	const (
		ok       = "Accepted=True/Accepted Conflicted=False/NoConflicts"
		hostname = "Accepted=False/HostnameConflict Conflicted=True/HostnameConflict"
		protocol = "Accepted=False/ProtocolConflict Conflicted=True/ProtocolConflict"
		https    = ", protocol: HTTPS, tls: {certificateRefs: [{name: x}]}}"
	)
	for _, test := range []struct {
		name      string
		listeners []string
		want      []string
	}{
		{"two hostnames on one port are distinct",
			[]string{"{name: a, port: 80, protocol: HTTP, hostname: a.com}", "{name: b, port: 80, protocol: HTTP, hostname: b.com}"}, []string{ok, ok}},
		{"a hostname and none are distinct",
			[]string{"{name: a, port: 80, protocol: HTTP, hostname: a.com}", "{name: b, port: 80, protocol: HTTP}"}, []string{ok, ok}},
		{"a wildcard and what it covers are distinct",
			[]string{"{name: a, port: 80, protocol: HTTP, hostname: '*.a.com'}", "{name: b, port: 80, protocol: HTTP, hostname: b.a.com}"}, []string{ok, ok}},
		{"one hostname twice is a conflict, and a third listener is none of it",
			[]string{"{name: a, port: 80, protocol: HTTP, hostname: a.com}", "{name: b, port: 80, protocol: HTTP, hostname: a.com}",
				"{name: c, port: 80, protocol: HTTP, hostname: c.com}"}, []string{hostname, hostname, ok}},
		{"no hostname twice is a conflict", []string{"{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: HTTP, hostname: ''}"},
			[]string{hostname, hostname}},
		{"one hostname on two ports is none", []string{"{name: a, port: 80, protocol: HTTP}", "{name: b, port: 81, protocol: HTTP}"}, []string{ok, ok}},
		{"HTTP and HTTPS on one port conflict, whatever their hostnames",
			[]string{"{name: a, port: 80, protocol: HTTP, hostname: a.com}", "{name: b, port: 80" + https, "{name: c, port: 80, protocol: HTTP, hostname: c.com}"},
			[]string{protocol, protocol, protocol}},
		{"HTTPS and both kinds of TLS share a port by hostname", []string{"{name: a, port: 443" + https, passthrough("b", "b.com"), passthrough("c", "*.b.com")}, []string{ok, ok, ok}},
		{"HTTPS and TLS for one hostname conflict", []string{passthrough("a", "a.com"), "{name: b, port: 443, protocol: TLS, hostname: a.com, tls: {mode: Terminate, certificateRefs: [{name: gone}]}}"},
			[]string{hostname, hostname}},
		{"TCP shares a port with nobody", []string{"{name: a, port: 80, protocol: TCP}", passthrough("b", "b.com", 80), "{name: c, port: 81, protocol: TCP}"}, []string{protocol, protocol, ok}},
		{"nor with another TCP", []string{"{name: a, port: 80, protocol: TCP}", "{name: b, port: 80, protocol: TCP}"}, []string{hostname, hostname}},
		{"a protocol that is not served conflicts with none",
			[]string{"{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: UDP}"},
			[]string{ok, "Accepted=False/UnsupportedProtocol Conflicted=False/NoConflicts"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for i, node := range build(t, withListeners(test.listeners...)).Gateways[0].Listeners {
				if !strings.HasPrefix(show(node.Conditions), test.want[i]) {
					t.Errorf("%s: got %s, want %s", node.Name, show(node.Conditions), test.want[i])
				}
				if conflicted := strings.Contains(test.want[i], "Conflicted=True"); conflicted && node.Valid {
					t.Errorf("%s is served", node.Name)
				}
			}
		})
	}
}

func TestConflictedListenersAreNamedByTheGateway(t *testing.T) {
	g := build(t, withListeners("{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: HTTP}", "{name: c, port: 81, protocol: HTTP}"))
	expect(t, g.Gateways[0].Conditions, "Accepted=True/ListenersNotValid ResolvedRefs=True/ResolvedRefs",
		`"a" (HostnameConflict), "b" (HostnameConflict); accepted: "c"`)
	expect(t, g.listener(t, "default/gw", "a").Conditions,
		"Accepted=False/HostnameConflict Conflicted=True/HostnameConflict ResolvedRefs=True/ResolvedRefs Programmed=False/HostnameConflict", `"b"`)
}

func TestOverlappingTLSConfig(t *testing.T) {
	t.Parallel()
	const tls = ", protocol: HTTPS, tls: {certificateRefs: [{name: x}]}}"
	for _, test := range []struct {
		name      string
		listeners []string
		want      string
	}{
		{"a wildcard overlaps what it covers, and nothing else",
			[]string{"{name: a, port: 443, hostname: foo.example.com" + tls, "{name: b, port: 443, hostname: foo.example.org" + tls,
				"{name: c, port: 443, hostname: '*.example.com'" + tls}, "a c"},
		{"no hostname overlaps every one", []string{"{name: a, port: 443, hostname: a.com" + tls, "{name: b, port: 443" + tls}, "a b"},
		{"a wildcard overlaps a narrower one",
			[]string{"{name: a, port: 443, hostname: '*.a.com'" + tls, "{name: b, port: 443, hostname: '*.b.a.com'" + tls}, "a b"},
		{"another port does not matter", []string{"{name: a, port: 443" + tls, "{name: b, port: 444" + tls}, ""},
		{"plain HTTP has none",
			[]string{"{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: HTTP, hostname: a.com}"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, node := range build(t, withListeners(test.listeners...)).Gateways[0].Listeners {
				if strings.Contains(show(node.Conditions), "OverlappingTLSConfig=True/OverlappingHostnames") {
					got = append(got, node.Name)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestHostnamesIntersect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"", "a.com", true},
		{"a.com", "a.com", true},
		{"a.com", "b.com", false},
		{"*.a.com", "b.a.com", true},
		{"*.a.com", "c.b.a.com", true},
		{"*.a.com", "a.com", false},
		{"*.a.com", "ba.com", false},
		{"*.a.com", "*.b.a.com", true},
		{"*.a.com", "*.b.com", false},
		{"*.a.com", "*.a.com", true},
	} {
		if hostnamesIntersect(test.a, test.b) != test.want || hostnamesIntersect(test.b, test.a) != test.want {
			t.Errorf("%q and %q: want %v", test.a, test.b, test.want)
		}
	}
}
