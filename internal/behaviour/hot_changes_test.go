package behaviour

import (
	"fmt"
	"slices"
	"strings"
)

// hotListeners are the listeners that the World of docs/hot.md always has.
const hotListeners = `
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: steady}]}}
`

// hotBase is what requests are under way to.
func hotBase() string {
	return listeners(hotListeners) + certificate("steady", "steady.example") + route("steady", `
hostnames: [steady.example]
rules:
- backendRefs: [{name: shop, port: 80}]
- matches: [{path: {value: /session}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {cookie: {name: steady}}`)
}

// topics are all rows of docs/hot.md, made to the World's base.
func topics(base string) []topic {
	return []topic{
		{"Endpoints", endpointChanges()},
		{"Services", serviceChanges(base)},
		{"HTTPRoute", routeChanges(base)},
		{"GRPCRoute", grpcChanges(base)},
		{"TLSRoute and TCPRoute", connectionChanges(base)},
		{"Filters of HTTPRoute", filterChanges(base)},
		{"Timeouts and retries", attemptChanges(base)},
		{"Sessions", sessionChanges(base)},
		{"Certificates", certificateChanges(base)},
		{"Listeners and Gateways", listenerChanges(base)},
		{"ListenerSets", setChanges(base)},
		{"XBackends", xbackendChanges(base)},
		{"TLS to backends", backendTLSChanges(base)},
		{"Certificates of clients", clientChanges(base)},
		{"References and what is not ours", otherChanges(base)},
	}
}

func endpointChanges() []change {
	one := func(do func(w *World, s *service)) func(*World) {
		return func(w *World) { do(w, w.service("shop")) }
	}
	return []change{
		{what: "an endpoint added", pods: one(func(w *World, s *service) { w.addPod(w.t, s) })},
		{what: "an endpoint not ready", pods: one(func(_ *World, s *service) { s.pods[0].ready, s.pods[0].serving = false, false })},
		{what: "an endpoint ready again", pods: one(func(_ *World, s *service) { s.pods[0].ready, s.pods[0].serving = true, true })},
		{what: "an endpoint draining", pods: one(func(_ *World, s *service) { s.pods[0].drain() })},
		{what: "an endpoint removed", pods: one(func(_ *World, s *service) { s.pods[0].gone = true })},
		{what: "endpoints spread over more slices", pods: one(func(_ *World, s *service) { s.slices = 2 })},
	}
}

func serviceChanges(base string) []change {
	to := func(refs string) string {
		return base + route("new", "hostnames: [new.example]\nrules:\n- backendRefs: ["+refs+"]")
	}
	scale := func(count int) func(*World) {
		return func(w *World) {
			s := w.service("empty")
			for len(s.pods) < count {
				w.addPod(w.t, s)
			}
			s.pods = s.pods[:count]
		}
	}
	changes := life("the first route to a Service", base, to("{name: other, port: 80}"), to("{name: other, port: 80}, {name: empty, port: 80}"))
	changes[1].what, changes[2].what = "a second Service, without endpoints, added to the route", "the last route to a Service removed"
	changes = append(changes, change{what: "a route to a Service without endpoints added", from: base, to: to("{name: empty, port: 80}")},
		change{what: "the first endpoint of a Service", pods: scale(1)},
		change{what: "the last endpoint of a Service removed", pods: scale(0)})
	many := manyServices(base)
	return append(changes,
		change{what: "more Services than there are slots for", from: base, to: many},
		change{what: "all of them removed", from: many, to: base},
	)
}

// manyServices are 70, without endpoints, of five routes. The pool has 64 slots, of which the base takes one.
func manyServices(base string) string {
	for i := range 5 {
		rules := ""
		for j := range 14 {
			name := fmt.Sprintf("many-%d-%d", i, j)
			base += "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: 80}]}\n"
			rules += "- matches: [{path: {value: /" + name + "}}]\n  backendRefs: [{name: " + name + ", port: 80}]\n"
		}
		base += route(fmt.Sprintf("many-%d", i), "rules:\n"+rules)
	}
	return base
}

func routeChanges(base string) []change {
	with := func(hostnames, rules string) string {
		return base + route("new", "hostnames: ["+hostnames+"]\nrules:\n"+rules)
	}
	rule := func(match, more string) string {
		return "- matches: [{" + match + "}]\n  backendRefs: [{name: other, port: 80}]\n" + more
	}
	one := with("new.example", rule("path: {value: /a}", ""))
	two := with("new.example", rule("path: {value: /a}", "")+rule("path: {value: /b}", ""))
	weights := func(a, b int) string {
		return with("new.example", fmt.Sprintf("- backendRefs: [{name: other, port: 80, weight: %d}, {name: shop, port: 80, weight: %d}]\n", a, b))
	}
	changes := append(life("a route", base, one, with("new.example", rule("path: {value: /b}", ""))),
		life("a hostname", one, with("new.example, more.example", rule("path: {value: /a}", "")), with("new.example, '*.more.example'", rule("path: {value: /a}", "")))...)
	changes = append(changes, life("a rule", one, two, with("new.example", rule("path: {value: /a}", "")+rule("path: {value: /c}", "")))...)
	for _, match := range []struct{ what, one, other string }{
		{"an Exact path", "path: {type: Exact, value: /b}", "path: {type: Exact, value: /c}"},
		{"a regular expression for the path", "path: {type: RegularExpression, value: /b.*}", "path: {type: RegularExpression, value: /c.*}"},
		{"a header match", "headers: [{name: a, value: b}]", "headers: [{name: a, value: c}]"},
		{"a regular expression for a header", "headers: [{name: a, value: b.*, type: RegularExpression}]", "headers: [{name: a, value: c.*, type: RegularExpression}]"},
		{"a query match", "queryParams: [{name: a, value: b}]", "queryParams: [{name: a, value: c}]"},
		{"a method match", "method: PUT", "method: POST"},
	} {
		changes = append(changes, life(match.what, one, with("new.example", rule(match.one, "")), with("new.example", rule(match.other, "")))...)
	}
	return append(changes,
		change{what: "a weight", from: weights(1, 1), to: weights(9, 1)},
		change{what: "a weight that becomes 0", from: weights(9, 1), to: weights(0, 1)},
		change{what: "a backendRef removed", from: weights(9, 1), to: one},
		change{what: "the rules in another order", from: two, to: with("new.example", rule("path: {value: /b}", "")+rule("path: {value: /a}", ""))},
		change{what: "a rule's name", from: one, to: strings.Replace(one, "- matches: [{path: {value: /a}}]", "- name: named\n    matches: [{path: {value: /a}}]", 1)},
		change{what: "a label of a route", from: one, to: strings.Replace(one, "metadata: {name: new}", "metadata: {name: new, labels: {a: b}}", 1)},
	)
}

func grpcChanges(base string) []change {
	with := func(rule string) string { return base + grpcRoute("new", "hostnames: [new.example]\nrules:\n- "+rule) }
	call := func(match, more string) string {
		return with("matches: [{" + match + "}]\n  backendRefs: [{name: other, port: 80}]\n" + more)
	}
	one := call("method: {service: a.B}", "")
	return slices.Concat(
		life("a GRPCRoute", base, one, call("method: {service: a.B, method: C}", "")),
		life("a header match of a GRPCRoute", one, call("method: {service: a.B}, headers: [{name: a, value: b}]", ""), call("method: {service: a.B}, headers: [{name: a, value: c}]", "")),
		life("a filter of a GRPCRoute", one, call("method: {service: a.B}", "  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [a]}}]\n"),
			call("method: {service: a.B}", "  filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}]\n")),
		life("a session of a GRPCRoute", one, call("method: {service: a.B}", "  sessionPersistence: {cookie: {}}\n"),
			call("method: {service: a.B}", "  sessionPersistence: {type: Header, header: {name: x-s}}\n")),
	)
}

func filterChanges(base string) []change {
	rule := func(filters, refFilters string) string {
		return base + route("new", "hostnames: [new.example]\nrules:\n- matches: [{path: {value: /a}}]\n  filters: ["+filters+
			"]\n  backendRefs: [{name: other, port: 80, filters: ["+refFilters+"]}]\n")
	}
	without := rule("", "")
	var changes []change
	for _, filter := range []struct{ what, one, other string }{
		{"RequestHeaderModifier", "requestHeaderModifier: {set: [{name: a, value: b}]}", "requestHeaderModifier: {add: [{name: a, value: c}], remove: [d]}"},
		{"ResponseHeaderModifier", "responseHeaderModifier: {set: [{name: a, value: b}]}", "responseHeaderModifier: {remove: [d]}"},
		{"URLRewrite", "urlRewrite: {hostname: a.example}", "urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}"},
		{"CORS", "cors: {allowOrigins: ['*']}", "cors: {allowOrigins: ['https://*.example'], allowMethods: [PUT], allowCredentials: true, maxAge: 60}"},
		{"RequestMirror", "requestMirror: {backendRef: {name: other, port: 80}}", "requestMirror: {backendRef: {name: empty, port: 80}, percent: 10}"},
	} {
		text := func(of string) string { return "{type: " + filter.what + ", " + of + "}" }
		changes = append(changes, life("`"+filter.what+"`", without, rule(text(filter.one), ""), rule(text(filter.other), ""))...)
		changes = append(changes, life("`"+filter.what+"` of a backendRef", without, rule("", text(filter.one)), rule("", text(filter.other)))...)
	}
	redirect := func(of string) string {
		return base + route("new", "hostnames: [new.example]\nrules:\n- matches: [{path: {value: /a}}]\n  filters: [{type: RequestRedirect, requestRedirect: {"+of+"}}]\n")
	}
	return append(changes, life("`RequestRedirect`", without, redirect("scheme: https"), redirect("statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}"))...)
}

func attemptChanges(base string) []change {
	with := func(fields string) string {
		return base + route("new", "hostnames: [new.example]\nrules:\n- backendRefs: [{name: other, port: 80}]\n  "+fields)
	}
	twice := func(one, other string) string {
		return with(one) + route("newer", "hostnames: [newer.example]\nrules:\n- backendRefs: [{name: empty, port: 80}]\n  "+other)
	}
	const retry, oftener = "retry: {codes: [503], attempts: 2}", "retry: {codes: [503], attempts: 3}"
	changes := []change{
		{what: "`retry` for the first time", from: with(""), to: with(retry)},
		{what: "the same `retry` for a second Service", from: twice(retry, ""), to: twice(retry, retry)},
		{what: "another `retry` for one of them", from: twice(retry, retry), to: twice(oftener, retry)},
		{what: "and for the other", from: twice(oftener, retry), to: twice(oftener, oftener)},
		{what: "`retry` removed", from: twice(oftener, oftener), to: twice("", "")},
		{what: "`retry` as it was once before", from: with(""), to: with(oftener)},
	}
	changes = append(changes, life("`timeouts.request`", with(""), with("timeouts: {request: 5s}"), with("timeouts: {request: 6s}"))...)
	return append(changes, life("`timeouts.backendRequest`", with(""), with("timeouts: {backendRequest: 5s}"), with("timeouts: {backendRequest: 0s}"))...)
}

func sessionChanges(base string) []change {
	with := func(session string) string {
		if session != "" {
			session = "  sessionPersistence: {" + session + "}\n"
		}
		return base + route("new", "hostnames: [new.example]\nrules:\n- backendRefs: [{name: other, port: 80}]\n"+session)
	}
	changes := append(life("a session in a cookie", with(""), with("cookie: {}"), with("cookie: {path: /a}")),
		life("a session in a cookie with a name", with(""), with("cookie: {name: first}"), with("cookie: {name: second}"))...)
	changes = append(changes, life("a session in the shape of v1.6", with(""), with("sessionName: old"), with("sessionName: older"))...)
	return append(append(changes, life("a session in a header", with(""), with("type: Header, header: {name: X-First}"), with("type: Header, header: {name: X-Second}"))...),
		change{what: "a limit of a session", from: with("absoluteTimeout: 1h, cookie: {lifetimeType: Permanent}"), to: with("absoluteTimeout: 2h, cookie: {lifetimeType: Permanent}")},
		change{what: "from a cookie to a header", from: with("cookie: {}"), to: with("type: Header, header: {name: X-First}")})
}

// connectionChanges are those at layer 4. The first backend needs slots of its own, as the first listener needs its port.
func connectionChanges(base string) []change {
	with := func(listeners string) string { return strings.Replace(base, hotListeners, hotListeners+listeners, 1) }
	passthrough := "  - {name: pass, port: 443, protocol: TLS, hostname: '*.pass.example', tls: {mode: Passthrough}}\n"
	terminate := "  - {name: term, port: 443, protocol: TLS, hostname: term.example, tls: {mode: Terminate, certificateRefs: [{name: steady}]}}\n"
	tcp := "  - {name: tcp, port: 9000, protocol: TCP}\n"
	all := with(passthrough + terminate + tcp)
	one := all + tlsRoute("pass", "pass", "a.pass.example", "{name: other, port: 80}")
	shares := func(a, b int) string {
		return one + tcpRoute("tcp", "tcp", fmt.Sprintf("{name: other, port: 80, weight: %d}, {name: empty, port: 80, weight: %d}", a, b))
	}
	changes := []change{
		{what: "a listener that passes TLS through, beside HTTPS, added", from: base, to: with(passthrough)},
		{what: "one that terminates TLS on the same port added", to: with(passthrough + terminate)},
		{what: "a TCP listener added", to: all},
		{what: "the first TLSRoute added", to: one},
		{what: "a second TLSRoute added", to: one + tlsRoute("more", "pass", "b.pass.example", "{name: other, port: 80}")},
		{what: "a hostname of a TLSRoute changed", to: one + tlsRoute("more", "pass", "c.pass.example", "{name: other, port: 80}")},
		{what: "the Service of a TLSRoute changed", to: one + tlsRoute("more", "pass", "c.pass.example", "{name: empty, port: 80}")},
		{what: "a TLSRoute removed", to: one},
	}
	changes = append(append(changes, life("a TCPRoute", one, shares(1, 1), shares(1, 0))...),
		change{what: "the listeners at layer 4 removed", from: one, to: base})
	// There are few slots for TCP at first: more are added, and those that were left are free again, in between.
	for i := range changes {
		changes[i].rest = true
	}
	return changes
}

func certificateChanges(base string) []change {
	renewed := strings.Replace(base, base[strings.Index(base, "---\napiVersion: v1\nkind: Secret"):strings.Index(base, "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute")],
		certificate("steady", "steady.example"), 1)
	more := strings.Replace(base, "[{name: steady}]", "[{name: steady}, {name: more}]", 1)
	one, other := certificate("more", "more.example"), certificate("more", "more.example", "and.example")
	return append([]change{
		{what: "a certificate renewed", from: base, to: renewed},
		{what: "a certificate with a new key and more names", from: more + one, to: more + other},
	}, life("a second certificate of a listener", base, more+one, more+other)...)
}

func listenerChanges(base string) []change {
	with := func(listener string) string { return strings.Replace(base, hotListeners, hotListeners+listener, 1) }
	gw := func(address, more string) string {
		return base + "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: more}\nspec:\n  gatewayClassName: limpet\n  listeners: [{name: http, port: " +
			address + ", protocol: HTTP}" + more + "]\n"
	}
	listener := func(name, port, protocol, hostname string) string {
		tls := ""
		if protocol == "HTTPS" {
			tls = ", tls: {certificateRefs: [{name: steady}]}"
		}
		return "  - {name: " + name + ", port: " + port + ", protocol: " + protocol + ", hostname: " + hostname + tls + "}\n"
	}
	changes := append(life("a listener with a hostname of its own on a port in use", base, with(listener("more", "80", "HTTP", "a.example")), with(listener("more", "80", "HTTP", "b.example"))),
		life("an HTTPS listener with a hostname of its own on a port in use", base, with(listener("more", "443", "HTTPS", "a.example")), with(listener("more", "443", "HTTPS", "b.example")))...)
	changes = append(changes,
		change{what: "a listener on a port of its own added", from: base, to: with(listener("more", "81", "HTTP", "a.example"))},
		change{what: "it moves to another port", from: with(listener("more", "81", "HTTP", "a.example")), to: with(listener("more", "82", "HTTP", "a.example"))},
		change{what: "it is removed", from: with(listener("more", "82", "HTTP", "a.example")), to: base},
		change{what: "an HTTPS listener on a port of its own added", from: base, to: with(listener("more", "444", "HTTPS", "a.example"))},
		change{what: "an HTTPS listener on a port of its own removed", from: with(listener("more", "444", "HTTPS", "a.example")), to: base},
		change{what: "which routes a listener allows", from: base, to: strings.Replace(base, "{name: http, port: 80, protocol: HTTP}", "{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}", 1)},
	)
	return append(changes, life("a Gateway", base, gw("8081", ""), gw("8081", ", {name: b, port: 8082, protocol: HTTP}"))...)
}

func setChanges(base string) []change {
	base = strings.Replace(base, "  listeners:", "  allowedListeners: {namespaces: {from: All}}\n  listeners:", 1) + inside("red", certificate("own", "red.example"))
	with := func(listener string) string { return base + set("red", "  - {name: a, "+listener+"}\n") }
	tls := ", tls: {certificateRefs: [{name: own}]}"
	return slices.Concat(
		life("a ListenerSet with a hostname on a port in use", base, with("port: 80, protocol: HTTP, hostname: red.example"), with("port: 80, protocol: HTTP, hostname: b.red.example")),
		life("a ListenerSet with a hostname on an HTTPS port in use", base,
			with("port: 443, protocol: HTTPS, hostname: red.example"+tls), with("port: 443, protocol: HTTPS, hostname: b.red.example"+tls)),
		life("a ListenerSet with a port of its own", base, with("port: 81, protocol: HTTP"), with("port: 82, protocol: HTTP")),
	)
}

func xbackendChanges(base string) []change {
	ca := newAuthority()
	base += bundle("ca", ca)
	podAt := func(name, ip string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: " + name + ", labels: {app: far}}\n" +
			"status: {conditions: [{type: Ready, status: 'True'}], podIPs: [{ip: " + ip + "}]}\n"
	}
	with := func(spec string) string {
		return base + podAt("far-1", "192.0.2.9") + xbackend("far", spec) + route("new", "hostnames: [new.example]\nrules:\n- backendRefs: ["+toXBackend("far")+"]")
	}
	outside := func(hostname string) string {
		return base + "---\napiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackend\nmetadata: {name: out}\n" +
			"spec: {type: ExternalHostname, port: {number: 443}, externalHostname: {hostname: " + hostname + "}, " +
			"tls: {mode: ServerOnly, validation: {hostname: " + hostname + ", wellKnownCACertificates: System}}}\n" +
			route("new", "hostnames: [new.example]\nrules:\n- backendRefs: ["+toXBackend("out")+"]")
	}
	tls := "tls: {mode: ServerOnly, validation: {hostname: s.internal, " + trustCA + "}}"
	return slices.Concat(
		life("an XBackend with its route", base, with("protocol: HTTP"), with("protocol: H2C")),
		life("TLS of an XBackend", with("protocol: HTTP"), with("protocol: HTTP, "+tls), with("protocol: HTTP2, "+tls)),
		life("a session of an XBackend", with("protocol: HTTP"), with("sessionPersistence: {cookie: {}}"), with("sessionPersistence: {type: Header, header: {name: X-S}}")),
		life("an XBackend of a name outside", base, outside("a.example"), outside("b.example")),
		life("a Pod that an XBackend selects", with("protocol: HTTP"), with("protocol: HTTP")+podAt("far-2", "192.0.2.10"), with("protocol: HTTP")+podAt("far-2", "192.0.2.11")),
	)
}

// withTLS gives the Gateway a part of spec.tls.
func withTLS(base, tls string) string {
	return strings.Replace(base, "  gatewayClassName: limpet\n", "  gatewayClassName: limpet\n  tls: {"+tls+"}\n", 1)
}

func backendTLSChanges(base string) []change {
	base += route("new", "hostnames: [new.example]\nrules:\n- backendRefs: [{name: other, port: 80}]")
	one, other := newAuthority(), newAuthority()
	policy := func(hostname string, trusted ...*authority) string {
		return base + bundle("ca", trusted...) + backendTLS("other", "hostname: "+hostname+", "+trustCA)
	}
	changes := life("a BackendTLSPolicy", base, policy("s.internal", one), policy("t.internal", one))
	changes = append(changes,
		change{what: "its CA bundle changed", from: policy("s.internal", one), to: policy("s.internal", one, other)},
		change{what: "the system's CA certificates instead", from: policy("s.internal", one), to: base + backendTLS("other", "hostname: s.internal, wellKnownCACertificates: System")},
		change{what: "the `appProtocol` of a Service becomes HTTP/2", from: base, pods: func(w *World) { w.service("other").appProtocol = "kubernetes.io/h2c" }},
		change{what: "the `appProtocol` of a Service is gone", pods: func(w *World) { w.service("other").appProtocol = "" }},
	)
	names := func(name string) string {
		return base + bundle("ca", one) + backendTLS("other", "hostname: s.internal, "+trustCA+", subjectAltNames: [{type: Hostname, hostname: "+name+"}]")
	}
	changes = append(changes, life("`subjectAltNames`", policy("s.internal", one), names("a.internal"), names("b.internal"))...)
	shown := func(pair string) string {
		return withTLS(policy("s.internal", one), "backend: {clientCertificateRef: {name: shown}}") + pair
	}
	return append(changes, life("the Gateway's certificate for backends", policy("s.internal", one),
		shown(certificate("shown", "gw.example")), shown(certificate("shown", "gw.example")))...)
}

func clientChanges(base string) []change {
	base = strings.Replace(base, hotListeners, hotListeners+"  - {name: more, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: steady}]}}\n", 1)
	one, other := newAuthority(), newAuthority()
	asked := func(mode string, trusted ...*authority) string {
		return withTLS(base, "frontend: {default: {}, perPort: [{port: 444, tls: {validation: {mode: "+mode+", "+trustCA+"}}}]}") + bundle("ca", trusted...)
	}
	return append(life("validation of clients on a port", base, asked("AllowValidOnly", one), asked("AllowInsecureFallback", one)),
		change{what: "the CA bundle for clients changed", from: asked("AllowValidOnly", one), to: asked("AllowValidOnly", one, other)})
}

func otherChanges(base string) []change {
	foreign := base + strings.Replace(route("foreign", "rules:\n- backendRefs: [{name: shop, port: 80}]"), "name: gw", "name: another", 1)
	across := base + strings.ReplaceAll(serviceOf("away"), "metadata: {name: away", "metadata: {namespace: elsewhere, name: away") +
		route("new", "hostnames: [new.example]\nrules:\n- backendRefs: [{name: away, namespace: elsewhere, port: 80}]")
	granted := across + `---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: grant, namespace: elsewhere}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: "", kind: Service}]}
`
	return []change{
		{what: "a ReferenceGrant removed", from: granted, to: across, refused: true},
		{what: "a ReferenceGrant added", from: "", to: granted},
		{what: "a route of somebody else's Gateway", from: base, to: foreign},
		{what: "a Secret that nobody refers to", from: base, to: base + certificate("unused", "x.example")},
		{what: "objects in another order, and comments", from: base + route("a", "hostnames: [a.example]") + route("b", "hostnames: [b.example]"),
			to: "# A comment\n" + base + route("b", "hostnames: [b.example]") + route("a", "hostnames: [a.example]")},
	}
}

// serviceOf is a Service with one endpoint at which nobody is.
func serviceOf(name string) string {
	return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{name: http, port: 80}]}\n" +
		(&service{name: name}).slice(name+"-1", "- addresses: [192.0.2.9]\n")
}
