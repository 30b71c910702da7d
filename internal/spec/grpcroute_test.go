package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// grpcRoute is a GRPCRoute; its spec comes without indentation.
func grpcRoute(name, spec string) string {
	return strings.Replace(route(name, spec), "kind: HTTPRoute", "kind: GRPCRoute", 1)
}

// grpcConditions are those of the parents of the GRPCRoute "r", and the messages of the first.
func grpcConditions(t testing.TB, manifests string) (parents []string, messages string) {
	t.Helper()
	for i, parent := range statusOf(t, statuses(build(t, manifests)), "GRPCRoute", "r").Route.Parents {
		parents = append(parents, show(parent.Conditions))
		for _, c := range parent.Conditions {
			if i == 0 {
				messages += c.Message + "\n"
			}
		}
	}
	return parents, messages
}

func TestHostnamesOfGRPCRoutes(t *testing.T) {
	t.Parallel()
	for _, test := range hostnameExamples {
		got, _ := grpcConditions(t, class+gateway("gw", fmt.Sprintf("{name: http, port: 80, protocol: HTTP, hostname: '%s'}", test.listener))+
			grpcRoute("r", fmt.Sprintf("parentRefs: [{name: gw}]\nhostnames: [%s]", quote(test.route))))
		if !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s and %s: got %q, want %q", test.listener, test.route, got, test.want)
		}
	}
	for _, hostname := range []string{"a.*.com", "*a.example.com", "a*.example.com", "*.*.example.com", "example.*", "*"} {
		got, _ := grpcConditions(t, class+gateway("gw", http80)+grpcRoute("r", "parentRefs: [{name: gw}]\nhostnames: ['"+hostname+"']"))
		if len(got) != 1 || !strings.HasPrefix(got[0], "Accepted=False/") {
			t.Errorf("%s: %q", hostname, got)
		}
	}
}

// TestHostnamesOfAGRPCRouteThatTheListenerDoesNotHave are no way to it.
func TestHostnamesOfAGRPCRouteThatTheListenerDoesNotHave(t *testing.T) {
	t.Parallel()
	config := translated(t, class+gateway("gw", "{name: http, port: 80, protocol: HTTP, hostname: '*.example.com'}")+service("default", "shop")+
		grpcRoute("r", "parentRefs: [{name: gw}]\nhostnames: [test.example.com, test.example.net]\nrules: [{backendRefs: [{name: shop, port: 80}]}]"))
	for target, want := range map[string]string{"test.example.com/s.S/M": "shop", "test.example.net/s.S/M": "404", "other.example.com/s.S/M": "404"} {
		if got := ask(t, config, target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

// TestPrecedenceOfGRPCHostnames is by the routes' own hostnames, which have the same in common with the listener.
func TestPrecedenceOfGRPCHostnames(t *testing.T) {
	t.Parallel()
	rules := "\nrules: [{backendRefs: [{name: %s, port: 80}]}]"
	config := translated(t, class+gateway("gw", "{name: http, port: 80, protocol: HTTP, hostname: a.b.example.com}")+
		service("default", "wide")+service("default", "wider")+service("default", "any")+
		grpcRoute("c", "parentRefs: [{name: gw}]\nhostnames: ['*.b.example.com']"+fmt.Sprintf(rules, "wide"))+
		grpcRoute("b", "parentRefs: [{name: gw}]\nhostnames: ['*.example.com']"+fmt.Sprintf(rules, "wider"))+
		grpcRoute("a", "parentRefs: [{name: gw}]"+fmt.Sprintf(rules, "any")))
	if got := ask(t, config, "a.b.example.com/s.S/M"); got != "wide" {
		t.Errorf("got %s, want the route with the narrowest hostname", got)
	}
}

func TestWhatIsWrongWithARuleOfAGRPCRoute(t *testing.T) {
	t.Parallel()
	const accepted = "Accepted=True/Accepted ResolvedRefs=False/"
	for _, test := range []struct{ name, rules, want, message string }{
		{"two rules with one name", "[{name: a}, {name: a}]", noValue, `"a"`},
		{"another kind of backend", "[{backendRefs: [{kind: Bucket, name: x, port: 80}]}]", accepted + "InvalidKind", "Bucket"},
		{"a Service that does not exist", "[{backendRefs: [{name: gone, port: 80}]}]", accepted + "BackendNotFound", "default/gone"},
		{"a Service of another namespace", "[{backendRefs: [{name: far, namespace: other, port: 80}]}]", accepted + "RefNotPermitted", "other"},
		{"a mirror that leads nowhere", "[{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}], backendRefs: [{name: shop, port: 80}]}]",
			accepted + "BackendNotFound", "default/gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, messages := grpcConditions(t, class+gateway("gw", http80)+service("default", "shop")+service("other", "far")+
				grpcRoute("r", "parentRefs: [{name: gw}]\nrules: "+test.rules))
			if !slices.Equal(got, []string{test.want}) || !strings.Contains(messages, test.message) {
				t.Errorf("got %q, want %q, and in the messages %q:\n%s", got, test.want, test.message, messages)
			}
		})
	}
}

func TestGRPCHeaderNamesMatchWithoutCaseAndTheFirstCounts(t *testing.T) {
	t.Parallel()
	config := translated(t, class+gateway("gw", http80)+service("default", "shop")+grpcRoute("r", `
parentRefs: [{name: gw}]
rules: [{matches: [{headers: [{name: Version, value: "2"}, {name: version, value: "3"}]}], backendRefs: [{name: shop, port: 80}]}]`))
	for header, want := range map[string]string{"version: 2": "shop", "version: 3": "404"} {
		if got := ask(t, config, "h/s.S/M", header); got != want {
			t.Errorf("%s: %s, want %s", header, got, want)
		}
	}
}
