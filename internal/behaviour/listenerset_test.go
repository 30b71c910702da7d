package behaviour

import (
	"net/http"
	"strings"
	"testing"
)

// openGateway is a Gateway that takes ListenerSets of every namespace.
func openGateway(spec string) string {
	return strings.Replace(listeners(spec), "  listeners:", "  allowedListeners: {namespaces: {from: All}}\n  listeners:", 1)
}

// set is a ListenerSet of the Gateway, in a namespace that it is named after; its spec's listeners are lines.
func set(name, entries string) string {
	return `---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: ` + name + `, namespace: ` + name + `}
spec:
  parentRef: {name: gw, namespace: default}
  listeners:
` + strings.TrimPrefix(entries, "\n")
}

// younger gives an object a creation time: those without one are the oldest.
func younger(object string) string {
	return strings.Replace(object, "metadata: {", `metadata: {creationTimestamp: "2026-01-01T00:00:00Z", `, 1)
}

// ofSet is a route of a set, for all its hosts, to the Service of its name.
func ofSet(set, service, rest string) string {
	return routeOf(service, "parentRefs: [{kind: ListenerSet, name: "+set+", namespace: "+set+rest+"}]\n"+
		"rules:\n- matches: [{path: {value: /"+service+"}}]\n  backendRefs: [{name: "+service+", port: 80}]")
}

// inside puts an object into a namespace.
func inside(namespace, object string) string {
	return strings.Replace(object, "metadata: {", "metadata: {namespace: "+namespace+", ", 1)
}

const fromAll = "allowedRoutes: {namespaces: {from: All}}"

// twoSets are a Gateway and two sets on its ports 80 and 443, and a third set's port 8443.
func twoSets() string {
	return openGateway(`
  - {name: http, port: 80, protocol: HTTP, hostname: "*.ex.com"}
  - {name: https, port: 443, protocol: HTTPS, hostname: "*.ex.com", tls: {certificateRefs: [{name: wild}]}}
`) + certificate("wild", "*.ex.com") +
		set("red", `
  - {name: http, port: 80, protocol: HTTP, hostname: red.ex.com, `+fromAll+`}
  - {name: https, port: 443, protocol: HTTPS, hostname: red.ex.com, tls: {certificateRefs: [{name: own}]}, `+fromAll+`}
  - {name: more, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: own}]}, `+fromAll+`}
`) + inside("red", certificate("own", "red.ex.com")) +
		younger(set("blue", `
  - {name: http, port: 80, protocol: HTTP, hostname: "*.blue.org", `+fromAll+`}
  - {name: https, port: 443, protocol: HTTPS, hostname: "*.blue.org", tls: {certificateRefs: [{name: own}]}, `+fromAll+`}
  - {name: taken, port: 80, protocol: HTTP, hostname: red.ex.com, `+fromAll+`}
`)) + inside("blue", certificate("own", "*.blue.org")) +
		routeOf("gateway", "parentRefs: [{name: gw}]\nrules:\n- matches: [{path: {value: /gateway}}]\n  backendRefs: [{name: gateway, port: 80}]") +
		ofSet("red", "red", "") + ofSet("blue", "blue", "") +
		routeOf("narrow", "parentRefs: [{kind: ListenerSet, name: blue, namespace: blue}]\nhostnames: [deep.blue.org]\n"+
			"rules:\n- backendRefs: [{name: red, port: 80}]") +
		routeOf("broad", "parentRefs: [{kind: ListenerSet, name: blue, namespace: blue}]\nhostnames: [\"*.blue.org\"]\n"+
			"rules:\n- matches: [{path: {type: Exact, value: /broad}}]\n  backendRefs: [{name: blue, port: 80}]") +
		routeOf("both", "parentRefs: [{name: gw}, {kind: ListenerSet, name: blue, namespace: blue}]\n"+
			"hostnames: [a.ex.com, a.blue.org]\nrules:\n- matches: [{path: {value: /both}}]\n  backendRefs: [{name: both, port: 80}]")
}

func twoSetsPods() []option {
	return []option{pods("gateway", 1), pods("red", 1), pods("blue", 1), pods("both", 1)}
}

func TestListenerSetsAreServedBesideTheirGateway(t *testing.T) {
	t.Parallel()
	w := Run(t, twoSets(), twoSetsPods()...)
	rows := []row{
		{"the Gateway's own", get("a.ex.com/gateway"), "gateway"},
		{"a set's listener is the more specific one, and the Gateway's routes are not its own", get("red.ex.com/gateway"), "404"},
		{"the set's", get("red.ex.com/red"), "red"},
		{"the set's routes are not the Gateway's", get("a.ex.com/red"), "404"},
		{"another set's", get("x.blue.org/blue"), "blue"},
		{"a set's routes are not another set's", get("x.blue.org/red"), "404"},
		{"who came first has the hostname", get("red.ex.com/blue"), "404"},
		{"a route of the Gateway and of a set", get("a.ex.com/both"), "both"},
		{"on both", get("a.blue.org/both"), "both"},
		{"by its hostnames alone", get("b.blue.org/both"), "404"},
		{"the route with the more specific hostname comes first, whatever its path", get("deep.blue.org/broad"), "red"},
		{"the other one has the other hosts", get("x.blue.org/broad"), "blue"},
		{"nobody's host", get("other.net/gateway"), "404"},
	}
	w.check(t, rows)
	t.Run("over TLS", func(t *testing.T) {
		for _, row := range rows[:12] {
			row.request.tls = true
			if got := w.ask(t, row.request); got.outcome() != row.want {
				t.Errorf("%s: %s, want %s", row.name, got.outcome(), row.want)
			}
		}
		for sni, shown := range map[string]string{"red.ex.com": "red.ex.com", "a.ex.com": "*.ex.com", "x.blue.org": "*.blue.org"} {
			if a := w.ask(t, request{host: sni, target: "/", tls: true}); a.shown() != shown {
				t.Errorf("SNI %s is shown the certificate of %q, want %q", sni, a.shown(), shown)
			}
		}
		if a := w.ask(t, request{host: "any.net", target: "/red", tls: true, port: 8443}); a.outcome() != "red" {
			t.Errorf("a port of a set alone: %s", a.outcome())
		}
	})
	t.Run("a Host of another listener on a connection", func(t *testing.T) {
		for _, c := range []struct{ sni, url, want string }{
			{"a.ex.com", "red.ex.com/red", "421"}, {"red.ex.com", "a.ex.com/gateway", "421"}, {"red.ex.com", "x.blue.org/blue", "421"},
			{"x.blue.org", "y.blue.org/blue", "blue"}, {"a.ex.com", "b.ex.com/gateway", "gateway"},
		} {
			r := get(c.url)
			r.tls, r.sni = true, c.sni
			if got := w.ask(t, r).outcome(); got != c.want {
				t.Errorf("SNI %s, %s: %s, want %s", c.sni, c.url, got, c.want)
			}
		}
	})
	t.Run("over HTTP/2", func(t *testing.T) {
		for _, c := range []struct {
			url, host string
			want      int
		}{
			{"https://red.ex.com/red", "", http.StatusOK}, {"https://red.ex.com/gateway", "", http.StatusNotFound},
			{"https://a.ex.com/gateway", "", http.StatusOK}, {"https://a.ex.com/red", "red.ex.com", http.StatusMisdirectedRequest},
			{"https://x.blue.org/blue", "y.blue.org", http.StatusOK}, {"https://x.blue.org/blue", "red.ex.com", http.StatusMisdirectedRequest},
		} {
			// A client each: what matters is the name that the connection was made with.
			if status, proto := w.askH2(t, c.url, c.host); status != c.want || proto != 2 {
				t.Errorf("%s for %q: %d over HTTP/%d, want %d", c.url, c.host, status, proto, c.want)
			}
		}
	})
}

// askH2 asks on an HTTP/2 connection of its own.
func (w *World) askH2(t testing.TB, url, host string) (status, proto int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := w.h2(t).Do(req)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0, 0
	}
	_ = res.Body.Close()
	return res.StatusCode, res.ProtoMajor
}

func TestAListenerSetThatWaitsTakesOverWhenItsRivalGoes(t *testing.T) {
	t.Parallel()
	manifests := twoSets()
	w := Run(t, manifests, twoSetsPods()...)
	if got := w.listenerConditionOf(t, "ListenerSet blue/blue", "taken", "Conflicted"); got.Status != "True" {
		t.Errorf("Conflicted is %+v", got)
	}
	if got := w.condition(t, "ListenerSet blue/blue", "Programmed"); got.Status != "True" {
		t.Errorf("Programmed is %+v", got)
	}
	// blue's route waits on blue's listener; without red, it has red's hostname.
	without := manifests[:strings.Index(manifests, "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: red")] +
		manifests[strings.Index(manifests, "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {creationTimestamp"):]
	reloads := w.Reloads(t)
	w.Apply(t, without)
	w.check(t, []row{
		{"the set that waited", get("red.ex.com/blue"), "blue"},
		{"the one that went", get("red.ex.com/red"), "404"},
		{"the Gateway", get("a.ex.com/gateway"), "gateway"},
	})
	if got := w.listenerConditionOf(t, "ListenerSet blue/blue", "taken", "Programmed"); got.Status != "True" {
		t.Errorf("Programmed is %+v", got)
	}
	if w.Reloads(t) == reloads {
		t.Error("a port is closed without a reload") // 8443 was red's alone.
	}
}

func TestAPlainListenerOfASetOnAPortThatIsThereNeedsNoReload(t *testing.T) {
	t.Parallel()
	gateway := openGateway("  - {name: http, port: 80, protocol: HTTP, hostname: \"*.ex.com\"}\n")
	w := Run(t, gateway, twoSetsPods()...)
	reloads := w.Reloads(t)
	w.Apply(t, gateway+set("red", "  - {name: http, port: 80, protocol: HTTP, hostname: red.org, "+fromAll+"}\n")+ofSet("red", "red", ""))
	w.check(t, []row{{"the set", get("red.org/red"), "red"}})
	if now := w.Reloads(t); now != reloads {
		t.Errorf("%d reloads", now-reloads)
	}
}
