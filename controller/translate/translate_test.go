package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// changedKeys lists what differs between two Configs, as "paths …", without the hashes.
func changedKeys(before, after model.Config) []string {
	return slices.Concat(
		keysOf("host", before.Hosts, after.Hosts), keysOf("parent", before.Parents, after.Parents),
		keysOf("path", before.Paths, after.Paths), keysOf("rule", before.Rules, after.Rules),
		keysOf("backend", before.Backends, after.Backends),
	)
}

func keysOf[V comparable](kind string, before, after table.Table[V]) []string {
	var keys []string
	for _, c := range after.Changes(before) {
		key := c.Key
		if at := strings.IndexAny(key, "|/"); at == 13 {
			key = key[at:]
		}
		if kind == "rule" || kind == "parent" {
			key = "…"
		}
		sign := "~"
		switch {
		case !c.HadOld:
			sign = "+"
		case !c.HasNew:
			sign = "-"
		}
		keys = append(keys, sign+kind+" "+key)
	}
	return keys
}

func TestAChangedObjectChangesOnlyItsOwnEntries(t *testing.T) {
	t.Parallel()

	in := newInstallation(20, onManyHosts)
	builder, translator := graph.NewBuilder(graph.Options{}), testTranslator()
	before := translator.Config(builder.Build(in.snapshot))
	for _, step := range []struct {
		name string
		edit func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"a header's value and the weights", func() {
			in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.With(in.route(7, 2))
		}, []string{"~path /p7/", "~rule …", "-rule …", "+rule …"}},
		{"an endpoint's address", func() {
			_, slice := newService(7)
			slice.Endpoints[0].Addresses[0] = "10.9.9.9"
			in.snapshot.EndpointSlices = in.snapshot.EndpointSlices.With(slice)
		}, []string{"~backend Service/default/s7/80"}},
		{"a route that goes", func() {
			in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.Without("default", "r7")
		}, []string{"-host |h7.example.com", "-path /p7/", "-rule …", "-rule …", "-backend Service/default/s7/80"}},
		{"a route that comes", func() {
			in.snapshot.HTTPRoutes = in.snapshot.HTTPRoutes.With(in.route(7, 2))
		}, []string{"+host |h7.example.com", "+path /p7/", "+rule …", "+rule …", "+backend Service/default/s7/80"}},
		{"a listener's port, which is a full translation", func() {
			gw, _ := in.snapshot.Gateways.Get("default", "gw")
			gw = gw.DeepCopy()
			gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 81, Protocol: gatewayv1.HTTPProtocolType, Hostname: new(gatewayv1.Hostname("only.org"))})
			in.snapshot.Gateways = cluster.NewObjects(gw)
		}, []string{"+host |only.org"}},
	} {
		step.edit()
		after := translator.Config(builder.Build(in.snapshot))
		got := changedKeys(before, after)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(step.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s changes %q, want %q", step.name, got, want)
		}
		if diff := differentConfigs(testTranslator().Config(graph.NewBuilder(graph.Options{}).Build(in.snapshot)), after); diff != "" {
			t.Errorf("after %s a fresh Translator differs: %s", step.name, diff)
		}
		before = after
	}
}

func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""), on("*.ex.com"))
	w.route("a", "a.ex.com *.org", to("a", regexes("a", maxRegexes+1)...), sticky(to("b c"), cookie("")))
	w.route("b", "", to("b"))
	translator := testTranslator()
	w.config(translator)
	w.routes = nil
	w.config(translator)
	for what, count := range map[string]int{
		"paths": len(translator.paths.entries), "refusals": len(translator.paths.refusals), "refusing": len(translator.paths.refusing),
		"backends": len(translator.backends.byVariant), "services": len(translator.backends.bySource), "backends in use": len(translator.backends.inUse), "routes": len(translator.routes),
	} {
		if count != 0 {
			t.Errorf("%d %s are remembered", count, what)
		}
	}
	for _, l := range translator.listeners.byName {
		if len(l.hosts) != 0 {
			t.Errorf("%d virtual hosts are remembered", len(l.hosts))
		}
	}
}

func TestCompareRoutes(t *testing.T) {
	t.Parallel()

	all := map[string]*graph.Route{}
	list := func(names string) []*graph.Route {
		var sources []*graph.Route
		for _, name := range strings.Fields(names) {
			if all[name] == nil {
				all[name] = newRoute(nil, name, "")
			}
			sources = append(sources, all[name])
		}
		return sources
	}
	names := func(routes []*route) string {
		var words []string
		for _, r := range routes {
			words = append(words, r.source.Source.GetName())
		}
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	for _, c := range []struct{ before, after, gone, fresh string }{
		{"", "", "", ""},
		{"", "a b", "", "a b"},
		{"a b", "", "a b", ""},
		{"a b c", "a b c", "", ""},
		{"a b c", "a x c", "b", "x"},
		{"a b c", "a c", "b", ""},
		{"a c", "a b c", "", "b"},
		{"a b c", "b c a", "a", "a"},
		{"a b c d", "d a b c", "a b c", "a b c"},
		{"a b c d", "a c b d", "b", "b"},
		{"a b c d e", "x b d c y", "a c e", "c x y"},
	} {
		_, _, old := compareRoutes(nil, nil, list(c.before))
		next, gone, fresh := compareRoutes(list(c.before), old, list(c.after))
		if names(gone) != c.gone || names(fresh) != c.fresh {
			t.Errorf("from %q to %q: %q are gone and %q new, want %q and %q", c.before, c.after, names(gone), names(fresh), c.gone, c.fresh)
		}
		for i, r := range next {
			if r.rank != i || r.source != list(c.after)[i] {
				t.Errorf("from %q to %q: place %d has %s with the rank %d", c.before, c.after, i, r.source.Source.GetName(), r.rank)
			}
		}
	}
}

func TestAFreshTranslatorHasNothingToSay(t *testing.T) {
	t.Parallel()

	config := testTranslator().Config(&graph.Graph{})
	if diff := differentConfigs(model.Config{}, config); diff != "" {
		t.Error(diff)
	}
}

func TestIDsDoNotChangeFromOneReleaseToTheNext(t *testing.T) {
	t.Parallel()

	// Each of these is in tokens, cookies or files that outlive a release. If one must change, sessions end: say so in
	// the changelog.
	w := oneGateway(withTLS(on("a.ex.com"), "secret"))
	w.route("r", "", sticky(to("a", prefix("/x")), cookie("")), named(sticky(to("a b"), cookie("c")), "rule"))
	config := w.config(testTranslator())
	got := []string{config.Frame.Ports[0].ID, config.Frame.Ports[0].Servers[0].ID, config.Frame.Ports[0].Servers[0].Certificates[0]}
	for _, entry := range config.Rules.Sorted() {
		for _, share := range entry.Value.Split {
			got = append(got, fmt.Sprint(entry.Key, " ", share.Session.ID, " ", share.Session.Scope, " ", share.Session.Backend, " ", share.Session.Name))
		}
	}
	backend, _ := config.Backends.Get("Service/default/a/80")
	got = append(got, fmt.Sprint(backend.Endpoints[0].Name, " ", backend.Endpoints[0].ID), config.Hosts.Sorted()[0].Value.VirtualHost)
	want := []string{
		"ptc7oqtej6iwo",
		"t7tgzjskklzzs",
		"xvmsz27viuk7",
		"rcci2e3tzp2p5 sbkyjksmtf4ls q7mj63bhj6fb obt7zkwe c-obt7zkwe",
		"rcci2e3tzp2p5 sq4mbulcjm32z q7mj63bhj6fb dcuyhipz c-dcuyhipz",
		"rzjspewdiqxdh sqxgry37qzjkf fyqjqcvx4o5i obt7zkwe limpet-7kghgj2ppim7",
		"lrr4oee424nvj 1628811181",
		"vgpfgzwfld7us",
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}
