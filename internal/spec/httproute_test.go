package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
)

const noHostname = "Accepted=False/NoMatchingListenerHostname ResolvedRefs=True/ResolvedRefs"

// hostnameExamples are those in the comments of HTTPRouteSpec.Hostnames and GRPCRouteSpec.Hostnames, with the conditions of
// the route.
var hostnameExamples = []struct{ listener, route, want string }{
	{"test.example.com", "", routeOK},
	{"test.example.com", "test.example.com", routeOK},
	{"test.example.com", "*.example.com", routeOK},
	{"test.example.com", "foo.example.com", noHostname},
	{"*.example.com", "", routeOK},
	{"*.example.com", "*.example.com", routeOK},
	{"*.example.com", "test.example.com", routeOK},
	{"*.example.com", "foo.test.example.com", routeOK},
	{"*.example.com", "example.com", noHostname},
	{"*.example.com", "test.example.net", noHostname},
}

// TestExamplesOfHostnames has the examples in the comment of HTTPRouteSpec.Hostnames.
func TestExamplesOfHostnames(t *testing.T) {
	t.Parallel()
	for _, test := range hostnameExamples {
		t.Run(test.listener+" and "+test.route, func(t *testing.T) {
			t.Parallel()
			manifests := class + gateway("gw", fmt.Sprintf("{name: http, port: 80, protocol: HTTP, hostname: '%s'}", test.listener)) +
				route("r", fmt.Sprintf("parentRefs: [{name: gw}]\nhostnames: [%s]", quote(test.route)))
			if got := parents(t, manifests, "r"); !slices.Equal(got, []string{test.want}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func quote(text string) string {
	if text == "" {
		return ""
	}
	return "'" + text + "'"
}

func TestAWildcardLabelStandsAloneAndFirst(t *testing.T) {
	t.Parallel()
	for _, hostname := range []string{"a.*.com", "*a.example.com", "a*.example.com", "*.*.example.com", "example.*", "*"} {
		got := parents(t, class+gateway("gw", http80)+route("r", "parentRefs: [{name: gw}]\nhostnames: ['"+hostname+"']"), "r")
		if len(got) != 1 || !strings.HasPrefix(got[0], "Accepted=False/") {
			t.Errorf("%s: %q", hostname, got)
		}
	}
}

// TestTheExampleOfMatches has the example in the comment of HTTPRouteRule.Matches.
func TestTheExampleOfMatches(t *testing.T) {
	t.Parallel()
	config := translated(t, class+gateway("gw", http80)+service("default", "shop")+route("r", `
parentRefs: [{name: gw}]
rules:
- matches:
  - path: {value: "/foo"}
    headers: [{name: version, value: v2}]
  - path: {value: "/v2/foo"}
  backendRefs: [{name: shop, port: 80}]`))
	for _, test := range []struct{ target, header, want string }{
		{"h/foo", "version: v2", "shop"},
		{"h/foo/bar", "version: v2", "shop"},
		{"h/foo", "version: v1", "404"},
		{"h/foo", "", "404"},
		{"h/v2/foo", "", "shop"},
		{"h/v2/foo", "version: v1", "shop"},
		{"h/bar", "version: v2", "404"},
	} {
		if got := ask(t, config, test.target, test.header); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.target, test.header, got, test.want)
		}
	}
}

func TestAllConditionsOfAMatchMustHold(t *testing.T) {
	t.Parallel()
	config := translated(t, class+gateway("gw", http80)+service("default", "shop")+route("r", `
parentRefs: [{name: gw}]
rules:
- matches: [{headers: [{name: a, value: "1"}, {name: b, value: "2"}], queryParams: [{name: c, value: "3"}, {name: D, value: "4"}]}]
  backendRefs: [{name: shop, port: 80}]`))
	for _, test := range []struct {
		target  string
		headers []string
		want    string
	}{
		{"h/?c=3&D=4", []string{"a: 1", "b: 2"}, "shop"},
		{"h/?c=3&D=4", []string{"a: 1"}, "404"},
		{"h/?c=3&D=4", []string{"a: 1", "b: 3"}, "404"},
		{"h/?c=3", []string{"a: 1", "b: 2"}, "404"},
		{"h/?c=3&D=5", []string{"a: 1", "b: 2"}, "404"},
		{"h/?c=3&d=4", []string{"a: 1", "b: 2"}, "404"},
	} {
		if got := ask(t, config, test.target, test.headers...); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.target, test.headers, got, test.want)
		}
	}
}

func TestParentRefsToOneObjectAreDistinctByTheSameFields(t *testing.T) {
	t.Parallel()
	listeners := gateway("gw", "{name: a, port: 80, protocol: HTTP}", "{name: b, port: 81, protocol: HTTP}") +
		gateway("other", "{name: a, port: 90, protocol: HTTP}")
	for _, test := range []struct{ name, refs, want string }{
		{"different objects", "{name: gw}, {name: other}", routeOK},
		{"two sections", "{name: gw, sectionName: a}, {name: gw, sectionName: b}", routeOK},
		{"two ports", "{name: gw, port: 80}, {name: gw, port: 81}", routeOK},
		{"two sections with their ports", "{name: gw, sectionName: a, port: 80}, {name: gw, sectionName: b, port: 81}", routeOK},
		{"one object twice", "{name: gw}, {name: gw}", noValue},
		{"one section twice", "{name: gw, sectionName: a}, {name: gw, sectionName: a}", noValue},
		{"one port twice", "{name: gw, port: 80}, {name: gw, port: 80}", noValue},
		{"a section and none", "{name: gw, sectionName: a}, {name: gw}", noValue},
		{"a port and none", "{name: gw, port: 80}, {name: gw}", noValue},
		{"a section and a port", "{name: gw, sectionName: a}, {name: gw, port: 81}", noValue},
		{"a section with its port and a section", "{name: gw, sectionName: a, port: 80}, {name: gw, sectionName: b}", noValue},
		{"a section with its port and a port", "{name: gw, sectionName: a, port: 80}, {name: gw, port: 81}", noValue},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := parents(t, class+listeners+route("r", "parentRefs: ["+test.refs+"]"), "r")
			if want := []string{test.want, test.want}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

const good, bad = "{matches: [{path: {value: /good}}]}", "{matches: [{path: {value: /bad}}], retry: {backoff: 1s}}"

func TestPartiallyInvalidIsSetOnlyWhereItIsSo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, section, rules, want string }{
		{"all rules valid", "http", good, routeOK},
		{"all rules invalid", "http", bad, noValue},
		{"some invalid", "http", good + ", " + bad, routeOK + " PartiallyInvalid=True/UnsupportedValue"},
		{"some invalid and not accepted", "none", good + ", " + bad, "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := parents(t, class+gateway("gw", http80)+
				route("r", "parentRefs: [{name: gw, sectionName: "+test.section+"}]\nrules: ["+test.rules+"]"), "r")
			if !slices.Equal(got, []string{test.want}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestThePrefixAndTheRulesOfADroppedRule(t *testing.T) {
	t.Parallel()
	g := build(t, class+gateway("gw", http80)+route("r", "parentRefs: [{name: gw}]\nrules: ["+good+", "+bad+"]"))
	conditions := statusOf(t, statuses(g), "HTTPRoute", "r").Route.Parents[0].Conditions
	message := condition(conditions, "PartiallyInvalid").Message
	if !strings.HasPrefix(message, "Dropped Rule") || !strings.Contains(message, "spec.rules[1]") || strings.Contains(message, "spec.rules[0]") {
		t.Errorf("the message is %q", message)
	}
	if c := condition(conditions, accepted); c.Status != "True" || c.ObservedGeneration != g.Routes[0].Source.GetGeneration() {
		t.Errorf("Accepted is %+v", c)
	}
}

func TestARuleThatBecomesInvalidIsNoLongerServed(t *testing.T) {
	t.Parallel()
	manifests := func(rule string) string {
		return class + gateway("gw", http80) + service("default", "shop") + route("r", `
parentRefs: [{name: gw}]
rules:
- {matches: [{path: {value: /a}}], backendRefs: [{name: shop, port: 80}]}
- {matches: [{path: {value: /b}}], backendRefs: [{name: shop, port: 80}]`+rule+"}")
	}
	builder := graph.NewBuilder(graph.Options{})
	translator := newTranslator()
	for _, step := range []struct{ rule, a, b string }{
		{"", "shop", "shop"}, {", retry: {backoff: 1s}", "shop", "500"}, {"", "shop", "shop"},
	} {
		config := translator.Config(builder.Build(load(t, manifests(step.rule))))
		if a, b := ask(t, config, "h/a"), ask(t, config, "h/b"); a != step.a || b != step.b {
			t.Errorf("with %q: /a gets %s and /b %s, want %s and %s", step.rule, a, b, step.a, step.b)
		}
	}
}

const mirrorToOther = `
parentRefs: [{name: gw}]
rules:
- backendRefs: [{name: shop, port: 80}]
  filters: [{type: RequestMirror, requestMirror: {backendRef: {name: far, namespace: other, port: 80}}}]`

func TestAMirrorIntoAnotherNamespaceNeedsAGrant(t *testing.T) {
	t.Parallel()
	g := build(t, class+gateway("gw", http80)+service("default", "shop")+service("other", "far")+route("r", mirrorToOther))
	conditions := statusOf(t, statuses(g), "HTTPRoute", "r").Route.Parents[0].Conditions
	resolved := condition(conditions, "ResolvedRefs")
	if resolved.Status != "False" || resolved.Reason != "RefNotPermitted" || !strings.Contains(resolved.Message, "requestMirror.backendRef") {
		t.Errorf("ResolvedRefs is %+v", resolved)
	}
}

const grantOther = `---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: g, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}]
  to: [{group: "", kind: Service}]
`

func TestAGrantThatGoesTakesTheAccessWithIt(t *testing.T) {
	t.Parallel()
	base := class + gateway("gw", http80) + service("other", "far") + route("r", `
parentRefs: [{name: gw}]
rules: [{backendRefs: [{name: far, namespace: other, port: 80}]}]`)
	builder, translator := graph.NewBuilder(graph.Options{}), newTranslator()
	for _, step := range []struct{ manifests, want string }{
		{base, "500"}, {base + grantOther, "far"}, {base, "500"},
	} {
		g := builder.Build(load(t, step.manifests))
		if got := ask(t, translator.Config(g), "h/"); got != step.want {
			t.Errorf("a request gets %s, want %s", got, step.want)
		}
		resolved := condition(statusOf(t, statuses(g), "HTTPRoute", "r").Route.Parents[0].Conditions, "ResolvedRefs")
		if permitted := step.want != "500"; permitted != (resolved.Status == "True") || !permitted && resolved.Reason != "RefNotPermitted" {
			t.Errorf("ResolvedRefs is %s/%s where a request gets %s", resolved.Status, resolved.Reason, step.want)
		}
	}
}

func TestSessionsAreAccepted(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"a cookie with defaults": "backendRefs: [{name: shop, port: 80}], sessionPersistence: {cookie: {}}",
		"a session cookie":       "backendRefs: [{name: shop, port: 80}], sessionPersistence: {type: Cookie, cookie: {lifetimeType: Session}}",
		"a permanent cookie":     "backendRefs: [{name: shop, port: 80}], sessionPersistence: {absoluteTimeout: 5m, cookie: {lifetimeType: Permanent}}",
		"a header":               "backendRefs: [{name: shop, port: 80}], sessionPersistence: {type: Header, header: {name: X-Session}}",
		"a split":                "backendRefs: [{name: shop, port: 80, weight: 70}, {name: far, port: 80, weight: 30}], sessionPersistence: {cookie: {}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parents(t, class+gateway("gw", http80)+service("default", "shop")+service("default", "far")+
				route("r", "parentRefs: [{name: gw}]\nrules: [{"+rule+"}]"), "r")
			if !slices.Equal(got, []string{routeOK}) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestLabelsOfHostnames(t *testing.T) {
	t.Parallel()
	for hostname, valid := range map[string]bool{
		"a-1.example.com": true, "1.example.com": true, "a": true, "a.": false, "a..com": false, "-a.com": false, "a-.com": false,
		"a_b.com": false, "A.com": false, "a.com-": false, "a b.com": false, "ä.com": false,
	} {
		refused := func(manifests, kind string) bool {
			for _, update := range statuses(build(t, class+manifests)) {
				for _, section := range update.Sections() {
					if c := condition(section.Conditions, accepted); update.Kind == kind && c.Status == "False" {
						return true
					}
				}
			}
			return false
		}
		for what, got := range map[string]bool{
			"a listener": refused(gateway("gw", "{name: http, port: 80, protocol: HTTP, hostname: '"+hostname+"'}"), "Gateway"),
			"a route":    refused(gateway("gw", http80)+route("r", "parentRefs: [{name: gw}]\nhostnames: ['"+hostname+"']"), "HTTPRoute"),
			"a redirect": refused(gateway("gw", http80)+route("r", "parentRefs: [{name: gw}]\nrules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: '"+hostname+"'}}]}]"), "HTTPRoute"),
		} {
			if got == valid {
				t.Errorf("%s with the hostname %q is refused: %v", what, hostname, got)
			}
		}
	}
}

func TestFormsOfAddresses(t *testing.T) {
	t.Parallel()
	for address, valid := range map[string]bool{
		"10.0.0.1": true, "2001:db8::1": true, "::1": true, "2001:0db8:0:0:0:0:0:1": true, "10.0.0": false, "0x0a000001": false,
		"167772161": false, "010.0.0.1": false, "10.0.0.0/24": false, "[::1]": false, "2001:db8::g": false, "a.com": false,
	} {
		manifests := strings.Replace(gateway("gw", http80), "listeners:", "addresses: [{value: '"+address+"'}], listeners:", 1)
		got := condition(statusOf(t, statuses(build(t, class+manifests)), "Gateway", "gw").Gateway.Conditions, accepted)
		if (got.Status == "True") != valid {
			t.Errorf("%s: %s=%s/%s", address, got.Type, got.Status, got.Reason)
		}
	}
}
