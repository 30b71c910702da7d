package graph

import (
	"fmt"
	"strings"
	"testing"
)

// xbackendYAML is an XBackend; its spec is written as a flow mapping.
func xbackendYAML(name, created, spec string) string {
	return fmt.Sprintf("---\napiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackend\n"+
		"metadata: {name: %s, namespace: default, generation: 4, creationTimestamp: '%s'}\nspec: %s\n", name, created, spec)
}

// podYAML is a Pod with the label app: x, and more fields of its status.
func podYAML(name, meta, status string) string {
	return fmt.Sprintf("---\nkind: Pod\nmetadata: {name: %s, namespace: default, uid: %s, labels: {app: x}%s}\nstatus: {%s}\n", name, name, meta, status)
}

const (
	selectX  = "type: EndpointSelector, port: {number: 8080}, endpointSelector: {matchLabels: {app: x}}"
	outside  = "type: ExternalHostname, port: {number: 443}, externalHostname: {hostname: api.example.com}"
	podReady = "conditions: [{type: Ready, status: 'True'}], podIPs: [{ip: "
)

func toXBackends(names ...string) string {
	var refs []string
	for _, name := range names {
		refs = append(refs, "{group: gateway.networking.x-k8s.io, kind: XBackend, name: "+name+"}")
	}
	return "backendRefs: [" + strings.Join(refs, ", ") + "]"
}

func xbackendWorld(documents string) string {
	return gateway + podYAML("p1", "", podReady+"10.0.0.1}]") + configMapYAML("default", "ca", twoAuthorities()[0])[1:] +
		secretYAML("default", "client")[1:] + secretYAML("other", "client")[1:] + documents
}

func TestXBackends(t *testing.T) {
	t.Parallel()
	const (
		ok        = "XBackend/b gw:Accepted=True/Accepted"
		okRefs    = ok + " ResolvedRefs=True/ResolvedRefs"
		invalid   = "XBackend/b gw:Accepted=False/Invalid"
		ca        = "validation: {hostname: b.internal, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}"
		refused   = "ResolvedRefs=False/UnsupportedValue"
		resolved  = "ResolvedRefs=True/ResolvedRefs"
		endpoints = "p1/p1=10.0.0.1:8080"
	)
	cookies := func(name string) string { return ", sessionPersistence: {cookie: {name: " + name + "}}" }
	for _, test := range []struct{ name, spec, want, route, backend string }{
		{"Pods by their labels", selectX, ok, resolved, endpoints},
		{"without TLS in so many words", selectX + ", tls: {mode: None}", ok, resolved, endpoints},
		{"TLS", selectX + ", tls: {mode: ServerOnly, " + ca + "}", okRefs, resolved, endpoints + " TLS b.internal by ConfigMap default/ca"},
		{"TLS on both sides", selectX + ", tls: {mode: ClientAndServer, clientCertificateRef: {name: client}, " + ca + "}", okRefs, resolved,
			endpoints + " TLS b.internal by ConfigMap default/ca with default/client"},
		{"H2C", selectX + ", protocol: H2C", ok, resolved, endpoints + " HTTP2"},
		{"GRPC", selectX + ", protocol: GRPC", ok, resolved, endpoints + " HTTP2"},
		{"HTTP/2 over TLS", selectX + ", protocol: HTTP2, tls: {mode: ServerOnly, " + ca + "}", okRefs, resolved,
			endpoints + " HTTP2 TLS b.internal by ConfigMap default/ca"},
		{"HTTP11", selectX + ", protocol: HTTP11", ok, resolved, endpoints},
		{"a name outside", outside, ok, resolved, " external api.example.com:443"},
		{"a name outside with subjectAltNames is not built", outside + ", tls: {mode: ServerOnly, validation: {hostname: api.example.com, " +
			"wellKnownCACertificates: System, subjectAltNames: [{type: Hostname, hostname: a.com}]}}",
			"XBackend/b gw:Accepted=False/UnsupportedValue", refused, "none"},
		{"a session", selectX + cookies("c"), ok, resolved, endpoints},

		{"CA certificates that cannot be had", selectX + ", tls: {mode: ServerOnly, validation: {hostname: b.internal, " +
			"caCertificateRefs: [{group: '', kind: ConfigMap, name: gone}]}}",
			"XBackend/b gw:Accepted=False/NoValidCACertificate ResolvedRefs=False/InvalidCACertificateRef", resolved, ""},
		{"a client certificate that does not exist", selectX + ", tls: {mode: ClientAndServer, clientCertificateRef: {name: gone}, " + ca + "}",
			"XBackend/b gw:Accepted=False/InvalidClientCertificateRef ResolvedRefs=False/InvalidClientCertificateRef", resolved, ""},
		{"a client certificate of another namespace", selectX + ", tls: {mode: ClientAndServer, clientCertificateRef: {name: client, namespace: other}, " + ca + "}",
			"XBackend/b gw:Accepted=False/InvalidClientCertificateRef ResolvedRefs=False/InvalidClientCertificateRef", resolved, ""},

		{"MCP", selectX + ", protocol: MCP", "XBackend/b gw:Accepted=False/UnsupportedProtocol", "ResolvedRefs=False/UnsupportedProtocol", "none"},
		{"TCP is for other kinds of routes", selectX + ", protocol: TCP", ok, "ResolvedRefs=False/UnsupportedProtocol", endpoints},
		{"an unknown protocol", selectX + ", protocol: QUIC", invalid, refused, "none"},
		{"H2C with TLS", selectX + ", protocol: H2C, tls: {mode: ServerOnly, " + ca + "}", invalid + " ResolvedRefs=True/ResolvedRefs", refused, "none"},
		{"HTTP2 without TLS", selectX + ", protocol: HTTP2", invalid, refused, "none"},
		{"WSS without TLS", selectX + ", protocol: WSS, tls: {mode: None}", invalid, refused, "none"},
		{"no type", "port: {number: 80}, endpointSelector: {matchLabels: {app: x}}", invalid, refused, "none"},
		{"a selector with a name outside", selectX + ", externalHostname: {hostname: a.com}", invalid, refused, "none"},
		{"a name outside with a selector", outside + ", endpointSelector: {matchLabels: {app: x}}", invalid, refused, "none"},
		{"no selector", "type: EndpointSelector, port: {number: 80}", invalid, refused, "none"},
		{"no name outside", "type: ExternalHostname, port: {number: 80}", invalid, refused, "none"},
		{"an empty selector", "type: EndpointSelector, port: {number: 80}, endpointSelector: {matchLabels: {}}", invalid, refused, "none"},
		{"a bad label", "type: EndpointSelector, port: {number: 80}, endpointSelector: {matchLabels: {'a b': x}}", invalid, refused, "none"},
		{"no port", "type: EndpointSelector, port: {}, endpointSelector: {matchLabels: {app: x}}", invalid, refused, "none"},
		{"an address outside", strings.Replace(outside, "api.example.com", "169.254.169.254", 1), invalid, refused, "none"},
		{"a name of the cluster", strings.Replace(outside, "api.example.com", "shop.other.svc.cluster.local", 1), invalid, refused, "none"},
		{"this machine", strings.Replace(outside, "api.example.com", "a.localhost", 1), invalid, refused, "none"},
		{"a name without a domain", strings.Replace(outside, "api.example.com", "shop", 1), invalid, refused, "none"},
		{"a session outside", outside + cookies("c"), invalid, refused, "none"},
		{"a session that is not valid", selectX + cookies("'a b'"), invalid, refused, "none"},
		{"an unknown mode", selectX + ", tls: {mode: Maybe}", invalid, refused, "none"},
		{"TLS without validation", selectX + ", tls: {mode: ServerOnly}", invalid, refused, "none"},
		{"validation without TLS", selectX + ", tls: {mode: None, " + ca + "}", invalid + " ResolvedRefs=True/ResolvedRefs", refused, "none"},
		{"a client certificate without the mode", selectX + ", tls: {mode: ServerOnly, clientCertificateRef: {name: client}, " + ca + "}",
			invalid + " ResolvedRefs=True/ResolvedRefs", refused, "none"},
		{"the mode without a client certificate", selectX + ", tls: {mode: ClientAndServer, " + ca + "}",
			invalid + " ResolvedRefs=True/ResolvedRefs", refused, "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, xbackendWorld(xbackendYAML("b", old, "{"+test.spec+"}")+routeTo(toXBackends("b"))))
			if got := showReported(g); got != test.want {
				t.Errorf("got  %s\nwant %s\n%s", got, test.want, g.reportedMessages())
			}
			expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=True/Accepted "+test.route)
			if got := showXBackend(g.Backend(BackendKey{Kind: "XBackend", Namespace: "default", Name: "b"})); got != test.backend {
				t.Errorf("backend %q, want %q", got, test.backend)
			}
		})
	}
}

func showXBackend(backend *Backend) string {
	text := showEndpoints(backend)
	if backend != nil && backend.Untrusted {
		return ""
	}
	if backend == nil {
		return text
	}
	if backend.External != "" {
		text += " external " + backend.External
	}
	if backend.HTTP2 {
		text += " HTTP2"
	}
	if backend.TLS != nil {
		text += " TLS " + showTLS(backend)
		if backend.TLS.Certificate != nil {
			text += " with " + backend.TLS.Certificate.Secret.String()
		}
	}
	return text
}

func TestEndpointsOfXBackends(t *testing.T) {
	t.Parallel()
	slice := func(name, owner, endpoints string) string {
		return "---\nkind: EndpointSlice\nmetadata: {name: " + name + ", namespace: default, labels: {limpet.dev/xbackend: " + owner +
			"}}\naddressType: IPv4\nendpoints: [" + endpoints + "]\n"
	}
	for _, test := range []struct{ name, documents, want string }{
		{"a Pod that is ready", podYAML("p", "", podReady+"10.0.0.1}]"), "p/p=10.0.0.1:8080"},
		{"the only address in the old field", podYAML("p", "", "conditions: [{type: Ready, status: 'True'}], podIP: 10.0.0.1"), "p/p=10.0.0.1:8080"},
		{"a Pod that is not ready", podYAML("p", "", "conditions: [{type: Ready, status: 'False'}], podIPs: [{ip: 10.0.0.1}]"), ""},
		{"a Pod without conditions", podYAML("p", "", "podIPs: [{ip: 10.0.0.1}]"), ""},
		{"a Pod without an address", podYAML("p", "", "conditions: [{type: Ready, status: 'True'}]"), ""},
		{"a Pod that has ended", podYAML("p", "", "phase: Succeeded, "+podReady+"10.0.0.1}]"), ""},
		{"a Pod that is deleted drains", podYAML("p", "", podReady+"10.0.0.1}]") + podYAML("q", ", deletionTimestamp: '2026-01-01T00:00:00Z'", podReady+"10.0.0.2}]"),
			"p/p=10.0.0.1:8080 q/q=10.0.0.2:8080(draining)"},
		{"the last Pod serves while it is deleted", podYAML("q", ", deletionTimestamp: '2026-01-01T00:00:00Z'", podReady+"10.0.0.2}]"), "q/q=10.0.0.2:8080"},
		{"a dual-stack Pod is one", podYAML("p", "", podReady+"'2001:db8::1'}, {ip: 10.0.0.1}]"), "p/p=10.0.0.1:8080"},
		{"a Pod of another label", strings.Replace(podYAML("p", "", podReady+"10.0.0.1}]"), "app: x", "app: y", 1), ""},
		{"a Pod of another namespace", strings.Replace(podYAML("p", "", podReady+"10.0.0.1}]"), "namespace: default", "namespace: other", 1), ""},
		{"a slice that names the XBackend", slice("e", "b", "{addresses: [10.0.0.3]}"), "10.0.0.3:8080"},
		{"a slice that names another", slice("e", "c", "{addresses: [10.0.0.3]}"), ""},
		{"a Pod that is in a slice too", podYAML("p", "", podReady+"10.0.0.1}]") + slice("e", "b", "{addresses: [10.0.0.1], targetRef: {kind: Pod, name: p, uid: p}}"),
			"p/p=10.0.0.1:8080"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+xbackendYAML("b", old, "{"+selectX+"}")+test.documents)
			if got := showEndpoints(g.Backend(BackendKey{Kind: "XBackend", Namespace: "default", Name: "b"})); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestOfTwoXBackendsWithOneNameForSessionsTheOlderKeepsThem(t *testing.T) {
	t.Parallel()
	const conflicted = "Accepted=False/Conflicted"
	cookie := func(name string) string {
		return "{" + selectX + ", sessionPersistence: {cookie: {name: " + name + "}}}"
	}
	header := func(name string) string {
		return "{" + selectX + ", sessionPersistence: {type: Header, header: {name: " + name + "}}}"
	}
	unnamed := "{" + selectX + ", sessionPersistence: {cookie: {}}}"
	for _, test := range []struct{ name, a, b, want, sessions string }{
		{"by age", xbackendYAML("a", young, cookie("c")), xbackendYAML("b", old, cookie("c")), "XBackend/a gw:" + conflicted + " XBackend/b gw:Accepted=True/Accepted", "- c"},
		{"by name", xbackendYAML("a", old, cookie("c")), xbackendYAML("b", old, cookie("c")), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:" + conflicted, "c -"},
		{"two names", xbackendYAML("a", old, cookie("c")), xbackendYAML("b", old, cookie("d")), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:Accepted=True/Accepted", "c d"},
		{"two names in cases", xbackendYAML("a", old, cookie("c")), xbackendYAML("b", old, cookie("C")), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:Accepted=True/Accepted", "c C"},
		{"two generated names", xbackendYAML("a", old, unnamed), xbackendYAML("b", old, unnamed), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:Accepted=True/Accepted", " "},
		{"one header in two cases", xbackendYAML("a", old, header("X-S")), xbackendYAML("b", old, header("x-s")), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:" + conflicted, "X-S -"},
		{"a cookie and a header", xbackendYAML("a", old, header("c")), xbackendYAML("b", old, cookie("c")), "XBackend/a gw:Accepted=True/Accepted XBackend/b gw:Accepted=True/Accepted", "c c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+test.a+test.b+routeTo(toXBackends("a", "b")))
			if got := showReported(g); got != test.want {
				t.Errorf("got  %s\nwant %s\n%s", got, test.want, g.reportedMessages())
			}
			if got := names(g.rule(t).Backends, func(ref BackendRef) string {
				if ref.Session == nil {
					return "-"
				}
				return ref.Session.Name
			}); got != test.sessions {
				t.Errorf("sessions %q, want %q", got, test.sessions)
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
		})
	}
}

func TestAnXBackendThatNoRouteUsesHasNoStatus(t *testing.T) {
	g := build(t, gateway+xbackendYAML("b", old, "{"+selectX+"}"))
	if len(g.Reported) != 0 || len(g.Unclaimed) != 1 || g.Unclaimed[0].Kind != "XBackend" {
		t.Errorf("%v %v", g.Reported, g.Unclaimed)
	}
}

func TestAnXBackendsCookieMayDemandTLS(t *testing.T) {
	g := build(t, gateway+xbackendYAML("b", old, "{"+selectX+", sessionPersistence: {cookie: {name: __Host-b}}}")+routeTo(toXBackends("b")))
	expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "__Host-b")
}

func TestABackendTLSPolicyCannotTargetAnXBackend(t *testing.T) {
	g := build(t, xbackendWorld(xbackendYAML("b", old, "{"+selectX+"}")+routeTo(toXBackends("b"))+
		policyOf("p", old, "{targetRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: b}], "+withSystem+"}")))
	if got := showReported(g); got != "BackendTLSPolicy/p gw:Accepted=False/Invalid ResolvedRefs=True/ResolvedRefs XBackend/b gw:Accepted=True/Accepted" {
		t.Error(got)
	}
}
