package graph

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// open is a Gateway with a listener for gw.com on port 80 that takes ListenerSets of all namespaces.
var open = openTo("All")

func openTo(from string) string {
	return class + gatewayWith("gw", "allowedListeners: {namespaces: {from: "+from+"}}\n"+
		"  listeners: [{name: gw, port: 80, protocol: HTTP, hostname: gw.com, allowedRoutes: {namespaces: {from: All}}}]")
}

// setOf is a ListenerSet, called namespace/name or by its name in default, with the given listeners, each a flow mapping.
func setOf(name, parentRef string, listeners ...string) string {
	return setFrom(name, "", parentRef, listeners...)
}

// setFrom is one that was created at a time.
func setFrom(name, created, parentRef string, listeners ...string) string {
	namespace := "default"
	if before, after, found := strings.Cut(name, "/"); found {
		namespace, name = before, after
	}
	if created != "" {
		created = ", creationTimestamp: '" + created + "'"
	}
	return fmt.Sprintf("\n---\nkind: ListenerSet\nmetadata: {name: %s, namespace: %s, generation: 5%s}\nspec:\n  parentRef: %s\n  listeners: [%s]\n",
		name, namespace, created, parentRef, strings.Join(listeners, ", "))
}

func (g *Graph) set(t testing.TB, name string) *ListenerSet {
	t.Helper()
	for _, node := range g.ListenerSets {
		if node.Key() == key(name) {
			return node
		}
	}
	t.Fatalf("no ListenerSet %s", name)
	return nil
}

const (
	toGateway   = "{name: gw, namespace: default}"
	setOK       = "Accepted=True/Accepted"
	setNotValid = "Accepted=False/ListenersNotValid Programmed=False/ListenersNotValid"
	setClosed   = "Accepted=False/NotAllowed Programmed=False/NotAllowed"
)

func TestAGatewayTakesTheListenerSetsThatItAllows(t *testing.T) {
	t.Parallel()
	const entry = "{name: a, port: 80, protocol: HTTP, hostname: a.com}"
	labelled := "\n---\nkind: Namespace\nmetadata: {name: red, labels: {team: red}}\n"
	for _, test := range []struct {
		name, allowed string
		// same, red and blue are the conditions of a set in the Gateway's namespace, in one with a label and in one without.
		same, red, blue string
	}{
		{"none by default", "", setClosed, setClosed, setClosed},
		{"none where nothing is said of namespaces", "allowedListeners: {}", setClosed, setClosed, setClosed},
		{"none by None", "allowedListeners: {namespaces: {from: None}}", setClosed, setClosed, setClosed},
		{"those of its own namespace", "allowedListeners: {namespaces: {from: Same}}", setOK, setClosed, setClosed},
		{"those of all namespaces", "allowedListeners: {namespaces: {from: All}}", setOK, setOK, setOK},
		{"those of namespaces with a label", "allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}",
			setClosed, setOK, setClosed},
		{"those of a namespace by its name",
			"allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: blue}}}}", setClosed, setClosed, setOK},
		{"none by a selector that is missing", "allowedListeners: {namespaces: {from: Selector}}", setClosed, setClosed, setClosed},
		{"none by a selector that is not valid",
			"allowedListeners: {namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Near}]}}}", setClosed, setClosed, setClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, class+gatewayWith("gw", "listeners: [{name: gw, port: 80, protocol: HTTP, hostname: gw.com}]\n  "+test.allowed)+labelled+
				setOf("default/s", toGateway, entry)+setOf("red/s", toGateway, strings.ReplaceAll(entry, "a.com", "red.com"))+
				setOf("blue/s", toGateway, strings.ReplaceAll(entry, "a.com", "blue.com")))
			taken := 0
			for name, want := range map[string]string{"default/s": test.same, "red/s": test.red, "blue/s": test.blue} {
				node := g.set(t, name)
				expect(t, node.Conditions, want)
				if node.Accepted {
					taken++
				}
				if closed := want == setClosed; closed != (len(node.Listeners) == 0) || closed == node.Valid {
					t.Errorf("%s: %d listeners, valid %v", name, len(node.Listeners), node.Valid)
				}
			}
			if gateway := g.Gateways[0]; len(gateway.Sets) != taken || len(gateway.AllListeners()) != 1+taken {
				t.Errorf("%d sets and %d listeners, want %d sets", len(gateway.Sets), len(gateway.AllListeners()), taken)
			}
			expect(t, g.Gateways[0].Conditions, gatewayOK)
		})
	}
}

func TestAListenerSetOfSomethingElseIsNotOurs(t *testing.T) {
	const entry = "{name: a, port: 80, protocol: HTTP}"
	g := build(t, open+setOf("a", "{name: other}", entry)+setOf("b", "{name: gw, kind: Mesh}", entry)+
		setOf("c", "{name: gw, group: example.com}", entry)+setOf("d", "{name: gw, namespace: other}", entry))
	if len(g.ListenerSets) != 0 || len(g.Unclaimed) != 4 {
		t.Errorf("%d sets, unclaimed %v", len(g.ListenerSets), g.Unclaimed)
	}
}

func TestConflictsAreSettledByPrecedence(t *testing.T) {
	t.Parallel()
	const (
		free     = "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs"
		hostname = "Accepted=False/HostnameConflict Conflicted=True/HostnameConflict ResolvedRefs=True/ResolvedRefs Programmed=False/HostnameConflict"
		protocol = "Accepted=False/ProtocolConflict Conflicted=True/ProtocolConflict"
		partly   = "Accepted=True/ListenersNotValid"
		old      = "2026-01-01T00:00:00Z"
		young    = "2026-02-02T00:00:00Z"
	)
	http := func(name, host string) string {
		return fmt.Sprintf("{name: %s, port: 80, protocol: HTTP, hostname: %s}", name, host)
	}
	https := func(port int) string {
		return fmt.Sprintf("{name: s, port: %d, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}", port)
	}
	for _, test := range []struct {
		name, sets string
		// want are conditions by "set" or "set/listener".
		want map[string]string
	}{
		{"with the Gateway's listener", setOf("a", toGateway, http("one", "gw.com"), http("two", "free.com")),
			map[string]string{"a": partly, "a/one": hostname, "a/two": free}},
		{"with the Gateway's listener, and nothing is left", setOf("a", toGateway, http("one", "gw.com")),
			map[string]string{"a": setNotValid, "a/one": hostname}},
		{"the older set wins", setFrom("a", young, toGateway, http("one", "x.com")) + setFrom("b", old, toGateway, http("one", "x.com")),
			map[string]string{"a": setNotValid, "a/one": hostname, "b": setOK, "b/one": free}},
		{"of one age the first by name wins", setOf("b", toGateway, http("one", "x.com")) + setOf("a", toGateway, http("one", "x.com")),
			map[string]string{"a": setOK, "a/one": free, "b": setNotValid, "b/one": hostname}},
		{"and by namespace before that", setOf("x/a", toGateway, http("one", "x.com")) + setOf("default/b", toGateway, http("one", "x.com")),
			map[string]string{"default/b": setOK, "x/a": setNotValid}},
		{"another protocol on the port", setOf("a", toGateway, https(80), http("two", "free.com")),
			map[string]string{"a": partly, "a/s": protocol, "a/two": free}},
		{"TCP on the Gateway's port", setOf("a", toGateway, "{name: t, port: 80, protocol: TCP}", http("two", "free.com")),
			map[string]string{"a": partly, "a/t": protocol, "a/two": free}},
		{"one that is not served, on a port of its own", setOf("a", toGateway, "{name: t, port: 90, protocol: UDP}", http("two", "free.com")),
			map[string]string{"a": partly, "a/t": "Accepted=False/UnsupportedProtocol Conflicted=False/NoConflicts"}},
		{"another protocol on a port of an older set",
			setOf("a", toGateway, "{name: p, port: 8443, protocol: HTTP}") + setOf("b", toGateway, https(8443)),
			map[string]string{"a": setOK, "a/p": free, "b": setNotValid, "b/s": protocol}},
		{"a loser takes nothing from those after it",
			setOf("a", toGateway, "{name: p, port: 81, protocol: HTTP}") +
				setOf("b", toGateway, strings.Replace(https(81), "port", "hostname: c.com, port", 1)) +
				setOf("c", toGateway, "{name: p, port: 81, protocol: HTTP, hostname: c.com}"),
			map[string]string{"a": setOK, "b": setNotValid, "c": setOK, "c/p": free}},
		{"within one set all of them are refused", setOf("a", toGateway, http("one", "x.com"), http("two", "x.com"), http("three", "y.com")),
			map[string]string{"a": partly, "a/one": hostname, "a/two": hostname, "a/three": free}},
		{"names may be the same in several objects", setOf("a", toGateway, http("gw", "x.com")) + setOf("b", toGateway, http("gw", "y.com")),
			map[string]string{"a": setOK, "a/gw": free, "b": setOK, "b/gw": free}},
		{"a set that is not allowed takes nothing", setOf("a", "{name: gw2}", http("one", "x.com")) + setOf("b", toGateway, http("one", "x.com")),
			map[string]string{"a": setClosed, "b": setOK}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, open+gatewayWith("gw2", "listeners: [{name: http, port: 99, protocol: HTTP}]")+secretYAML("default", "cert")+test.sets)
			expect(t, g.listener(t, "default/gw", "gw").Conditions, free)
			expect(t, g.gateway(t, "default/gw").Conditions, gatewayOK)
			for _, set := range g.ListenerSets {
				name := strings.TrimPrefix(set.Key().String(), "default/")
				if want := test.want[name] + test.want["default/"+name]; want != "" {
					expect(t, set.Conditions, want)
				}
				for _, listener := range set.Listeners {
					if want := test.want[name+"/"+listener.Name]; !strings.HasPrefix(show(listener.Conditions), want) {
						t.Errorf("%s: got %s, want %s", listener, show(listener.Conditions), want)
					} else if want != "" && listener.Valid != (want == free) {
						t.Errorf("%s: valid %v", listener, listener.Valid)
					}
				}
			}
		})
	}
}

func TestAConflictDoesNotTellWhoseListenerItIs(t *testing.T) {
	entry := "{name: secret-project, port: 443, protocol: HTTPS, hostname: '*.x.com', tls: {certificateRefs: [{name: cert}]}}"
	g := build(t, open+secretYAML("red", "cert")+secretYAML("blue", "cert")+secretYAML("default", "cert")+
		setOf("blue/team", toGateway, entry)+setOf("red/team", toGateway, entry, strings.NewReplacer("secret-project", "mine", "*.x.com", "a.x.com").Replace(entry))+
		setOf("red/more", toGateway, strings.NewReplacer("secret-project", "also", "*.x.com", "b.x.com").Replace(entry), strings.NewReplacer(
			"secret-project", "wide", "*.x.com", "*.b.x.com").Replace(entry)))
	for _, set := range []string{"red/team", "red/more"} {
		for _, listener := range g.set(t, set).Listeners {
			if text := allMessages(listener.Conditions); strings.Contains(text, "secret-project") || strings.Contains(text, "blue") {
				t.Errorf("%s: %s", listener, text)
			}
		}
	}
	expect(t, g.set(t, "red/team").Listeners[1].Conditions, listenerOK+" OverlappingTLSConfig=True/OverlappingHostnames", "one of another namespace")
	if text := allMessages(g.set(t, "red/team").Listeners[0].Conditions); !strings.Contains(text, `port 443 of Gateway default/gw has another listener`) {
		t.Error(text)
	}
}

func TestListenersOfASetAreReadAgainstItsOwnNamespace(t *testing.T) {
	t.Parallel()
	const https = "{name: s, port: 443, protocol: HTTPS, tls: {certificateRefs: [%s]}}"
	grant := func(kind, namespace string) string {
		return strings.NewReplacer("kind: Gateway", "kind: "+kind, "namespace: default}]", "namespace: "+namespace+"}]").Replace(secretGrant)
	}
	for _, test := range []struct{ name, ref, documents, want, served string }{
		{"its Secret", "{name: cert}", secretYAML("red", "cert"), listenerOK, "red/cert"},
		{"not the Gateway's", "{name: cert}", secretYAML("default", "cert"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCertificateRef Programmed=False/Invalid", ""},
		{"another one's by a grant to ListenerSets", "{name: cert, namespace: certs}", secretYAML("certs", "cert") + grant("ListenerSet", "red"),
			listenerOK, "certs/cert"},
		{"not by the Gateway's grant", "{name: cert, namespace: certs}", secretYAML("certs", "cert") + grant("Gateway", "default"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
		{"not by a grant to Gateways of its namespace", "{name: cert, namespace: certs}", secretYAML("certs", "cert") + grant("Gateway", "red"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
		{"not the Gateway's Secret without grant", "{name: cert, namespace: default}", secretYAML("default", "cert"),
			"Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			set := build(t, open+test.documents+setOf("red/s", toGateway, fmt.Sprintf(https, test.ref))).set(t, "red/s")
			expect(t, set.Listeners[0].Conditions, test.want)
			if got := names(set.Listeners[0].Certificates, func(c *Certificate) string { return c.Secret.String() }); got != test.served {
				t.Errorf("served %q, want %q", got, test.served)
			}
			if test.served == "" {
				expect(t, set.Conditions, setNotValid)
			}
		})
	}
}

func TestAGrantToAListenerSetOpensNothingToItsGateway(t *testing.T) {
	grant := strings.Replace(secretGrant, "kind: Gateway", "kind: ListenerSet", 1)
	node := build(t, withListeners(fmt.Sprintf(httpsListener, "{name: cert, namespace: certs}"))+secretYAML("certs", "cert")+grant).Gateways[0].Listeners[0]
	expect(t, node.Conditions, "Accepted=True/Accepted Conflicted=False/NoConflicts ResolvedRefs=False/RefNotPermitted Programmed=False/Invalid")
}

func TestAListenerSetThatIsNotValid(t *testing.T) {
	t.Parallel()
	const entry = "{name: a, port: 80, protocol: HTTP, hostname: a.com}"
	for _, test := range []struct{ name, documents, want, message string }{
		{"no listener", open + setOf("s", toGateway), "Accepted=False/Invalid Programmed=False/Invalid", "from 1 to 64 entries"},
		{"too many listeners", open + setOf("s", toGateway, strings.Repeat(entry+", ", 64)+entry), "Accepted=False/Invalid Programmed=False/Invalid", "not 65"},
		{"one name twice", open + setOf("s", toGateway, entry, strings.Replace(entry, "80", "81", 1)), "Accepted=False/Invalid Programmed=False/Invalid",
			`another listener is named "a"`},
		{"port 0", open + setOf("s", toGateway, strings.Replace(entry, "80", "0", 1)), setNotValid, `"a" (UnsupportedValue)`},
		{"a protocol that is not served", open + setOf("s", toGateway, strings.Replace(entry, "HTTP", "SCTP", 1)), setNotValid, `"a" (UnsupportedProtocol)`},
		{"its Gateway is not accepted", strings.Replace(open, "  listeners", "  addresses: [{type: Hostname, value: a.com}]\n  listeners", 1) +
			setOf("s", toGateway, entry), "Accepted=False/ParentNotAccepted Programmed=False/ParentNotProgrammed", "Gateway default/gw is not accepted"},
		{"its Gateway has no valid listener", strings.Replace(open, "port: 80", "port: 0", 1) + setOf("s", toGateway, entry),
			"Accepted=False/ParentNotAccepted Programmed=False/ParentNotProgrammed", ""},
		{"its Gateway has lost its address", open + gatewayWith("aa", httpListener) + setOf("s", toGateway, entry),
			"Accepted=True/Accepted Programmed=False/ParentNotProgrammed", "Gateway default/gw is not programmed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			set := build(t, test.documents).set(t, "default/s")
			expect(t, set.Conditions, test.want, test.message)
			for _, listener := range set.Listeners {
				if listener.Valid || !strings.Contains(show(listener.Conditions), "Programmed=False") {
					t.Errorf("%s: %s", listener, show(listener.Conditions))
				}
			}
		})
	}
}

func TestAListenerSetTakesNoPortFromAGateway(t *testing.T) {
	const taken = "Accepted=False/PortUnavailable Conflicted=False/NoConflicts ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid"
	g := build(t, open+gatewayWith("younger", "listeners: [{name: http, port: 81, protocol: HTTP}]")+
		setOf("a", toGateway, "{name: one, port: 81, protocol: HTTP}", "{name: two, port: 82, protocol: HTTP}"))
	expect(t, g.gateway(t, "default/younger").Conditions, gatewayOK)
	expect(t, g.gateway(t, "default/gw").Conditions, gatewayOK)
	expect(t, g.set(t, "default/a").Listeners[0].Conditions, taken, "127.0.0.1:8081 is in use by another Gateway")
	expect(t, g.set(t, "default/a").Conditions, "Accepted=True/ListenersNotValid")
	if !g.set(t, "default/a").Listeners[1].Valid {
		t.Error("the other listener is not served")
	}
}

func TestClientsOfASetsListenerAreAskedAsItsGatewaySays(t *testing.T) {
	entry := "{name: s, port: 443, hostname: set.com, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"
	with := func(frontend string) string {
		return strings.Replace(withClients(frontend), "  listeners:", "  allowedListeners: {namespaces: {from: All}}\n  listeners:", 1) +
			secretYAML("red", "cert") + setOf("red/s", toGateway, entry)
	}
	set := build(t, with("{default: {"+validation("ca")+"}}")).set(t, "red/s")
	if got, want := demands(set.Listeners), "s=ConfigMap default/ca"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	set = build(t, with("{default: {"+validation("hidden")+"}}")).set(t, "red/s")
	expect(t, set.Listeners[0].Conditions,
		"Accepted=False/NoValidCACertificate Conflicted=False/NoConflicts ResolvedRefs=False/InvalidCACertificateRef Programmed=False/Invalid",
		"of Gateway default/gw are not all valid")
	if text := allMessages(set.Listeners[0].Conditions); strings.Contains(text, "hidden") {
		t.Errorf("names what the Gateway refers to: %s", text)
	}
}

func TestRoutesAttachToTheirParentAlone(t *testing.T) {
	t.Parallel()
	const noParent = "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs"
	sets := setOf("red/set", toGateway, "{name: a, port: 80, protocol: HTTP, hostname: a.com}",
		"{name: gw, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}") +
		setOf("red/lost", toGateway, "{name: a, port: 80, protocol: HTTP, hostname: gw.com}") +
		setOf("red/closed", "{name: closed, namespace: default}", "{name: a, port: 80, protocol: HTTP}") +
		gatewayWith("closed", "listeners: [{name: http, port: 99, protocol: HTTP}]")
	for _, test := range []struct{ name, namespace, ref, want, attached string }{
		{"a hostname must be in common", "red", "{kind: ListenerSet, name: set, sectionName: a}], hostnames: [other.com",
			"Accepted=False/NoMatchingListenerHostname ResolvedRefs=True/ResolvedRefs", ""},
		{"a route of the set has all its listeners", "red", "{kind: ListenerSet, name: set}", routeOK, "ListenerEntry red/set/a ListenerEntry red/set/gw"},
		{"a route of the Gateway has its own alone", "red", "{name: gw, namespace: default}", routeOK, "Listener default/gw/gw"},
		{"a section is one of the set", "red", "{kind: ListenerSet, name: set, sectionName: gw}", routeOK, "ListenerEntry red/set/gw"},
		{"a section of the set is none of the Gateway", "red", "{name: gw, namespace: default, sectionName: a}", noParent, ""},
		{"a section of the Gateway is none of the set", "red", "{kind: ListenerSet, name: lost, sectionName: gw}", noParent, ""},
		{"a port is one of the set", "red", "{kind: ListenerSet, name: set, port: 81}", routeOK, "ListenerEntry red/set/gw"},
		{"a port that the set does not have", "red", "{kind: ListenerSet, name: set, port: 99}", noParent, ""},
		{"Same is the namespace of the set", "default", "{kind: ListenerSet, name: set, namespace: red, sectionName: a}",
			"Accepted=False/NotAllowedByListeners ResolvedRefs=True/ResolvedRefs", ""},
		{"All is every namespace", "default", "{kind: ListenerSet, name: set, namespace: red}", routeOK, "ListenerEntry red/set/gw"},
		{"a listener that lost a conflict keeps its routes", "red", "{kind: ListenerSet, name: lost}", routeOK, "ListenerEntry red/lost/a"},
		{"a set that is not allowed takes none", "red", "{kind: ListenerSet, name: closed}", noParent, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, open+sets+fmt.Sprintf("\n---\nkind: HTTPRoute\nmetadata: {name: r, namespace: %s}\nspec: {parentRefs: [%s]}\n", test.namespace, test.ref))
			parent := g.Routes[0].Parents[0]
			expect(t, parent.Conditions, test.want)
			if got := names(parent.Listeners, (*Listener).String); got != test.attached {
				t.Errorf("attached to %q, want %q", got, test.attached)
			}
			for _, listener := range parent.Listeners {
				if g.AttachedRoutes(listener) != 1 {
					t.Errorf("%s has %d routes", listener, g.AttachedRoutes(listener))
				}
			}
		})
	}
}

func TestARouteOfTwoParentsHearsOfEachByItself(t *testing.T) {
	g := build(t, open+setOf("set", toGateway, "{name: a, port: 80, protocol: HTTP, hostname: a.com}")+
		"\n---\nkind: HTTPRoute\nmetadata: {name: r, namespace: default}\nspec: {parentRefs: [{name: gw, sectionName: gw}, {kind: ListenerSet, name: set, sectionName: b}]}\n")
	expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
	expect(t, g.Routes[0].Parents[1].Conditions, "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs", `no listener named "b"`)
}

func TestAListenerSetThatChangesIsReadAgain(t *testing.T) {
	documents := openTo("Selector, selector: {matchLabels: {team: red}}") + "\n---\nkind: Namespace\nmetadata: {name: red, labels: {team: red}}\n" +
		setOf("red/s", toGateway, "{name: a, port: 80, protocol: HTTP, hostname: a.com}") +
		"\n---\nkind: HTTPRoute\nmetadata: {name: r, namespace: red}\nspec: {parentRefs: [{kind: ListenerSet, name: s}]}\n"
	snapshot := read(t, documents)
	builder := NewBuilder(Options{})
	before := builder.Build(snapshot)
	set := before.set(t, "red/s")
	if builder.Build(snapshot).set(t, "red/s") != set {
		t.Error("nothing changed, and yet the set is another one")
	}
	change := func(name string, edit func(*cluster.Snapshot), want string) {
		t.Helper()
		next := snapshot
		edit(&next)
		g := builder.Build(next)
		if len(g.ListenerSets) != 1 {
			t.Fatalf("%s: %d sets", name, len(g.ListenerSets))
		}
		expect(t, g.Routes[0].Parents[0].Conditions, want)
		builder.Build(snapshot)
	}
	change("the namespace loses its label", func(s *cluster.Snapshot) {
		s.Namespaces = s.Namespaces.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "red"}})
	}, "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs")
	change("the set has another listener", func(s *cluster.Snapshot) {
		edited := copyOf(s.ListenerSets, "red", "s")
		from := gatewayv1.NamespacesFromSelector
		edited.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: &from, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}}}
		s.ListenerSets = s.ListenerSets.With(edited)
	}, "Accepted=False/NotAllowedByListeners ResolvedRefs=True/ResolvedRefs")
}
