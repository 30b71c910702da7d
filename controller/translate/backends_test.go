package translate

import (
	"math"
	"net/netip"
	"regexp"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

func TestAnEndpointsNameFollowsThePodAndNotTheAddress(t *testing.T) {
	t.Parallel()

	n := namer{testKey}
	pod := endpoint("web-0", "10.0.0.1:8080")
	moved, uidOnly, named, bare := pod, pod, pod, pod
	moved.Address = netip.MustParseAddrPort("10.0.0.2:8080")
	uidOnly.Pod.Name = ""
	named.PodUID = ""
	bare.PodUID, bare.Pod.Name = "", ""
	successor, otherPort := endpoint("web-1", "10.0.0.1:8080"), endpoint("web-0", "10.0.0.1:9090")
	name := func(e graph.Endpoint) string {
		text, id := n.endpoint(&e)
		if !regexp.MustCompile("^[a-z2-7]{13}$").MatchString(text) || id < 1 {
			t.Errorf("%v has the name %q and the id %d", e, text, id)
		}
		return text
	}
	if name(pod) != name(moved) || name(pod) != name(uidOnly) {
		t.Error("a pod with the same UID has another name")
	}
	for what, other := range map[string]graph.Endpoint{
		"the address's next pod": successor, "another port": otherPort, "the pod by its name": named, "the address alone": bare,
	} {
		if name(pod) == name(other) {
			t.Errorf("%s has the pod's name", what)
		}
	}
	text, _ := namer{[]byte("another key")}.endpoint(&pod)
	if text == name(pod) {
		t.Error("the name does not depend on the key")
	}
}

func TestEndpointsAreSortedByNameAndEachOccursOnce(t *testing.T) {
	t.Parallel()

	n := namer{testKey}
	draining := endpoint("a", "10.0.0.9:80")
	draining.Draining = true
	source := []graph.Endpoint{draining, endpoint("a", "10.0.0.1:80"), endpoint("b", "10.0.0.2:80"), endpoint("c", "10.0.0.3:80")}
	got := n.endpoints(source)
	if len(got) != 3 {
		t.Fatalf("there are %d endpoints, want 3: %+v", len(got), got)
	}
	for i, e := range got {
		if i > 0 && got[i-1].Name >= e.Name {
			t.Errorf("%q comes after %q", e.Name, got[i-1].Name)
		}
		if e.Display == "pod default/a" && (e.Draining || e.Address.Addr().String() != "10.0.0.1") {
			t.Errorf("of two endpoints with one name the draining one was kept: %+v", e)
		}
	}
	source[0], source[3] = source[3], source[0]
	if diff := difference(got, n.endpoints(source)); diff != "" {
		t.Errorf("the order of the graph's endpoints counts: %s", diff)
	}
}

func TestServerIDsAreUniqueWithinABackend(t *testing.T) {
	t.Parallel()

	endpoints := []model.Endpoint{{ID: 7}, {ID: 7}, {ID: 8}, {ID: math.MaxInt32}, {ID: math.MaxInt32}, {ID: 1}}
	giveIDs(endpoints)
	want := []int32{7, 8, 9, math.MaxInt32, 1, 2}
	for i, e := range endpoints {
		if e.ID != want[i] {
			t.Errorf("id %d is %d, want %d", i, e.ID, want[i])
		}
	}
}

func TestABackendSaysWhoItIs(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	bare := graph.Endpoint{Address: netip.MustParseAddrPort("[fd00::1]:8080"), Draining: true}
	w.made[service("a")] = &graph.Backend{Key: service("a"), Endpoints: []graph.Endpoint{bare}}
	w.route("r", "", to("a"))
	got, _ := w.config(testTranslator()).Backends.Get("Service/default/a/80")
	name, id := namer{testKey}.endpoint(&bare)
	want := &model.Backend{
		Name: "Service/default/a/80", Owner: "Service default/a",
		Endpoints: []model.Endpoint{{Name: name, ID: id, Address: bare.Address, Draining: true, Display: "[fd00::1]:8080"}},
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}

type noBackends struct{}

func (noBackends) Backend(graph.BackendKey) *graph.Backend { return nil }

func TestABackendThatTheGraphDoesNotKnowHasNoEndpoints(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("r", "", to("a"))
	translator := testTranslator()
	config := translator.translate(w.gateways, w.routes, noBackends{}, nil)
	checkExchanges(t, config, []exchange{get("h/", "503")})
	checkExchanges(t, w.config(translator), []exchange{get("h/", "a")})
}

func TestABackendKeepsItsPointerWhileTheGraphsDoes(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("r", "", to("a b"))
	translator := testTranslator()
	before := w.config(translator)
	w.made[service("b")] = &graph.Backend{Key: service("b"), Endpoints: []graph.Endpoint{endpoint("new", "10.0.0.9:80")}}
	after := w.config(translator)
	changed := after.Backends.Changes(before.Backends)
	if len(changed) != 1 || changed[0].Key != "Service/default/b/80" || !changed[0].HadOld || !changed[0].HasNew {
		t.Errorf("changes are %+v, want b alone", changed)
	}
	w.routes = nil
	if gone := w.config(translator); gone.Backends.Len() != 0 || gone.Hosts.Len() != 1 {
		t.Errorf("without routes there are %v and %v", gone.Backends.Sorted(), gone.Hosts.Sorted())
	}
}

func TestRulesThatAskForTheSameShareABackend(t *testing.T) {
	t.Parallel()

	retrying := func(rule *graph.Rule, attempts int, codes ...int) *graph.Rule {
		rule.Retry = &graph.Retry{Attempts: attempts, Codes: codes}
		return rule
	}
	w := oneGateway(on(""))
	w.route("http", "a.com", to("a", prefix("/1")), retrying(to("a", prefix("/2")), 3, 500, 503),
		retrying(to("a", prefix("/3")), 3, 500, 503), retrying(to("a", prefix("/4")), 0), retrying(to("a:0 b", prefix("/5")), 3))
	w.route("grpc", "b.com", to("a")).Kind = "GRPCRoute"
	config := w.config(testTranslator())
	got := map[string]model.Backend{}
	for _, entry := range config.Backends.Sorted() {
		got[entry.Key] = model.Backend{HTTP2: entry.Value.HTTP2, Retry: entry.Value.Retry}
	}
	want := map[string]model.Backend{
		"Service/default/a/80":                    {},
		"Service/default/a/80 http2":              {HTTP2: true},
		"Service/default/a/80 retry 0":            {Retry: model.Retry{Set: true}},
		"Service/default/a/80 retry 3":            {Retry: model.Retry{Set: true, Attempts: 3}},
		"Service/default/a/80 retry 3 on 500 503": {Retry: model.Retry{Set: true, Attempts: 3, Codes: "500 503"}},
		"Service/default/b/80 retry 3":            {Retry: model.Retry{Set: true, Attempts: 3}},
		"Unavailable":                             {},
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARetryStanzaMovesNoSession(t *testing.T) {
	t.Parallel()

	before := sessionsOf(t, sticky(to("a b"), cookie("c")))
	rule := sticky(to("a b"), cookie("c"))
	rule.Retry = &graph.Retry{Attempts: 2}
	if diff := difference(before, sessionsOf(t, rule)); diff != "" {
		t.Error(diff)
	}
}
