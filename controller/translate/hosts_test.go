package translate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

func TestHostnames(t *testing.T) {
	t.Parallel()

	runScenarios(t, map[string]scenario{
		"a request belongs to the most specific listener and then only its routes count": {
			world: func() *world {
				w := oneGateway(on(""), on("*.example.com"), on("*.foo.example.com"), on("abc.foo.example.com"))
				for i, l := range w.gateways[0].Listeners {
					r := newRoute(w.gateways, []string{"all", "wild", "foo", "abc"}[i], "",
						to([]string{"all", "wild", "foo", "abc"}[i], prefix([]string{"/", "/wild", "/foo", "/abc"}[i])))
					r.Parents[0].Listeners = []*graph.Listener{l}
					w.routes = append(w.routes, r)
				}
				return w
			},
			exchanges: []exchange{
				get("example.com/wild", "all"),
				get("other.org/x", "all"),
				get("bar.example.com/wild", "wild"),
				get("bar.example.com/x", "404"),
				get("bar.foo.example.com/foo", "foo"),
				get("bar.foo.example.com/wild", "404"),
				get("abc.foo.example.com/abc", "abc"),
				get("abc.foo.example.com/foo", "404"),
			},
		},
		"a listener without any route answers 404 and no broader listener serves it": {
			world: func() *world {
				w := oneGateway(on(""), on("a.example.com"), on("*.b.example.com"))
				r := w.route("all", "", to("all"))
				r.Parents[0].Listeners = w.gateways[0].Listeners[:1]
				return w
			},
			exchanges: []exchange{
				get("a.example.com/", "404"), get("x.b.example.com/", "404"), get("b.example.com/", "all"), get("x/", "all"),
			},
		},
		"a broader listener's routes do not count under a more specific listener even where they name its hosts": {
			world: func() *world {
				w := oneGateway(on(""), on("*.example.com"))
				r := w.route("a", "a.example.com a.org", to("a"))
				r.Parents[0].Listeners = w.gateways[0].Listeners[:1]
				return w
			},
			exchanges: []exchange{get("a.example.com/", "404"), get("a.org/", "a"), get("b.org/", "404")},
		},
		"an invalid listener serves nothing and takes nothing from others": {
			world: func() *world {
				w := oneGateway(on(""), on("a.example.com"))
				w.gateways[0].Listeners[1].Valid = false
				w.route("a", "a.example.com", to("a"))
				return w
			},
			exchanges: []exchange{get("a.example.com/", "a")},
		},
		"a Gateway that is not valid serves nothing": {
			world: func() *world {
				w := oneGateway(on(""))
				w.gateways[0].Valid = false
				w.route("a", "", to("a"))
				return w
			},
			exchanges: []exchange{get("a.example.com/", "404")},
		},
		"B04: a wildcard of a route takes any number of labels and not the suffix itself": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("a", "*.ex.com", to("a"))
				return w
			},
			exchanges: []exchange{
				get("a.ex.com/", "a"), get("a.b.ex.com/", "a"), get("ex.com/", "404"), get("aex.com/", "404"),
				get("A.Ex.com:80/", "a"),
			},
		},
		"hostnames of a route that the listener does not have are ignored": {
			world: func() *world {
				w := oneGateway(on("*.example.com"))
				w.route("a", "test.example.com test.example.net", to("a"))
				return w
			},
			exchanges: []exchange{
				get("test.example.com/", "a"), get("test.example.net/", "404"), get("other.example.com/", "404"),
			},
		},
		"a route without hostnames serves all of the listener's": {
			world: func() *world {
				w := oneGateway(on("*.example.com"))
				w.route("a", "", to("a"))
				return w
			},
			exchanges: []exchange{get("x.example.com/", "a"), get("example.com/", "404")},
		},
		"a route whose hostnames are all invalid serves nothing": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("a", "", to("a")).NoHostname = true
				return w
			},
			exchanges: []exchange{get("x.example.com/", "404")},
		},
		"a route of which nothing can be honoured answers 500 where it would attach, and nobody else does": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("all", "", to("all"))
				r := w.route("blocked", "a.ex.com", dropped(to("", prefix("/a"))))
				r.Parents[0].Blocked, r.Parents[0].Listeners = r.Parents[0].Listeners, nil
				return w
			},
			exchanges: []exchange{get("a.ex.com/a", "500"), get("a.ex.com/b", "all"), get("b.ex.com/a", "all")},
		},
		"B03: a more specific hostname goes before a more specific path": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("a", "*.ex.com", to("a", exactly("/a/b")))
				w.route("b", "foo.ex.com", to("b"))
				return w
			},
			exchanges: []exchange{get("foo.ex.com/a/b", "b"), get("bar.ex.com/a/b", "a"), get("bar.ex.com/", "404")},
		},
		"a request that nothing at its hostname takes goes on to the broader hostnames of the same listener": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("all", "", to("all", prefix("/all")))
				w.route("com", "*.com", to("com", prefix("/com")))
				w.route("ex", "*.ex.com", to("ex", prefix("/ex")))
				w.route("a", "a.ex.com", to("a", prefix("/a"), prefix("/x", header("v", "2"))))
				return w
			},
			exchanges: []exchange{
				get("a.ex.com/a", "a"), get("a.ex.com/ex", "ex"), get("a.ex.com/com", "com"), get("a.ex.com/all", "all"),
				get("a.ex.com/x", "404"), get("a.ex.com/x", "a", sends("v", "2")), get("b.ex.com/a", "404"),
				get("ex.com/ex", "404"), get("ex.com/com", "com"), get("com/com", "404"), get("com/all", "all"),
			},
		},
		"precedence is by the route's own hostname where routes have the same hostname in common with a listener": {
			world: func() *world {
				w := oneGateway(on("a.b.c"))
				w.route("none", "", to("none"))
				w.route("wild", "*.b.c", to("wild", prefix("/"), exactly("/only/wild")))
				w.route("exact", "a.b.c", to("exact", prefix("/exact")))
				return w
			},
			exchanges: []exchange{
				get("a.b.c/exact", "exact"), get("a.b.c/only/wild", "wild"), get("a.b.c/", "wild"), get("x.b.c/", "404"),
			},
		},
		"one route at several hostnames is one route at each": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("a", "a.ex.com a.ex.com *.org", to("a"))
				return w
			},
			exchanges: []exchange{get("a.ex.com/", "a"), get("x.org/", "a"), get("org/", "404")},
		},
		"listeners on other ports and other Gateways do not count": {
			world: func() *world {
				w := oneGateway(on(""), onPort(81, "a.ex.com"))
				w.gateways = append(w.gateways, gateway("other", on("a.ex.com")))
				r := w.route("a", "", to("a"))
				r.Parents[0].Listeners = r.Parents[0].Listeners[:1]
				r.Parents[1].Listeners = nil
				return w
			},
			exchanges: []exchange{
				get("a.ex.com/", "a"), get("a.ex.com/", "404", atPort(81)), get("b.ex.com/", "404", atPort(81)),
			},
		},
		"of two listeners with one hostname on a port the first serves": {
			world: func() *world {
				w := oneGateway(on("a.ex.com"), on("a.ex.com"))
				w.gateways[0].Listeners[1].Name = "second"
				for i, l := range w.gateways[0].Listeners {
					name := []string{"first", "second"}[i]
					w.route(name, "", to(name)).Parents[0].Listeners = []*graph.Listener{l}
				}
				return w
			},
			exchanges: []exchange{get("a.ex.com/", "first")},
		},
	})
}

func TestAPatternLeadsToTheMostSpecificVirtualHostThatCoversIt(t *testing.T) {
	t.Parallel()

	w := oneGateway(on("a.b.c"))
	w.route("wild", "*.b.c", to("wild"))
	w.route("exact", "a.b.c", to("exact"))
	config := w.config(testTranslator())
	name := listenerName{gateway: w.gateways[0].Key(), listener: "80-a.b.c"}
	wild, narrow := virtualHostID(name, "*.b.c"), virtualHostID(name, "a.b.c")

	host, _ := config.Hosts.Get(model.HostKey(portOf("gw", 80), "a.b.c"))
	if config.Hosts.Len() != 1 || host == nil || host.VirtualHost != narrow {
		t.Errorf("hosts are %v, want a.b.c to lead to %s alone", config.Hosts.Sorted(), narrow)
	}
	parent, _ := config.Parents.Get(narrow)
	if config.Parents.Len() != 1 || parent == nil || parent.VirtualHost != wild {
		t.Errorf("parents are %v, want %s to lead to %s alone", config.Parents.Sorted(), narrow, wild)
	}
}

func TestVirtualHostsThatNobodyReachesAreNotMade(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""), on("*.example.com"))
	w.route("a", "a.example.com", to("a")).Parents[0].Listeners = w.gateways[0].Listeners[:1]
	config := w.config(testTranslator())
	if config.Paths.Len() != 0 || config.Backends.Len() != 0 || config.Hosts.Len() != 2 {
		t.Errorf("got paths %v, backends %v, hosts %v; want only the listeners' own hosts",
			config.Paths.Sorted(), config.Backends.Sorted(), config.Hosts.Sorted())
	}
}

func TestBroaderWalksEveryHostnameThatCovers(t *testing.T) {
	t.Parallel()

	for start, want := range map[string][]string{
		"a.b.c":   {"*.b.c", "*.c", ""},
		"*.b.c":   {"*.c", ""},
		"host":    {""},
		"*.c":     {""},
		"":        nil,
		"a-b.c-d": {"*.c-d", ""},
	} {
		var got []string
		for name, more := broader(start); more; name, more = broader(name) {
			if !covers(name, start) {
				t.Errorf("%q does not cover %q", name, start)
			}
			got = append(got, name)
		}
		if len(got) != len(want) {
			t.Fatalf("broader than %q are %q, want %q", start, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("broader than %q are %q, want %q", start, got, want)
			}
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		broad, narrow string
		want          bool
	}{
		{"", "", true}, {"", "a.b", true}, {"a.b", "", false}, {"a.b", "a.b", true}, {"a.b", "x.a.b", false},
		{"*.b", "a.b", true}, {"*.b", "x.a.b", true}, {"*.b", "b", false}, {"*.b", "ab", false}, {"*.b", "*.a.b", true},
		{"*.a.b", "*.b", false}, {"*.b", "*.b", true}, {"*.b", "", false}, {"a.b", "*.b", false},
	} {
		if got := covers(c.broad, c.narrow); got != c.want {
			t.Errorf("covers(%q, %q) is %v, want %v", c.broad, c.narrow, got, c.want)
		}
	}
}

// A listener of a ListenerSet is another one than the Gateway's of the same name, and than another set's: for sessions and
// for HAProxy. A set's place among others is no part of what it is called.
func TestListenersOfOneNameInSeveralObjects(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(onPort(443, ""), "one"))
	w.gateways[0].Listeners[0].Name = "https"
	set := func(name, hostname string) *graph.ListenerSet {
		l := withTLS(onPort(443, hostname), "one")
		l.Name, l.Gateway = "https", w.gateways[0]
		l.Set = &graph.ListenerSet{
			Source:  &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
			Gateway: w.gateways[0], Listeners: []*graph.Listener{l}, Accepted: true, Valid: true,
		}
		return l.Set
	}
	a, b := set("a", "a.ex.com"), set("gw", "b.ex.com")
	ids := func(sets ...*graph.ListenerSet) map[string]string {
		w.gateways[0].Sets = sets
		all := map[string]string{}
		for _, server := range w.config(testTranslator()).Frame.Ports[0].Servers {
			all[string(server.Owner)] = server.ID
		}
		return all
	}
	both := ids(a, b)
	if len(both) != 3 || both["Listener default/gw/https"] == "" || both["ListenerEntry default/a/https"] == "" || both["ListenerEntry default/gw/https"] == "" {
		t.Fatalf("servers are %v", both)
	}
	unique := map[string]bool{}
	for _, id := range both {
		unique[id] = true
	}
	if len(unique) != 3 {
		t.Errorf("servers share an ID: %v", both)
	}
	for owner, id := range ids(b) {
		if id != both[owner] {
			t.Errorf("%s is called %s without its sibling, and %s with it", owner, id, both[owner])
		}
	}
	hosts := w.config(testTranslator()).Hosts
	own, _ := hosts.Get(model.HostKey(portOf("gw", 443), "*"))
	theirs, _ := hosts.Get(model.HostKey(portOf("gw", 443), "b.ex.com"))
	if own == nil || theirs == nil || own.VirtualHost == theirs.VirtualHost {
		t.Errorf("hosts are %v", hosts.Sorted())
	}
}

// GatewayRouteHostnameIntersectionPrecedence, across kinds: of routes that have the same hostname in common with the listener, the
// one whose own is more specific goes first, however old the others are.
func TestARoutesOwnHostnameGoesFirstWhateverItsKind(t *testing.T) {
	t.Parallel()

	w := oneGateway(on("*.example.com"))
	w.route("broad", "*.com", to("broad")).Kind = graph.KindGRPCRoute
	w.route("own", "*.example.com", to("own", prefix("/own")))
	w.route("every", "", to("every", prefix("/every/very/long")))
	checkExchanges(t, w.config(testTranslator()), []exchange{
		get("a.example.com/own/x", "own"), get("a.example.com/x", "broad"), get("a.example.com/every/very/long", "broad"),
	})
}
