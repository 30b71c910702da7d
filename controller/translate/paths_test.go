package translate

import (
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// routed returns a world with one listener and one route, default/r at every host.
func routed(rules ...*graph.Rule) func() *world {
	return func() *world {
		w := oneGateway(on(""))
		w.route("r", "", rules...)
		return w
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()

	runScenarios(t, map[string]scenario{
		"B02: a prefix ends where a segment ends": {
			world: routed(to("v2", prefix("/v2"))),
			exchanges: []exchange{
				get("h/v2", "v2"), get("h/v2/", "v2"), get("h/v2/x", "v2"), get("h/v2example", "404"), get("h/", "404"),
				get("h/V2", "404"), get("h//v2", "404"), get("h/x/v2", "404"),
			},
		},
		"a rule without matches takes every path": {
			world:     routed(to("all")),
			exchanges: []exchange{get("h/", "all"), get("h/x/y", "all"), get("h//", "all")},
		},
		"an exact path is that path and no other": {
			world:     routed(to("a", exactly("/a")), to("root", exactly("/")), to("slash", exactly("/b/"))),
			exchanges: []exchange{get("h/a", "a"), get("h/a/", "404"), get("h/ab", "404"), get("h/", "root"), get("h/b/", "slash"), get("h/b", "404")},
		},
		"Exact goes before a longer prefix and every regular expression": {
			world: routed(to("regex", regex("/a/b.*")), to("prefix", prefix("/a/b")), to("exact", exactly("/a/b"))),
			exchanges: []exchange{
				get("h/a/b", "exact"), get("h/a/b/c", "prefix"), get("h/a/bc", "regex"), get("h/a/b/", "prefix"),
			},
		},
		"the longest prefix comes first whatever the order": {
			world: routed(to("root", prefix("/")), to("abc", prefix("/a/b/c")), to("a", prefix("/a")), to("ab", prefix("/a/b/"))),
			exchanges: []exchange{
				get("h/a/b/c/d", "abc"), get("h/a/b/x", "ab"), get("h/a/x", "a"), get("h/x", "root"),
			},
		},
		"a match whose conditions fail leads on to shorter prefixes": {
			world: routed(
				to("v2", prefix("/a/b", header("version", "2"))), to("post", prefix("/a", method("POST"))), to("root", prefix("/", query("q", "1")))),
			exchanges: []exchange{
				get("h/a/b", "v2", sends("version", "2")), get("h/a/b", "post", by("POST")), get("h/a/b", "root", asks("q", "1")),
				get("h/a/b", "404"), get("h/a/b", "v2", sends("version", "2"), by("POST"), asks("q", "1")),
			},
		},
		"method, then headers, then query parameters decide between equal paths": {
			world: routed(
				to("plain", prefix("/")),
				to("query2", prefix("/", query("a", "1"), query("b", "1"))),
				to("query1", prefix("/", query("a", "1"))),
				to("header1", prefix("/", header("x", "1"))),
				to("header2", prefix("/", header("x", "1"), header("y", "1"))),
				to("header1query1", prefix("/", header("x", "1"), query("a", "1"))),
				to("method", prefix("/", method("PUT")))),
			exchanges: []exchange{
				get("h/", "plain"),
				get("h/", "query1", asks("a", "1")),
				get("h/", "query2", asks("a", "1"), asks("b", "1")),
				get("h/", "header1", sends("x", "1")),
				get("h/", "header1query1", sends("x", "1"), asks("a", "1"), asks("b", "1")),
				get("h/", "header2", sends("x", "1"), sends("y", "1"), asks("a", "1")),
				get("h/", "method", by("PUT"), sends("x", "1"), sends("y", "1"), asks("a", "1"), asks("b", "1")),
			},
		},
		"the first rule and match decide between equal matches of one route": {
			world:     routed(to("first", prefix("/", header("x", "1"))), to("second", prefix("/", header("y", "1"))), to("third", prefix("/"), exactly("/e")), to("fourth", prefix("/"), exactly("/e"))),
			exchanges: []exchange{get("h/", "first", sends("x", "1"), sends("y", "1")), get("h/", "third"), get("h/e", "third")},
		},
		"B01: the older route decides between equal matches of two routes, whatever their names": {
			world: func() *world {
				w := oneGateway(on(""))
				w.route("zzz-first", "", to("z", prefix("/c")))
				w.route("aaa-second", "", to("a", prefix("/c")))
				return w
			},
			exchanges: []exchange{get("h/c", "z")},
		},
		"a regular expression must match the whole path": {
			world:     routed(to("a", regex("/a[0-9]+"))),
			exchanges: []exchange{get("h/a1", "a"), get("h/a12", "a"), get("h/a1/", "404"), get("h/a", "404"), get("h/xa1", "404")},
		},
		"a regular expression goes before the prefix that is its literal beginning": {
			world:     routed(to("prefix", prefix("/api")), to("regex", regex("/api/.*"))),
			exchanges: []exchange{get("h/api/x", "regex"), get("h/api", "prefix")},
		},
		"a prefix that is longer than a regular expression's literal beginning goes before it": {
			world:     routed(to("prefix", prefix("/api/v1")), to("regex", regex("/api/v[0-9]/x"))),
			exchanges: []exchange{get("h/api/v1/x", "prefix"), get("h/api/v2/x", "regex")},
		},
		"the longer of two regular expressions goes first, else the one with more conditions": {
			world: routed(
				to("short", regex("/.*")), to("long", regex("/.*[a-z]")), to("conditional", regex("/.*", header("x", "1")))),
			exchanges: []exchange{get("h/a", "long"), get("h/1", "short"), get("h/1", "conditional", sends("x", "1"))},
		},
		"header values and query parameters can be regular expressions": {
			world:     routed(to("a", prefix("/", headerRegex("x", "a+")))),
			exchanges: []exchange{get("h/", "a", sends("x", "aaa")), get("h/", "404", sends("x", "aab")), get("h/", "404")},
		},
		"B08: a rule without endpoints or valid backends never falls through to a broader one": {
			world: func() *world {
				w := oneGateway(on(""))
				w.missing["admin"] = true
				w.route("root", "", to("root"))
				w.route("admin", "", to("admin", prefix("/admin")), to("!gone", prefix("/gone")), to("", prefix("/none")), to("root:0", prefix("/zero")))
				w.route("half", "", to("root:1 !gone:1", prefix("/half")))
				return w
			},
			exchanges: []exchange{
				get("h/admin", "503"), get("h/gone", "500"), get("h/none", "500"), get("h/zero", "500"), get("h/half", "root:1 500:1"),
				get("h/x", "root"),
			},
		},
		"one route is served on every port and listener that it attaches to": {
			world: func() *world {
				w := oneGateway(on("a.ex.com"), on("*.ex.com"), onPort(81, ""))
				w.route("r", "", to("r"))
				return w
			},
			exchanges: []exchange{get("a.ex.com/", "r"), get("b.ex.com/", "r"), get("x/", "404"), get("x/", "r", atPort(81))},
		},
	})
}

func TestWhatComesBehindAMatchWithoutConditionsIsDropped(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("a", "", to("a", prefix("/", header("x", "1"))), to("b", prefix("/")))
	w.route("c", "", to("c", prefix("/")), to("d", prefix("/", header("y", "1"))))
	config := w.config(testTranslator())
	path := onlyPath(t, config)
	if len(path.Candidates) != 3 || len(path.Candidates[2].Conditions) != 0 || path.Candidates[2].Target.Backend != "Service/default/b/80" {
		t.Errorf("candidates are %+v; want those with headers and then b alone", path.Candidates)
	}
}

func TestConditionsAreInTheOrderOfTheirCost(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("a", "", to("a", regex("/.*", headerRegex("x", "1+"), header("y", "1"), query("q", "1"), method("GET"))))
	path := onlyPath(t, w.config(testTranslator()))
	want := []model.Condition{
		{On: model.OnMethod, Value: "GET"}, {On: model.OnHeader, Name: "y", Value: "1"}, {On: model.OnQuery, Name: "q", Value: "1"},
		{On: model.OnHeader, Name: "x", Value: "1+", Regex: true}, {On: model.OnPath, Value: "/.*", Regex: true},
	}
	if diff := difference(want, path.Candidates[0].Conditions); diff != "" {
		t.Error(diff)
	}
}

func onlyPath(t *testing.T, config model.Config) *model.Path {
	t.Helper()
	if config.Paths.Len() != 1 {
		t.Fatalf("paths are %v, want one", config.Paths.Sorted())
	}
	return config.Paths.Sorted()[0].Value
}
