package behaviour

import (
	"testing"
)

func TestPrecedenceWithinARoute(t *testing.T) {
	t.Parallel()
	// Rules are in the order opposite to their precedence.
	w := Run(t, gateway+route("all", `
hostnames: [x.example]
rules:
- matches: [{path: {value: /}}]
  backendRefs: [{name: least, port: 80}]
- matches: [{path: {value: /}, queryParams: [{name: q, value: "1"}]}]
  backendRefs: [{name: query, port: 80}]
- matches: [{path: {value: /}, queryParams: [{name: q, value: "1"}, {name: r, value: "1"}]}]
  backendRefs: [{name: queries, port: 80}]
- matches: [{path: {value: /}, headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: header, port: 80}]
- matches: [{path: {value: /}, headers: [{name: a, value: "1"}, {name: b, value: "1"}]}]
  backendRefs: [{name: headers, port: 80}]
- matches: [{path: {value: /}, method: POST}]
  backendRefs: [{name: method, port: 80}]
- matches: [{path: {value: /}, method: POST, queryParams: [{name: q, value: "1"}]}]
  backendRefs: [{name: method-query, port: 80}]
- matches: [{path: {value: /long}}]
  backendRefs: [{name: long, port: 80}]
- matches: [{path: {value: /long/er}, headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: longer, port: 80}]
- matches: [{path: {type: Exact, value: /long/er}, headers: [{name: b, value: "1"}]}]
  backendRefs: [{name: exact, port: 80}]
- matches: [{path: {value: /tie}, headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: header, port: 80}]
- matches: [{path: {value: /tie}, headers: [{name: b, value: "1"}]}]
  backendRefs: [{name: headers, port: 80}]
- matches: [{path: {value: /same}}]
  backendRefs: [{name: query, port: 80}]
- matches: [{path: {value: /same}}]
  backendRefs: [{name: least, port: 80}]`),
		pods("least", 1), pods("query", 1), pods("queries", 1), pods("header", 1), pods("headers", 1), pods("method", 1),
		pods("method-query", 1), pods("long", 1), pods("longer", 1), pods("exact", 1))
	post := func(r request) request { r.method = "POST"; return r }
	w.check(t, []row{
		{"nothing but the path", get("x.example/p"), "least"},
		{"a query parameter before none", get("x.example/?q=1"), "query"},
		{"two query parameters before one", get("x.example/?q=1&r=1"), "queries"},
		{"a header before two query parameters", get("x.example/?q=1&r=1", "a: 1"), "header"},
		{"two headers before one", get("x.example/?q=1&r=1", "a: 1", "b: 1"), "headers"},
		{"a method before two headers", post(get("x.example/", "a: 1", "b: 1")), "method"},
		{"a method and more before a method", post(get("x.example/?q=1", "a: 1", "b: 1")), "method-query"},
		{"a longer prefix before a method", post(get("x.example/long", "a: 1", "b: 1")), "long"},
		{"an even longer one", get("x.example/long/er", "a: 1"), "longer"},
		{"an exact path before all", get("x.example/long/er", "a: 1", "b: 1"), "exact"},
		{"where the longer ones do not match, the shorter", get("x.example/long/er/x"), "long"},
		{"of matches that are equal otherwise, the first", get("x.example/tie", "a: 1", "b: 1"), "header"},
		{"the other one alone", get("x.example/tie", "b: 1"), "headers"},
		{"where none at a path holds, a shorter path", get("x.example/tie"), "least"},
		{"of rules that match the same, the first", get("x.example/same"), "query"},
	})
}

func TestB01ATieGoesToTheOlderRoute(t *testing.T) {
	t.Parallel()
	spec := func(backend string) string {
		return `
hostnames: [x.example]
rules:
- matches: [{path: {value: /c}}, {path: {value: /h}, headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: ` + backend + `, port: 80}]`
	}
	old, young := aged("01", "zzz-first", spec("one")), aged("02", "aaa-second", spec("two"))
	same, third := aged("01", "zzz-same", spec("two")), aged("00", "later", spec("three"))
	rows := []row{{"a plain path", get("x.example/c"), "one"}, {"a conditional one", get("x.example/h", "a: 1"), "one"}}
	w := Run(t, gateway+young+old, pods("one", 1), pods("two", 1), pods("three", 1))
	w.check(t, rows)
	w.Apply(t, gateway+same+young+old)
	w.check(t, rows)
	// Another one at the same place, that is younger, changes nothing.
	w.Apply(t, gateway+young+aged("03", "a", spec("three"))+old)
	w.check(t, rows)
	// An older one takes over, and hands back.
	w.Apply(t, gateway+young+third+old)
	w.check(t, []row{{"an older one", get("x.example/c"), "three"}, {"an older one, conditional", get("x.example/h", "a: 1"), "three"}})
	w.Apply(t, gateway+young+old)
	w.check(t, rows)
	// Nor does a fresh start change it.
	w.restartLimpet(t)
	w.check(t, rows)
	w.restart(t)
	w.check(t, rows)
}

func TestRoutesOfOneAgeAreOrderedByName(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		aged("00", "b", "rules:\n- backendRefs: [{name: two, port: 80}]")+
		aged("00", "a", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 1), pods("two", 1))
	w.check(t, []row{{"by name", get("x.example/"), "one"}})
}

func TestMatchesOfSeveralRoutesAreOrderedAsIfTheyWereOne(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		aged("00", "old", `
hostnames: [x.example]
rules:
- matches: [{path: {value: /a}}, {path: {value: /b}, headers: [{name: a, value: "1"}]}]
  backendRefs: [{name: one, port: 80}]`)+
		aged("01", "young", `
hostnames: [x.example]
rules:
- matches: [{path: {value: /a/b}}, {path: {value: /a}, method: POST}, {path: {value: /b}, headers: [{name: a, value: "1"}, {name: b, value: "1"}]}]
  backendRefs: [{name: two, port: 80}]`), pods("one", 1), pods("two", 1))
	post := get("x.example/a")
	post.method = "POST"
	w.check(t, []row{
		{"the longer prefix is the younger's", get("x.example/a/b"), "two"},
		{"the shorter the older's", get("x.example/a"), "one"},
		{"a method the younger's", post, "two"},
		{"one header the older's", get("x.example/b", "a: 1"), "one"},
		{"two headers the younger's", get("x.example/b", "a: 1", "b: 1"), "two"},
	})
}

func TestB08ARouteWhoseBackendIsDownDoesNotFallThrough(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /admin}}]
  backendRefs: [{name: none, port: 80}]
- matches: [{path: {value: /missing}}]
  backendRefs: [{name: missing, port: 80}]
- matches: [{path: {value: /refused}}]
  backendRefs: [{name: one, port: 80}]
  retry: {backoff: 5s}`), pods("one", 1), pods("none", 0))
	w.check(t, []row{
		{"the broad one", get("x.example/"), "one"},
		{"without an endpoint", get("x.example/admin/x"), "503"},
		{"without a Service", get("x.example/missing/x"), "500"},
		{"with a rule that is not honoured", get("x.example/refused/x"), "500"},
	})
}
