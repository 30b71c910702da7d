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
	g := build(t, gateway+routeOf("{name: gw, sectionName: x}", "  rules: [{retry: {}}]\n  hostnames: [A.com]"))
	expect(t, g.Routes[0].Parents[0].Conditions, "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs", "the route is not valid either")
}

func TestUnbuiltFieldsOfARule(t *testing.T) {
	t.Parallel()
	runRouteCases(t, []routeCase{
		{"timeouts are not built", "timeouts: {request: 1s}", unsupported, []string{"spec.rules[0].timeouts"}},
		{"a backend's timeout is not built", "timeouts: {backendRequest: 1s}", unsupported, nil},
		{"timeouts that say nothing do no harm", "timeouts: {}", routeOK, nil},
		{"retry is not built", "retry: {attempts: 1}", unsupported, []string{"spec.rules[0].retry"}},
		{"backoff is not built", "retry: {backoff: 1s}", unsupported, nil},
	})
}
