package behaviour

import "testing"

// listeners is a Gateway with these listeners.
func listeners(spec string) string {
	return class + `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: limpet
  listeners:
` + spec
}

func TestB04HostnamesOfRoutes(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		route("exact", "hostnames: [a.ex.com, ex.org]\nrules:\n- backendRefs: [{name: exact, port: 80}]")+
		route("wild", "hostnames: [\"*.ex.com\"]\nrules:\n- backendRefs: [{name: wild, port: 80}]")+
		route("deep", "hostnames: [\"*.deep.ex.com\", \"*.1.2.3.4.5.6.7.8.9.net\"]\nrules:\n- backendRefs: [{name: deep, port: 80}]"),
		pods("exact", 1), pods("wild", 1), pods("deep", 1))
	w.check(t, []row{
		{"exact", get("a.ex.com/"), "exact"},
		{"exact, another of the same route", get("ex.org/"), "exact"},
		{"exact, in mixed case", get("A.eX.Com/"), "exact"},
		{"exact, with a port", get("a.ex.com:80/"), "exact"},
		{"exact, with another port", get("a.ex.com:8443/"), "exact"},
		{"exact, with a dot at its end", get("a.ex.com./"), "exact"},
		{"exact, with everything", get("A.EX.com.:80/"), "exact"},
		{"wildcard, one label", get("b.ex.com/"), "wild"},
		{"wildcard, two labels", get("a.b.ex.com/"), "wild"},
		{"wildcard, ten labels", get("1.2.3.4.5.6.7.8.9.10.ex.com/"), "wild"},
		{"wildcard, forty labels", get("0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.ex.com/"), "wild"},
		{"wildcard, below an exact one", get("x.a.ex.com/"), "wild"},
		{"wildcard, in mixed case with a port and a dot", get("B.ex.COM.:80/"), "wild"},
		{"wildcard, not its own suffix", get("ex.com/"), "404"},
		{"wildcard, an empty label", get(".ex.com/"), "wild"},
		{"wildcard, not a longer suffix", get("b.notex.com/"), "404"},
		{"wildcard, not a suffix without its dot", get("bex.com/"), "404"},
		{"wildcard, not as it is written", get("*.ex.com/"), "wild"},
		{"the longer wildcard", get("a.deep.ex.com/"), "deep"},
		{"the longer wildcard, more labels", get("a.b.deep.ex.com/"), "deep"},
		{"the longer wildcard's own suffix", get("deep.ex.com/"), "wild"},
		{"a wildcard with many labels", get("0.1.2.3.4.5.6.7.8.9.net/"), "deep"},
		{"a wildcard with many labels, not its own suffix", get("1.2.3.4.5.6.7.8.9.net/"), "404"},
		{"an exact one has no subdomains", get("a.ex.org/"), "404"},
		{"another host", get("other.com/"), "404"},
		{"an address", get("127.0.0.1/"), "404"},
		{"a port alone", get(":80/"), "404"},
		{"what looks like a key of ours", get("|*/"), "404"},
		{"a list is one name", get("evil.com,ex.org/"), "404"},
	})
}

func TestWithoutAHostARequestGoesToThoseThatTakeEveryone(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		route("all", "rules:\n- backendRefs: [{name: all, port: 80}]")+
		route("one", "hostnames: [one.com]\nrules:\n- backendRefs: [{name: one, port: 80}]"), pods("all", 1), pods("one", 1))
	w.check(t, []row{
		{"any host", get("any.com/"), "all"},
		{"an address", get("127.0.0.1:80/"), "all"},
		{"an IPv6 address", get("[::1]:80/"), "all"},
		{"an empty Host", request{raw: "GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"}, "all"},
		{"HTTP/1.0 without Host", request{raw: "GET / HTTP/1.0\r\n\r\n"}, "all"},
		{"HTTP/1.0 with Host", request{raw: "GET / HTTP/1.0\r\nHost: one.com\r\n\r\n"}, "one"},
		{"HTTP/1.1 without Host", request{raw: "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"}, "400"},
		{"Host twice", request{raw: "GET / HTTP/1.1\r\nHost: one.com\r\nHost: any.com\r\nConnection: close\r\n\r\n"}, "400"},
		{"the whole URL", request{raw: "GET http://one.com/p HTTP/1.1\r\nHost: one.com\r\nConnection: close\r\n\r\n"}, "one"},
		{"the whole URL of another host", request{raw: "GET http://one.com/p HTTP/1.1\r\nHost: any.com\r\nConnection: close\r\n\r\n"}, "400"},
	})
}

func TestB03AMoreSpecificHostBeatsALongerPath(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		aged("00", "wild", `
hostnames: ["*.ex.com"]
rules:
- matches: [{path: {type: Exact, value: /a/b}}]
  backendRefs: [{name: wild, port: 80}]
- matches: [{path: {value: /only}}]
  backendRefs: [{name: wild, port: 80}]`)+
		aged("01", "exact", `
hostnames: [foo.ex.com]
rules:
- backendRefs: [{name: exact, port: 80}]`)+
		aged("02", "picky", `
hostnames: [picky.ex.com]
rules:
- matches: [{headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: exact, port: 80}]`)+
		aged("03", "every", "rules:\n- matches: [{path: {value: /every}}]\n  backendRefs: [{name: every, port: 80}]"),
		pods("wild", 1), pods("exact", 1), pods("every", 1))
	w.check(t, []row{
		{"the exact host's root before the wildcard's exact path", get("foo.ex.com/a/b"), "exact"},
		{"the wildcard alone", get("bar.ex.com/a/b"), "wild"},
		{"the exact host where its conditions hold", get("picky.ex.com/a/b", "a: 1"), "exact"},
		{"where they do not, the next broader host", get("picky.ex.com/a/b"), "wild"},
		{"and the one after that", get("picky.ex.com/every"), "every"},
		{"where nothing holds, nothing", get("picky.ex.com/nothing"), "404"},
		{"from the wildcard to the one for every host", get("bar.ex.com/every"), "every"},
	})
}

func TestARequestBelongsToTheListenerWithTheMostSpecificHostname(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: every, port: 80, protocol: HTTP}
  - {name: wild, port: 80, protocol: HTTP, hostname: "*.ex.com"}
  - {name: deep, port: 80, protocol: HTTP, hostname: "*.foo.ex.com"}
  - {name: exact, port: 80, protocol: HTTP, hostname: abc.foo.ex.com}
  - {name: empty, port: 80, protocol: HTTP, hostname: empty.ex.com}
  - {name: other, port: 81, protocol: HTTP, hostname: abc.foo.ex.com}
`)+
		routeOf("every", "parentRefs: [{name: gw, sectionName: every}]\nrules:\n- matches: [{path: {value: /every}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("wild", "parentRefs: [{name: gw, sectionName: wild}]\nrules:\n- matches: [{path: {value: /wild}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("deep", "parentRefs: [{name: gw, sectionName: deep}]\nrules:\n- matches: [{path: {value: /deep}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("exact", "parentRefs: [{name: gw, sectionName: exact}]\nrules:\n- matches: [{path: {value: /exact}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("other", "parentRefs: [{name: gw, port: 81}]\nrules:\n- backendRefs: [{name: two, port: 80}]"),
		pods("one", 1), pods("two", 1))
	hosts := map[string]string{
		"bar.com": "every", "ex.com": "every", "bar.ex.com": "wild", "foo.ex.com": "wild", "x.foo.ex.com": "deep", "y.x.foo.ex.com": "deep",
		"abc.foo.ex.com": "exact", "ABC.foo.ex.com:80": "exact", "x.abc.foo.ex.com": "deep", "empty.ex.com": "none",
	}
	for host, owner := range hosts {
		for _, path := range []string{"every", "wild", "deep", "exact"} {
			want := "404"
			if path == owner {
				want = "one"
			}
			if got := w.ask(t, get(host+"/"+path)).outcome(); got != want {
				t.Errorf("%s/%s: %s, want %s", host, path, got, want)
			}
		}
	}
	w.check(t, []row{
		{"another port is another listener", request{host: "abc.foo.ex.com", target: "/any", port: 81}, "two"},
		{"with its own hostname only", request{host: "foo.ex.com", target: "/any", port: 81}, "404"},
	})
}

func TestARouteTakesWhatItHasInCommonWithTheListener(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: exact, port: 80, protocol: HTTP, hostname: very.specific.com}
  - {name: wild, port: 80, protocol: HTTP, hostname: "*.wild.io"}
  - {name: more, port: 80, protocol: HTTP, hostname: "*.anotherwild.io"}
`)+
		route("a", `
hostnames: [non.matching.com, "*.nonmatchingwild.io", very.specific.com, "*.wild.io"]
rules:
- matches: [{path: {value: /s1}}]
  backendRefs: [{name: one, port: 80}]`)+
		route("b", `
hostnames: [foo.wild.io, wild.io, "*.foo.anotherwild.io", "*.specific.com"]
rules:
- matches: [{path: {value: /s2}}]
  backendRefs: [{name: two, port: 80}]`)+
		route("c", `
rules:
- matches: [{path: {value: /s3}}]
  backendRefs: [{name: three, port: 80}]`), pods("one", 1), pods("two", 1), pods("three", 1))
	w.check(t, []row{
		{"both exact", get("very.specific.com/s1"), "one"},
		{"not what only the route has", get("non.matching.com/s1"), "404"},
		{"not what only the route has, a wildcard", get("foo.nonmatchingwild.io/s1"), "404"},
		{"both wildcards", get("bar.wild.io/s1"), "one"},
		{"a wildcard is no host", get("wild.io/s1"), "404"},
		{"an exact host of a wildcard listener", get("foo.wild.io/s2"), "two"},
		{"and nothing beside it", get("bar.wild.io/s2"), "404"},
		{"the suffix of a wildcard listener", get("wild.io/s2"), "404"},
		{"a narrower wildcard", get("x.foo.anotherwild.io/s2"), "two"},
		{"and nothing beside it", get("foo.anotherwild.io/s2"), "404"},
		{"a route's wildcard on an exact listener", get("very.specific.com/s2"), "two"},
		{"and nothing beside it", get("not.specific.com/s2"), "404"},
		{"a route without hostnames takes the listener's: exact", get("very.specific.com/s3"), "three"},
		{"a route without hostnames takes the listener's: wildcard", get("any.wild.io/s3"), "three"},
		{"and no others", get("any.io/s3"), "404"},
	})
}

func TestARouteAttachesToTheListenersItNames(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: a, port: 80, protocol: HTTP}
  - {name: b, port: 81, protocol: HTTP}
  - {name: c, port: 82, protocol: HTTP}
`)+
		routeOf("named", "parentRefs: [{name: gw, sectionName: a}]\nrules:\n- matches: [{path: {value: /named}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("ports", "parentRefs: [{name: gw, port: 81}, {name: gw, port: 82}]\nrules:\n- matches: [{path: {value: /ports}}]\n  backendRefs: [{name: one, port: 80}]")+
		routeOf("both", "parentRefs: [{name: gw, sectionName: c, port: 82}]\nrules:\n- matches: [{path: {value: /both}}]\n  backendRefs: [{name: one, port: 80}]")+
		route("all", "rules:\n- matches: [{path: {value: /all}}]\n  backendRefs: [{name: one, port: 80}]"),
		pods("one", 1))
	for path, ports := range map[string]map[int]bool{
		"/named": {80: true}, "/ports": {81: true, 82: true}, "/both": {82: true}, "/all": {80: true, 81: true, 82: true},
	} {
		for _, port := range []int{80, 81, 82} {
			want := "404"
			if ports[port] {
				want = "one"
			}
			if got := w.ask(t, request{host: "x.com", target: path, port: port}).outcome(); got != want {
				t.Errorf("%s on port %d: %s, want %s", path, port, got, want)
			}
		}
	}
}
