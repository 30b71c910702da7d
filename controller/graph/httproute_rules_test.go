package graph

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestARouteIsRefusedAsAWholeForWhatConcernsItAsAWhole(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	rule := func(matches int) string { return "{matches: " + many(matches, "{path: {value: /%d}}") + "}" }
	for _, test := range []struct{ name, spec, message string }{
		{"an empty list of rules", "rules: []", "from 1 to 16"},
		{"17 rules", "rules: " + many(17, "{name: r%d}"), "from 1 to 16 entries, not 17"},
		{"129 matches in all", "rules: [" + rule(64) + ", " + rule(64) + ", " + rule(1) + "]", "128 matches in all, not 129"},
		{"17 hostnames", "hostnames: " + many(17, "a%d.com"), "spec.hostnames must not have more than 16"},
		{"an upper case hostname", "hostnames: [a.com, B.com]", `spec.hostnames[1]: "B.com"`},
		{"an IP address for a hostname", "hostnames: [10.0.0.1]", "IP address"},
		{"a wildcard alone", "hostnames: ['*']", `"*"`},
		{"a newline in a hostname", `hostnames: ["a.com\nb"]`, `"a.com\nb"`},
		{"two rules with one name", "rules: [{name: a}, {name: a}]", `spec.rules[1].name: another rule is named "a"`},
		{"a bad rule name", "rules: [{name: A_b}]", "spec.rules[0].name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			route := build(t, gateway+routeOf("{name: gw}", "  "+test.spec)).Routes[0]
			if strings.Contains(allMessages(route.Parents[0].Conditions), "\nb") {
				t.Error("a message holds a newline of the user's")
			}
			got := show(route.Parents[0].Conditions)
			if !strings.HasPrefix(got, "Accepted=False/") || !strings.Contains(allMessages(route.Parents[0].Conditions), test.message) {
				t.Errorf("%s\n%s", got, allMessages(route.Parents[0].Conditions))
			}
			for _, rule := range route.Rules {
				if !rule.Dropped {
					t.Errorf("rule %d is served", rule.Index)
				}
			}
		})
	}
}

func TestHostnamesThatAreAllInvalidDoNotStandForEveryOne(t *testing.T) {
	parent := build(t, gateway+routeOf("{name: gw}", "  hostnames: ['*']")).Routes[0].Parents[0]
	if len(parent.Listeners)+len(parent.Blocked) > 0 {
		t.Error("the route takes every hostname")
	}
}

func TestARouteWithoutRulesTakesEverythingAndHasNoBackend(t *testing.T) {
	for _, rest := range []string{"", "  rules: [{}]", "  rules: [{matches: []}]", "  rules: [{matches: [{}]}]"} {
		rule := build(t, gateway+routeOf("{name: gw}", rest)).rule(t)
		match := Match{PathType: gatewayv1.PathMatchPathPrefix}
		if rule.Dropped || len(rule.Backends) > 0 || len(rule.Matches) != 1 || fmt.Sprint(rule.Matches[0]) != fmt.Sprint(match) {
			t.Errorf("%q: %+v", rest, rule)
		}
	}
}

func TestOneBadRuleIsDroppedAndTheOthersAreServed(t *testing.T) {
	t.Parallel()
	g := build(t, gateway+shop+routeTo(`
    matches: [{path: {value: /good}}]
    backendRefs: [{name: shop, port: 80}]
  - name: bad
    matches: [{path: {value: /bad}}, {path: {value: bad}}]
    filters: [{type: CORS, cors: {maxAge: -1}}]
    backendRefs: [{name: shop, port: 80}]
    sessionPersistence: {cookie: {}}`))
	route := g.route(t, "default/route")
	expect(t, route.Parents[0].Conditions, routeOK+" PartiallyInvalid=True/UnsupportedValue", "Dropped Rule",
		"spec.rules[1].matches[1].path.value", "spec.rules[1].filters[0].cors.maxAge: -1 must be at least 1", "answered with 500")
	if len(route.Parents[0].Listeners) != 1 || len(route.Parents[0].Blocked) != 0 || route.Rules[0].Dropped {
		t.Error("the good rule is not served")
	}
	bad := route.Rules[1]
	if !bad.Dropped || bad.Name != "bad" || bad.Index != 1 || len(bad.Matches) != 1 || bad.Matches[0].Path != "/bad" {
		t.Errorf("%+v", bad)
	}
	if len(bad.Backends) > 0 || bad.Session != nil {
		t.Error("a dropped rule has more than its matches")
	}
}

func TestARouteWhoseRulesAreAllDroppedIsNotAcceptedButHoldsItsPaths(t *testing.T) {
	g := build(t, gateway+routeTo(`
    matches: [{path: {value: /admin}}]
    filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Auth, name: a}}]`))
	parent := g.route(t, "default/route").Parents[0]
	expect(t, parent.Conditions, "Accepted=False/UnsupportedValue ResolvedRefs=False/InvalidKind", "ExtensionRef", `"Auth"`)
	if len(parent.Listeners) != 0 || listenerNames(parent.Blocked) != "http" || g.AttachedRoutes(g.Gateways[0].Listeners[0]) != 0 {
		t.Errorf("%+v", parent)
	}
	if rule := g.rule(t); !rule.Dropped || rule.Matches[0].Path != "/admin" {
		t.Errorf("%+v", rule)
	}
}

func TestTheReasonOfAFailedAttachmentComesFirst(t *testing.T) {
	g := build(t, gateway+routeOf("{name: gw, sectionName: x}", "  rules: [{retry: {attempts: -1}}]\n  hostnames: [A.com]"))
	expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs", "the route is not valid either")
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, timeouts, want string }{
		{"nothing given", "{}", "0s 0s"},
		{"the request's", "{request: 1m30s}", "1m30s 0s"},
		{"the backend's", "{backendRequest: 500ms}", "0s 500ms"},
		{"both", "{request: 2s, backendRequest: 2s}", "2s 2s"},
		{"0s disables the request's", "{request: 0s}", "none 0s"},
		{"0s disables the backend's", "{backendRequest: 0s}", "0s none"},
		{"a disabled request bounds no backend", "{request: 0s, backendRequest: 1h}", "none 1h0m0s"},
		{"a backend without limit within a limited request", "{request: 1s, backendRequest: 0h}", "1s none"},
		{"a backend's that is longer than the request's", "{request: 1s, backendRequest: 1001ms}", ""},
		{"no unit", "{request: '10'}", ""},
		{"a fraction", "{request: 1.5s}", ""},
		{"a sign", "{backendRequest: -1s}", ""},
		{"nothing", "{request: ''}", ""},
		{"a newline", `{request: "1s\n"}`, ""},
		{"longer than HAProxy can wait", "{request: 577h}", ""},
		{"six digits", "{request: 100000s}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+shop+routeTo("{timeouts: "+test.timeouts+", backendRefs: [{name: shop, port: 80}]}"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].timeouts.")
				return
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
			got := strings.ReplaceAll(fmt.Sprint(g.rule(t).RequestTimeout, g.rule(t).BackendTimeout), Unlimited.String(), "none")
			if got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, retry, want string }{
		{"once by default", "{}", "{1 []}"},
		{"codes are sorted", "{codes: [503, 500, 429], attempts: 3}", "{3 [429 500 503]}"},
		{"a code twice is one", "{codes: [503, 503]}", "{1 [503]}"},
		{"every code that HAProxy can", "{codes: [401, 403, 404, 408, 425, 429, 500, 501, 502, 503, 504]}",
			"{1 [401 403 404 408 425 429 500 501 502 503 504]}"},
		{"no attempt needs no code", "{codes: [500], attempts: 0}", "{0 []}"},
		{"a hundred", "{attempts: 100}", "{100 []}"},
		{"more", "{attempts: 101}", ""},
		{"less than none", "{attempts: -1}", ""},
		{"a code that HAProxy cannot", "{codes: [500, 505]}", ""},
		{"a code that is no error", "{codes: [200]}", ""},
		{"backoff", "{backoff: 1s}", ""},
		{"no backoff at all is backoff", "{backoff: 0s}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+shop+routeTo("{retry: "+test.retry+", backendRefs: [{name: shop, port: 80}]}"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].retry.")
				return
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
			if got := fmt.Sprint(*g.rule(t).Retry); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
