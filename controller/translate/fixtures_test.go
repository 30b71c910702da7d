package translate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/translate/translatetest"
)

// world is a graph made by hand: Gateways, routes in the order of their age, and every backend that they name.
type world struct {
	gateways []*graph.Gateway
	routes   []*graph.Route
	// missing are the Services that have no endpoint.
	missing map[string]bool
	made    map[graph.BackendKey]*graph.Backend
}

// oneGateway returns a world with the Gateway default/gw on 127.0.0.1 and the given listeners.
func oneGateway(listeners ...*graph.Listener) *world {
	w := &world{missing: map[string]bool{}, made: map[graph.BackendKey]*graph.Backend{}}
	w.gateways = append(w.gateways, gateway("gw", listeners...))
	return w
}

func gateway(name string, listeners ...*graph.Listener) *graph.Gateway {
	g := &graph.Gateway{
		Source:    &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
		Listeners: listeners,
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		Valid:     true,
	}
	for _, l := range listeners {
		l.Gateway = g
	}
	return g
}

// on is a valid HTTP listener on port 80; it is called by its hostname.
func on(hostname string) *graph.Listener { return onPort(80, hostname) }

func onPort(port uint16, hostname string) *graph.Listener {
	return &graph.Listener{
		Name: fmt.Sprintf("%d-%s", port, hostname), Hostname: hostname, Port: port, Bind: 8000 + port, Protocol: graph.HTTP, Valid: true,
	}
}

func withTLS(l *graph.Listener, secrets ...string) *graph.Listener {
	l.Protocol = graph.HTTPS
	for _, secret := range secrets {
		l.Certificates = append(l.Certificates, &graph.Certificate{
			Secret: types.NamespacedName{Namespace: "default", Name: secret},
			Chain:  "chain of " + secret + "\n", Key: "key of " + secret + "\n",
		})
	}
	return l
}

// route adds an HTTPRoute, younger than those before, that attaches to all listeners of all Gateways whose hostname meets
// one of its own.
func (w *world) route(name, hostnames string, rules ...*graph.Rule) *graph.Route {
	r := newRoute(w.gateways, name, hostnames, rules...)
	w.routes = append(w.routes, r)
	return r
}

func newRoute(gateways []*graph.Gateway, name, hostnames string, rules ...*graph.Rule) *graph.Route {
	r := &graph.Route{
		Kind: "HTTPRoute", Source: &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
		Hostnames: strings.Fields(hostnames),
		Rules:     rules,
	}
	for i, rule := range rules {
		rule.Index = i
	}
	for _, g := range gateways {
		parent := &graph.RouteParent{Gateway: g}
		for _, l := range g.Listeners {
			if meets(l.Hostname, r.Hostnames) {
				parent.Listeners = append(parent.Listeners, l)
			}
		}
		r.Parents = append(r.Parents, parent)
	}
	return r
}

func meets(hostname string, hostnames []string) bool {
	for _, other := range hostnames {
		if _, common := intersection(hostname, other); common {
			return true
		}
	}
	return len(hostnames) == 0
}

// to is a rule with one backend, or several with their weights: "blue:90 green:10"; "!" before a name makes it invalid.
func to(backends string, matches ...graph.Match) *graph.Rule {
	rule := &graph.Rule{Matches: matches}
	if len(matches) == 0 {
		rule.Matches = []graph.Match{prefix("/")}
	}
	for i := range rule.Matches {
		rule.Matches[i].Index = i
	}
	for _, field := range strings.Fields(backends) {
		ref := graph.BackendRef{Weight: 1}
		name, weight, weighted := strings.Cut(field, ":")
		if weighted {
			fmt.Sscan(weight, &ref.Weight)
		}
		name, ref.Invalid = strings.CutPrefix(name, "!")
		ref.Backend = service(name)
		rule.Backends = append(rule.Backends, ref)
	}
	return rule
}

func service(name string) graph.BackendKey {
	return graph.BackendKey{Kind: "Service", Namespace: "default", Name: name, Port: 80}
}

type matchOption func(*graph.Match)

func prefix(path string, options ...matchOption) graph.Match {
	return newTestMatch(gatewayv1.PathMatchPathPrefix, strings.TrimSuffix(path, "/"), options)
}

func exactly(path string, options ...matchOption) graph.Match {
	return newTestMatch(gatewayv1.PathMatchExact, path, options)
}

func regex(expression string, options ...matchOption) graph.Match {
	return newTestMatch(gatewayv1.PathMatchRegularExpression, expression, options)
}

func newTestMatch(kind gatewayv1.PathMatchType, path string, options []matchOption) graph.Match {
	m := graph.Match{PathType: kind, Path: path}
	for _, option := range options {
		option(&m)
	}
	return m
}

func method(name string) matchOption { return func(m *graph.Match) { m.Method = name } }

func header(name, value string) matchOption {
	return func(m *graph.Match) { m.Headers = append(m.Headers, graph.ValueMatch{Name: name, Value: value}) }
}

func headerRegex(name, value string) matchOption {
	return func(m *graph.Match) {
		m.Headers = append(m.Headers, graph.ValueMatch{Name: name, Value: value, Regex: true})
	}
}

func query(name, value string) matchOption {
	return func(m *graph.Match) { m.Query = append(m.Query, graph.ValueMatch{Name: name, Value: value}) }
}

func cookie(name string) *graph.Session {
	return &graph.Session{Type: gatewayv1.CookieBasedSessionPersistence, Name: name, Path: "/"}
}

func sticky(rule *graph.Rule, session *graph.Session) *graph.Rule {
	rule.Session = session
	return rule
}

func named(rule *graph.Rule, name string) *graph.Rule {
	rule.Name = name
	return rule
}

// Backend makes a Service with one endpoint on first use.
func (w *world) Backend(key graph.BackendKey) *graph.Backend {
	if w.made[key] == nil {
		w.made[key] = &graph.Backend{Key: key}
		if !w.missing[key.Name] {
			w.made[key].Endpoints = []graph.Endpoint{endpoint(key.Name+"-0", "10.0.0.1:8080")}
		}
	}
	return w.made[key]
}

func endpoint(pod, address string) graph.Endpoint {
	return graph.Endpoint{
		Address: netip.MustParseAddrPort(address),
		PodUID:  types.UID("uid-of-" + pod),
		Pod:     types.NamespacedName{Namespace: "default", Name: pod},
	}
}

var testKey = []byte("the key of the tests")

func testTranslator() *Translator { return New(Options{NamesKey: testKey}) }

func (w *world) config(t *Translator) model.Config {
	return t.translate(w.gateways, w.routes, w, nil)
}

// requestOption changes a request.
type requestOption func(*translatetest.Request)

func sends(name, value string) requestOption {
	return func(r *translatetest.Request) { r.Headers[name] = value }
}

func asks(name, value string) requestOption {
	return func(r *translatetest.Request) { r.Query[name] = value }
}

func by(method string) requestOption { return func(r *translatetest.Request) { r.Method = method } }

func atPort(port uint16) requestOption {
	return func(r *translatetest.Request) { r.Port = portOf("gw", port) }
}

func portOf(gateway string, port uint16) string {
	return portID(types.NamespacedName{Namespace: "default", Name: gateway}, "127.0.0.1", port)
}

// ask sends a request to port 80 of the Gateway gw and says in one word what it gets: 404, 500, 503, a redirect, or the
// names of the Services with their weights if there are several.
func ask(config model.Config, url string, options ...requestOption) string {
	host, path, _ := strings.Cut(url, "/")
	request := translatetest.Request{
		Port: portOf("gw", 80), Host: host, Path: "/" + path, Headers: map[string]string{}, Query: map[string]string{},
	}
	for _, option := range options {
		option(&request)
	}
	return word(translatetest.Ask(config, request))
}

func word(answer translatetest.Answer) string {
	switch {
	case answer.NoHost || answer.NoMatch:
		return "404"
	case answer.Redirect != nil:
		return "redirect"
	}
	var words []string
	for _, outcome := range answer.Split {
		text := shortName(outcome.Backend)
		if outcome.Status != 200 {
			text = fmt.Sprint(outcome.Status)
		}
		if len(answer.Split) > 1 {
			text += fmt.Sprintf(":%d", outcome.Weight)
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

func shortName(backend string) string {
	parts := strings.Split(backend, "/")
	return parts[min(2, len(parts)-1)]
}

// exchange is a request and what it should get.
type exchange struct {
	url  string
	with []requestOption
	want string
}

func get(url, want string, with ...requestOption) exchange { return exchange{url, with, want} }

func checkExchanges(t *testing.T, config model.Config, exchanges []exchange) {
	t.Helper()
	for _, e := range exchanges {
		if got := ask(config, e.url, e.with...); got != e.want {
			t.Errorf("%s gets %q, want %q", e.url, got, e.want)
		}
	}
}

// scenario is a world with what requests get in it.
type scenario struct {
	world     func() *world
	exchanges []exchange
}

func runScenarios(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkExchanges(t, s.world().config(testTranslator()), s.exchanges)
		})
	}
}
