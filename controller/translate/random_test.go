package translate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/translate/translatetest"
)

// TestRandomEdits edits a small and crowded world at random. After every edit a Translator that remembers must give what
// a fresh one gives, change nothing when asked again, and send requests where the specification sends them, which
// reference says from the graph itself.
func TestRandomEdits(t *testing.T) {
	t.Parallel()

	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			e := &editor{world: oneGateway(on("")), random: rand.New(rand.NewPCG(seed, 7))}
			remembers := testTranslator()
			for step := range 80 {
				edit := e.edit()
				config := remembers.translate(e.gateways, e.routes, e, slices.Values(e.suspects))
				e.suspects = nil
				fresh := testTranslator()
				if diff := differentConfigs(e.config(fresh), config); diff != "" {
					t.Fatalf("step %d, %s: the Translator that remembers differs from a fresh one: %s", step, edit, diff)
				}
				if diff := difference(fresh.Faults(), remembers.Faults()); diff != "" {
					t.Fatalf("step %d, %s: the faults differ: %s", step, edit, diff)
				}
				checkUnchanged(t, config, e.config(remembers))
				if len(remembers.Faults()) == 0 {
					e.checkRequests(t, config)
				}
				if t.Failed() {
					t.Fatalf("step %d, %s", step, edit)
				}
			}
		})
	}
}

func checkUnchanged(t *testing.T, before, after model.Config) {
	t.Helper()
	if !after.Hosts.Same(before.Hosts) || !after.Parents.Same(before.Parents) || !after.Paths.Same(before.Paths) ||
		!after.Rules.Same(before.Rules) || !after.Backends.Same(before.Backends) {
		t.Error("the Config changes although nothing did")
	}
}

// editor changes a world at random, from a vocabulary so small that everything meets.
type editor struct {
	*world
	random *rand.Rand
	count  int
	// suspects are the backends that changed since the last call.
	suspects []graph.BackendKey
}

var (
	someHostnames = []string{"", "*.c", "*.b.c", "a.b.c", "b.b.c", "*.a.b.c", "x"}
	someHosts     = []string{"a.b.c", "b.b.c", "z.b.c", "q.a.b.c", "q.c", "c", "x", "y.z"}
	somePaths     = []string{"/", "/a", "/a/b", "/b"}
	someRegexes   = []string{"/a.*", "/.*", "/a/[0-9]", "/a", "(/a|/b).*"}
	someRequests  = []string{"/", "/a", "/a/", "/ab", "/a/b", "/a/b/c", "/a/1", "/b"}
	someServices  = []string{"one", "two", "three", "!four"}
)

func pick[T any](e *editor, from []T) T { return from[e.random.IntN(len(from))] }

// edit makes one change and says which.
func (e *editor) edit() string {
	switch e.random.IntN(12) {
	case 0:
		return e.changeGateways()
	case 1, 2:
		return e.changeBackend()
	case 3:
		return e.moveRoute()
	case 4, 5:
		return e.removeRoute()
	case 6, 7:
		return e.replaceRoute()
	default:
		return e.addRoute()
	}
}

func (e *editor) addRoute() string {
	r := e.newRoute(fmt.Sprint("route-", e.count))
	e.count++
	e.routes = slices.Insert(slices.Clone(e.routes), e.random.IntN(len(e.routes)+1), r)
	return "added " + r.Source.GetName()
}

func (e *editor) removeRoute() string {
	if len(e.routes) == 0 {
		return "nothing"
	}
	at := e.random.IntN(len(e.routes))
	name := e.routes[at].Source.GetName()
	e.routes = slices.Delete(slices.Clone(e.routes), at, at+1)
	return "removed " + name
}

func (e *editor) replaceRoute() string {
	if len(e.routes) == 0 {
		return "nothing"
	}
	at := e.random.IntN(len(e.routes))
	e.routes = slices.Clone(e.routes)
	e.routes[at] = e.newRoute(e.routes[at].Source.GetName())
	return "replaced " + e.routes[at].Source.GetName()
}

// moveRoute makes a route older or younger without another change.
func (e *editor) moveRoute() string {
	if len(e.routes) == 0 {
		return "nothing"
	}
	from := e.random.IntN(len(e.routes))
	r := e.routes[from]
	e.routes = slices.Delete(slices.Clone(e.routes), from, from+1)
	e.routes = slices.Insert(e.routes, e.random.IntN(len(e.routes)+1), r)
	return "moved " + r.Source.GetName()
}

func (e *editor) changeBackend() string {
	key := service(pick(e, someServices[:3]))
	b := &graph.Backend{Key: key}
	for i := range e.random.IntN(3) {
		b.Endpoints = append(b.Endpoints, endpoint(fmt.Sprint(key.Name, "-", i), fmt.Sprintf("10.0.0.%d:80", e.random.IntN(4)+1)))
	}
	e.made[key] = b
	e.suspects = append(e.suspects, graph.BackendKey{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name})
	return "changed " + key.Name
}

// changeGateways makes all Gateways anew, as the graph does when one changes, and with them the routes that attach.
func (e *editor) changeGateways() string {
	var gateways []*graph.Gateway
	for _, name := range []string{"gw", "other"} {
		var listeners []*graph.Listener
		for _, hostname := range someHostnames {
			if e.random.IntN(3) == 0 {
				l := onPort(uint16(80+e.random.IntN(2)), hostname)
				l.Valid = e.random.IntN(5) > 0
				listeners = append(listeners, l)
			}
		}
		g := gateway(name, listeners...)
		g.Valid = e.random.IntN(6) > 0
		if e.random.IntN(3) == 0 {
			g.Addresses = append(g.Addresses, netip.MustParseAddr("::1"))
		}
		gateways = append(gateways, g)
	}
	e.gateways = gateways
	e.routes = slices.Clone(e.routes)
	for i, r := range e.routes {
		again := *r
		again.Parents = newRoute(gateways, r.Source.GetName(), joined(r.Hostnames)).Parents
		e.routes[i] = &again
	}
	return "changed the Gateways"
}

func joined(hostnames []string) (text string) {
	for _, hostname := range hostnames {
		text += hostname + " "
	}
	return text
}

func (e *editor) newRoute(name string) *graph.Route {
	hostnames := ""
	for range e.random.IntN(3) {
		hostnames += pick(e, someHostnames) + " "
	}
	var rules []*graph.Rule
	for range 1 + e.random.IntN(3) {
		rules = append(rules, e.newRule())
	}
	r := newRoute(e.gateways, name, hostnames, rules...)
	if e.random.IntN(8) == 0 {
		rules[0].Matches = append(rules[0].Matches, regexes(name, 40)...)
		for i := range rules[0].Matches {
			rules[0].Matches[i].Index = i
		}
	}
	for _, parent := range r.Parents {
		if e.random.IntN(4) == 0 && len(parent.Listeners) > 0 {
			parent.Listeners = []*graph.Listener{pick(e, parent.Listeners)} // by sectionName
		}
	}
	return r
}

func (e *editor) newRule() *graph.Rule {
	var matches []graph.Match
	for range 1 + e.random.IntN(3) {
		matches = append(matches, e.newMatch())
	}
	backends := ""
	for range e.random.IntN(3) {
		backends += fmt.Sprintf("%s:%d ", pick(e, someServices), e.random.IntN(3))
	}
	rule := to(backends, matches...)
	switch e.random.IntN(8) {
	case 0:
		rule = redirecting(graph.Redirect{Status: 302, Path: replacingPrefix("/new")}, matches...)
	case 1:
		rule.Dropped = true
	case 2, 3:
		rule.Session = cookie(pick(e, []string{"", "c", "d"}))
	case 4:
		rule.Name = pick(e, []string{"n", "m"})
	}
	return rule
}

func (e *editor) newMatch() graph.Match {
	var options []matchOption
	for _, option := range []matchOption{method("PUT"), header("h", "1"), header("i", "1"), query("q", "1"), headerRegex("h", "1|2")} {
		if e.random.IntN(5) == 0 {
			options = append(options, option)
		}
	}
	switch e.random.IntN(5) {
	case 0:
		return regex(pick(e, someRegexes), options...)
	case 1:
		return exactly(pick(e, somePaths), options...)
	default:
		return prefix(pick(e, somePaths), options...)
	}
}

func (e *editor) checkRequests(t *testing.T, config model.Config) {
	t.Helper()
	for range 40 {
		gateway, port := pick(e, []string{"gw", "gw", "other"}), pick(e, []uint16{80, 81})
		request := translatetest.Request{
			Port: portOf(gateway, port), Host: pick(e, someHosts), Path: pick(e, someRequests),
			Method: pick(e, []string{"GET", "PUT"}), Headers: map[string]string{}, Query: map[string]string{},
		}
		for _, name := range []string{"h", "i"} {
			if e.random.IntN(2) == 0 {
				request.Headers[name] = pick(e, []string{"1", "2"})
			}
		}
		if e.random.IntN(2) == 0 {
			request.Query["q"] = "1"
		}
		got, want := word(translatetest.Ask(config, request)), e.reference(gateway, port, request)
		if got != want {
			t.Errorf("%s:%d %+v gets %q, want %q", gateway, port, request, got, want)
		}
	}
}
