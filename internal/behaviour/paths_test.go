package behaviour

import "testing"

func TestB02APathPrefixMatchesWholeSegments(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		route("prefix", `
hostnames: [prefix.example]
rules:
- matches: [{path: {type: PathPrefix, value: /v2}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: PathPrefix, value: /trail/}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: PathPrefix, value: /v2/deep/er}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {value: "/e%20ncoded;v=1/ü~!$&'()*+,=:@"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: "/s;a,b=c/(d)'$&!*+:@~"}}]
  backendRefs: [{name: one, port: 80}]`)+
		route("root", `
hostnames: [root.example]
rules:
- matches: [{path: {type: PathPrefix, value: /}}]
  backendRefs: [{name: one, port: 80}]`)+
		route("nothing", `
hostnames: [nothing.example]
rules:
- backendRefs: [{name: one, port: 80}]`),
		pods("one", 1), pods("two", 1))
	w.check(t, []row{
		{"the prefix itself", get("prefix.example/v2"), "one"},
		{"with a slash", get("prefix.example/v2/"), "one"},
		{"with a query", get("prefix.example/v2?x=/y"), "one"},
		{"one segment more", get("prefix.example/v2/x"), "one"},
		{"several segments more", get("prefix.example/v2/x/y/z"), "one"},
		{"within a segment", get("prefix.example/v2example"), "404"},
		{"a shorter path", get("prefix.example/v"), "404"},
		{"the root", get("prefix.example/"), "404"},
		{"another case", get("prefix.example/V2"), "404"},
		{"not at the beginning", get("prefix.example/a/v2"), "404"},
		{"in the query only", get("prefix.example/?/v2"), "404"},
		{"a trailing slash in the value is ignored", get("prefix.example/trail"), "two"},
		{"a trailing slash in the value and the path", get("prefix.example/trail/"), "two"},
		{"a trailing slash in the value, one segment more", get("prefix.example/trail/x"), "two"},
		{"a trailing slash in the value, within a segment", get("prefix.example/trailer"), "404"},
		{"the longer prefix wins", get("prefix.example/v2/deep/er/x"), "two"},
		{"what the longer prefix does not take goes to the shorter", get("prefix.example/v2/deep/erx"), "one"},
		{"special characters are literal", get("prefix.example/s;a,b=c/(d)'$&!*+:@~/x"), "one"},
		{"the prefix / takes everything", get("root.example/any/thing"), "one"},
		{"the prefix / takes the root", get("root.example/"), "one"},
		{"no match is the prefix /", get("nothing.example/any/thing"), "one"},
	})
}

func TestAnExactPathMatchesNothingElse(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("exact", `
hostnames: [exact.example]
rules:
- matches: [{path: {type: Exact, value: /a/b}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: Exact, value: /slash/}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: Exact, value: /}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: Exact, value: /p%20q}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: PathPrefix, value: /both}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: Exact, value: /both}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: Exact, value: /both/}}]
  backendRefs: [{name: three, port: 80}]`), pods("one", 1), pods("two", 1), pods("three", 1))
	w.check(t, []row{
		{"the path", get("exact.example/a/b"), "one"},
		{"with a query", get("exact.example/a/b?c"), "one"},
		{"with a slash", get("exact.example/a/b/"), "404"},
		{"one segment more", get("exact.example/a/b/c"), "404"},
		{"a longer segment", get("exact.example/a/bc"), "404"},
		{"a shorter path", get("exact.example/a"), "404"},
		{"another case", get("exact.example/A/b"), "404"},
		{"a trailing slash counts", get("exact.example/slash/"), "one"},
		{"without the trailing slash", get("exact.example/slash"), "404"},
		{"the root", get("exact.example/"), "two"},
		{"a percent-encoded character as it is written", get("exact.example/p%20q"), "two"},
		{"exact goes before the equal prefix", get("exact.example/both"), "two"},
		{"an exact path with a slash before the prefix without one", get("exact.example/both/"), "three"},
		{"beside them the prefix", get("exact.example/both/x"), "one"},
	})
}

func TestAnExpressionMatchesTheWholePath(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("regex", `
hostnames: [regex.example]
rules:
- matches: [{path: {type: RegularExpression, value: "/r/[0-9]+"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "/p|/q/.*"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "^/anchored$"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "(?i)/case"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "/(a|b)/(?:c|d)?/[^/]*;'\"{}#%"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: '/files/.*\.(png|jpe?g)'}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: PathPrefix, value: /files}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: Exact, value: /files/x.png}}]
  backendRefs: [{name: three, port: 80}]
- matches: [{path: {type: PathPrefix, value: /files/private}}]
  backendRefs: [{name: three, port: 80}]`)+
		route("order", `
hostnames: [order.example]
rules:
- matches: [{path: {type: RegularExpression, value: "/o/.*"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "/o/[a-z]+x*"}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {type: RegularExpression, value: ".*/anywhere"}}]
  backendRefs: [{name: three, port: 80}]`), pods("one", 1), pods("two", 1), pods("three", 1))
	w.check(t, []row{
		{"it matches", get("regex.example/r/12"), "one"},
		{"not beyond its end", get("regex.example/r/12x"), "404"},
		{"not before its beginning", get("regex.example/x/r/12"), "404"},
		{"not the query", get("regex.example/r/12?x"), "one"},
		{"not with the query's help", get("regex.example/r/?12"), "404"},
		{"every alternative is whole: the first", get("regex.example/p"), "one"},
		{"every alternative is whole: the first and more", get("regex.example/px"), "404"},
		{"every alternative is whole: the second", get("regex.example/q/x/y"), "one"},
		{"anchors may stand there", get("regex.example/anchored"), "one"},
		{"flags", get("regex.example/CaSe"), "one"},
		{"characters that mean something to HAProxy", get("regex.example/a/c/x;'\"{}#%"), "400"},
		{"a dot that is escaped", get("regex.example/files/a/b.jpeg"), "two"},
		{"a dot that is not there", get("regex.example/files/a/bxjpeg"), "one"},
		{"before the prefix of its literal beginning", get("regex.example/files/b.png"), "two"},
		{"behind an exact path", get("regex.example/files/x.png"), "three"},
		{"behind a prefix longer than its literal beginning", get("regex.example/files/private/x.png"), "three"},
		{"the longer of two", get("order.example/o/abx"), "two"},
		{"the shorter where the longer does not match", get("order.example/o/1"), "one"},
		{"without a literal beginning", get("order.example/some/anywhere"), "three"},
	})
}
