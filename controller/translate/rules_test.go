package translate

import (
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// ruleOf translates one rule and returns it, nil if it is plain.
func ruleOf(t *testing.T, rule *graph.Rule) *model.Rule {
	t.Helper()
	config := routed(rule)().config(testTranslator())
	switch config.Rules.Len() {
	case 0:
		return nil
	case 1:
		return config.Rules.Sorted()[0].Value
	}
	t.Fatalf("rules are %v, want one", config.Rules.Sorted())
	return nil
}

func changing(rule *graph.Rule, change graph.HeaderChange) *graph.Rule {
	rule.Filters.RequestHeaders = &change
	return rule
}

func changingFirst(rule *graph.Rule, change graph.HeaderChange) *graph.Rule {
	rule.Backends[0].Filters.RequestHeaders = &change
	return rule
}

// filtering is a rule with filters of its own.
func filtering(rule *graph.Rule, filters graph.Filters) *graph.Rule {
	rule.Filters = filters
	return rule
}

func mirror(backend string, numerator, denominator int32) graph.Mirror {
	return graph.Mirror{Backend: service(backend), Numerator: numerator, Denominator: denominator}
}

func dropped(rule *graph.Rule) *graph.Rule {
	rule.Dropped = true
	return rule
}

func TestARuleIsPlainOnlyWhereItHasNothingMoreToSay(t *testing.T) {
	t.Parallel()

	set := graph.HeaderChange{Set: []graph.HeaderValue{{Name: "x", Value: "1"}}}
	for name, c := range map[string]struct {
		rule  *graph.Rule
		plain bool
	}{
		"one backendRef":                          {to("a"), true},
		"one backendRef with any weight":          {to("a:7"), true},
		"an empty header change":                  {changing(to("a"), graph.HeaderChange{}), true},
		"two backendRefs":                         {to("a b"), false},
		"a second backendRef without weight":      {to("a b:0"), false},
		"one backendRef without weight":           {to("a:0"), false},
		"an invalid backendRef":                   {to("!a"), false},
		"no backendRef":                           {to(""), false},
		"a session":                               {sticky(to("a"), cookie("")), false},
		"a header change":                         {changing(to("a"), set), false},
		"a header change of the backendRef":       {changingFirst(to("a"), set), false},
		"a rule that the graph drops":             {dropped(to("a")), false},
		"a redirect":                              {redirecting(graph.Redirect{Status: 302}), false},
		"a change of the answer's headers":        {filtering(to("a"), graph.Filters{ResponseHeaders: &set}), false},
		"a rewrite":                               {filtering(to("a"), graph.Filters{Rewrite: &graph.Rewrite{Hostname: "b.com"}}), false},
		"a rewrite of nothing":                    {filtering(to("a"), graph.Filters{Rewrite: &graph.Rewrite{}}), true},
		"CORS":                                    {filtering(to("a"), graph.Filters{CORS: &graph.CORS{}}), false},
		"a mirror":                                {filtering(to("a"), graph.Filters{Mirrors: []graph.Mirror{mirror("b", 1, 100)}}), false},
		"a mirror of nothing":                     {filtering(to("a"), graph.Filters{Mirrors: []graph.Mirror{mirror("b", 0, 100)}}), true},
		"a timeout":                               {&graph.Rule{Matches: to("a").Matches, Backends: to("a").Backends, RequestTimeout: time.Second}, false},
		"a backend's timeout":                     {&graph.Rule{Matches: to("a").Matches, Backends: to("a").Backends, BackendTimeout: time.Second}, false},
		"retries are the backend's":               {&graph.Rule{Matches: to("a").Matches, Backends: to("a").Backends, Retry: &graph.Retry{}}, true},
		"a rule with a name is as plain as other": {named(to("a"), "name"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ruleOf(t, c.rule).Plain(); got != c.plain {
				t.Errorf("plain is %v, want %v", got, c.plain)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()

	a, b := "Service/default/a/80", "Service/default/b/80"
	for name, c := range map[string]struct {
		rule *graph.Rule
		want []model.Share
	}{
		"weights are as given":                      {to("a:90 b:10"), []model.Share{{Weight: 90, Backend: a}, {Weight: 10, Backend: b}}},
		"a share without weight keeps its place":    {to("a:0 b:1"), []model.Share{{Weight: 0, Backend: a}, {Weight: 1, Backend: b}}},
		"an invalid backendRef's share is 500":      {to("!a:3 b:1"), []model.Share{{Weight: 3}, {Weight: 1, Backend: b}}},
		"one backend twice is two shares":           {to("a:1 a:2"), []model.Share{{Weight: 1, Backend: a}, {Weight: 2, Backend: a}}},
		"without any valid backendRef all get 500":  {to("!a:3 !b:0"), []model.Share{{Weight: 1}}},
		"without any backendRef all get 500":        {to(""), []model.Share{{Weight: 1}}},
		"a rule that the graph drops gets 500":      {dropped(to("a b")), []model.Share{{Weight: 1}}},
		"without any weight all get 500":            {to("a:0"), []model.Share{{Backend: a}, {Weight: 1}}},
		"only an invalid backendRef having weight ": {to("a:0 !b:5"), []model.Share{{Backend: a}, {Weight: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleOf(t, c.rule)
			if rule == nil {
				t.Fatal("the rule is plain")
			}
			if diff := difference(c.want, rule.Split); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeaderChanges(t *testing.T) {
	t.Parallel()

	rule := changingFirst(changing(to("a b"),
		graph.HeaderChange{
			Set: []graph.HeaderValue{{Name: "X-Set", Value: "1"}}, Add: []graph.HeaderValue{{Name: "x-add", Value: "a b"}}, Remove: []string{"X-Gone"},
		}),
		graph.HeaderChange{Remove: []string{"only-a"}})
	got := ruleOf(t, rule)
	want := &model.Rule{
		ID: got.ID, Owner: "HTTPRoute default/r", Display: "HTTPRoute default/r rule 0",
		Filters: model.Filters{Request: &model.HeaderChange{
			Set: []model.Header{{Name: "X-Set", Value: "1"}}, Add: []model.Header{{Name: "x-add", Value: "a b"}}, Remove: []string{"X-Gone"},
		}},
		Split: []model.Share{
			{Weight: 1, Backend: "Service/default/a/80", Filters: model.Filters{Request: &model.HeaderChange{Remove: []string{"only-a"}}}},
			{Weight: 1, Backend: "Service/default/b/80"},
		},
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}

// redirecting is a rule that redirects instead of having backends.
func redirecting(redirect graph.Redirect, matches ...graph.Match) *graph.Rule {
	rule := to("", matches...)
	rule.Filters.Redirect = &redirect
	return rule
}

func replacingPrefix(with string) *gatewayv1.HTTPPathModifier {
	return &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &with}
}

func replacingPath(with string) *gatewayv1.HTTPPathModifier {
	return &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &with}
}

func TestRedirects(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		source graph.Redirect
		want   model.Redirect
	}{
		"neither scheme nor port keeps the listener's port": {
			graph.Redirect{Status: 302, Hostname: "other.org"}, model.Redirect{Status: 302, Host: "other.org", KeepPort: true},
		},
		"a scheme brings its own port": {
			graph.Redirect{Status: 301, Scheme: "https"}, model.Redirect{Status: 301, Scheme: "https"},
		},
		"a port is the one given": {
			graph.Redirect{Status: 302, Port: 8443}, model.Redirect{Status: 302, Port: 8443},
		},
		"a port goes before the scheme's own": {
			graph.Redirect{Status: 302, Scheme: "https", Port: 8443}, model.Redirect{Status: 302, Scheme: "https", Port: 8443},
		},
		"the full path is replaced": {
			graph.Redirect{Status: 302, Path: replacingPath("/new")},
			model.Redirect{Status: 302, KeepPort: true, ReplaceFull: true, Path: "/new"},
		},
		"the matched prefix is replaced": {
			graph.Redirect{Status: 302, Path: replacingPrefix("/new")},
			model.Redirect{Status: 302, KeepPort: true, ReplacePrefix: true, Path: "/new", Prefix: "/old"},
		},
		"a modifier without a value is an empty one": {
			graph.Redirect{Status: 302, Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier}},
			model.Redirect{Status: 302, KeepPort: true, ReplaceFull: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleOf(t, redirecting(c.source, prefix("/old")))
			if diff := difference(&c.want, rule.Filters.Redirect); diff != "" {
				t.Error(diff)
			}
			if rule.Split != nil || rule.Filters.Request != nil {
				t.Errorf("beside its redirect the rule has %+v", rule)
			}
		})
	}
}

func TestARedirectThatReplacesThePrefixIsARuleForEachPrefix(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("r", "", redirecting(graph.Redirect{Status: 302, Path: replacingPrefix("/new")}, prefix("/a"), prefix("/b"), prefix("/a", method("PUT"))))
	config := w.config(testTranslator())
	prefixes := map[string]int{}
	for _, entry := range config.Rules.Sorted() {
		prefixes[entry.Value.Filters.Redirect.Prefix]++
	}
	if len(prefixes) != 2 || prefixes["/a"] != 1 || prefixes["/b"] != 1 {
		t.Errorf("rules by prefix are %v, want one for /a and one for /b", prefixes)
	}
	checkExchanges(t, config, []exchange{get("h/a/x", "redirect"), get("h/b/x", "redirect")})
}

func TestFilters(t *testing.T) {
	t.Parallel()

	change := &graph.HeaderChange{Remove: []string{"x"}}
	all := graph.Filters{
		RequestHeaders: change, ResponseHeaders: &graph.HeaderChange{Set: []graph.HeaderValue{{Name: "a", Value: "b"}}},
		Rewrite: &graph.Rewrite{Hostname: "b.com", Path: replacingPrefix("/new")},
		Mirrors: []graph.Mirror{mirror("m", 1, 3), mirror("never", 0, 100)},
		CORS:    &graph.CORS{Origins: []string{"*"}, Expose: []string{"*", "a"}, MaxAge: time.Minute, Credentials: true},
	}
	want := model.Filters{
		Request: &model.HeaderChange{Remove: []string{"x"}}, Response: &model.HeaderChange{Set: []model.Header{{Name: "a", Value: "b"}}},
		Rewrite: &model.Rewrite{Host: "b.com", Path: "/new", ReplacePrefix: true, Prefix: "/old"},
		Mirrors: []model.Mirror{{Backend: "Service/default/m/80", Numerator: 1, Denominator: 3}},
		CORS:    &model.CORS{Origins: []string{"*"}, Expose: []string{"a"}, MaxAge: time.Minute, Credentials: true},
	}
	rule := filtering(to("a b", prefix("/old")), all)
	rule.Backends[0].Filters = all
	rule.Retry = &graph.Retry{Attempts: 2}
	config := routed(rule)().config(testTranslator())
	got := config.Rules.Sorted()[0].Value
	if diff := difference(want, got.Filters); diff != "" {
		t.Error(diff)
	}
	if diff := difference(want, got.Split[0].Filters); diff != "" {
		t.Error(diff)
	}
	if !got.Split[1].Filters.Empty() {
		t.Errorf("another backendRef's filters are %+v", got.Split[1].Filters)
	}
	var names []string
	for _, entry := range config.Backends.Sorted() {
		names = append(names, entry.Key)
	}
	if diff := difference([]string{"Service/default/a/80 retry 2", "Service/default/b/80 retry 2", "Service/default/m/80", "Service/default/never/80"}, names); diff != "" {
		t.Errorf("backends, of which mirrors have the rule's retries not: %s", diff)
	}
}

func TestAShareThatRedirectsNeedsNoBackend(t *testing.T) {
	t.Parallel()

	rule := to("a b !c", prefix("/old"))
	for i := range rule.Backends {
		rule.Backends[i].Filters.Redirect = &graph.Redirect{Status: 302, Hostname: "x.com", Path: replacingPrefix("/new")}
	}
	rule.Backends[1].Filters = graph.Filters{}
	config := routed(sticky(rule, cookie("")))().config(testTranslator())
	split := config.Rules.Sorted()[0].Value.Split
	if split[0].Backend != "" || split[0].Session != nil || split[0].Filters.Redirect.Prefix != "/old" {
		t.Errorf("the share that redirects is %+v", split[0])
	}
	if split[1].Session == nil || split[2].Filters.Redirect != nil || config.Backends.Len() != 1 {
		t.Errorf("the others are %+v, and there are %d backends", split[1:], config.Backends.Len())
	}
}

func TestARewrittenPrefixMovesNoSession(t *testing.T) {
	t.Parallel()

	of := func(path string) *model.Session {
		rule := filtering(named(sticky(to("a", prefix(path)), cookie("")), "rule"), graph.Filters{Rewrite: &graph.Rewrite{Path: replacingPrefix("/")}})
		return sessionsOf(t, rule)[0]
	}
	a, b := of("/a"), of("/b")
	if a.ID == b.ID {
		t.Error("two rules of the model share an entry: one of them could take it with it")
	}
	a.ID = b.ID
	if diff := difference(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestBackendsOfRulesThatDoNotUseThemAreNotMade(t *testing.T) {
	t.Parallel()

	w := oneGateway(on("a.ex.com"))
	drop := dropped(to("gone"))
	redirect := redirecting(graph.Redirect{Status: 302}, prefix("/r"))
	redirect.Backends = to("behind").Backends
	w.route("r", "", to("a:0 b !c", prefix("/x")), drop, redirect)
	w.route("elsewhere", "b.ex.com", to("elsewhere"))
	config := w.config(testTranslator())
	var names []string
	for _, entry := range config.Backends.Sorted() {
		names = append(names, entry.Key)
	}
	if diff := difference([]string{"Service/default/a/80", "Service/default/b/80"}, names); diff != "" {
		t.Error(diff)
	}
}
