package behaviour

import (
	"net/http"
	"strings"
	"testing"
)

func TestAHeaderMatchComparesNamesWithoutAndValuesWithCase(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("headers", `
hostnames: [exact.example]
rules:
- matches: [{headers: [{name: X-Colour, value: red}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{headers: [{name: X-Colour, value: green}, {name: x-size, value: "10"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: X-First, value: a}, {name: x-first, value: b}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: X-List, value: "a,b"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: X-Odd, value: "a \"b\" 'c' ; # %[env(HOME)] ${HOME} = ~ { }"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: "x!#$%&'*+-.^_|~1", value: "odd name"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: Host, value: exact.example}], path: {value: /host}}]
  backendRefs: [{name: two, port: 80}]`)+
		route("regex", `
hostnames: [regex.example]
rules:
- matches: [{headers: [{name: X-Colour, type: RegularExpression, value: "re[ed]|blue"}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{headers: [{name: User-Agent, type: RegularExpression, value: ".*Firefox/\\d+;.*"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: X-List, type: RegularExpression, value: "(.*,)? ?b(,.*)?"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{headers: [{name: X-Any, type: RegularExpression, value: ".*"}]}]
  backendRefs: [{name: two, port: 80}]`), pods("one", 1), pods("two", 1))
	w.check(t, []row{
		{"the value", get("exact.example/", "X-Colour: red"), "one"},
		{"the name in another case", get("exact.example/", "x-cOLOUR: red"), "one"},
		{"blanks around the value", get("exact.example/", "X-Colour:   red  "), "one"},
		{"the value in another case", get("exact.example/", "X-Colour: Red"), "404"},
		{"a longer value", get("exact.example/", "X-Colour: redder"), "404"},
		{"no value", get("exact.example/", "X-Colour:"), "404"},
		{"no header", get("exact.example/"), "404"},
		{"the value in another header", get("exact.example/", "X-Color: red"), "404"},
		{"one of two headers", get("exact.example/", "X-Colour: green"), "404"},
		{"both headers", get("exact.example/", "X-Size: 10", "X-Colour: green"), "two"},
		{"of equivalent names in a match the first counts", get("exact.example/", "X-First: a"), "two"},
		{"of equivalent names in a match the second does not", get("exact.example/", "X-First: b"), "404"},
		{"a repeated header is one with its values joined", get("exact.example/", "X-List: a", "X-List: b"), "two"},
		{"a list in one header", get("exact.example/", "X-List: a,b"), "two"},
		{"a repeated header in another order", get("exact.example/", "X-List: b", "X-List: a"), "404"},
		{"a repeated header is not its last value", get("exact.example/", "X-Colour: blue", "X-Colour: red"), "404"},
		{"nor its first", get("exact.example/", "X-Colour: red", "X-Colour: blue"), "404"},
		{"values that mean something to HAProxy", get("exact.example/", `X-Odd: a "b" 'c' ; # %[env(HOME)] ${HOME} = ~ { }`), "two"},
		{"a name of every kind of character", get("exact.example/", "X!#$%&'*+-.^_|~1: odd name"), "two"},
		{"Host is a header", get("exact.example/host"), "two"},
		{"an expression", get("regex.example/", "X-Colour: red"), "one"},
		{"its other alternative", get("regex.example/", "X-Colour: blue"), "one"},
		{"an expression matches the whole value", get("regex.example/", "X-Colour: reddish"), "404"},
		{"an expression of the longer kind", get("regex.example/", "User-Agent: Mozilla Firefox/99; en"), "two"},
		{"an expression on a repeated header", get("regex.example/", "X-List: a", "X-List: b"), "two"},
		{"an expression that takes nothing too, on an empty value", get("regex.example/", "X-Any:"), "two"},
		{"an expression that takes nothing too, without the header", get("regex.example/"), "404"},
	})
}

func TestAQueryMatchComparesDecodedValues(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("query", `
hostnames: [exact.example]
rules:
- matches: [{queryParams: [{name: q, value: v}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{queryParams: [{name: q, value: v}, {name: r, value: w}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{queryParams: [{name: text, value: "a b&c=d;e"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{queryParams: [{name: word, value: "grüße 'x' \"y\" #z"}]}]
  backendRefs: [{name: two, port: 80}]
- matches: [{queryParams: [{name: "n!#$%&'*+-.^_|~1", value: odd}]}]
  backendRefs: [{name: two, port: 80}]`)+
		route("regex", `
hostnames: [regex.example]
rules:
- matches: [{queryParams: [{name: q, type: RegularExpression, value: "[a-c]+ ?"}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{queryParams: [{name: any, type: RegularExpression, value: ".*"}]}]
  backendRefs: [{name: two, port: 80}]`), pods("one", 1), pods("two", 1))
	w.check(t, []row{
		{"the value", get("exact.example/?q=v"), "one"},
		{"among others", get("exact.example/p?a=b&q=v&c=d"), "one"},
		{"the name in another case", get("exact.example/?Q=v"), "404"},
		{"the value in another case", get("exact.example/?q=V"), "404"},
		{"a longer value", get("exact.example/?q=vv"), "404"},
		{"a longer name", get("exact.example/?qq=v"), "404"},
		{"the end of a longer name", get("exact.example/?xq=v"), "404"},
		{"no value", get("exact.example/?q"), "404"},
		{"an empty value", get("exact.example/?q="), "404"},
		{"no query", get("exact.example/"), "404"},
		{"in the path", get("exact.example/q=v"), "404"},
		{"behind a second question mark", get("exact.example/?x?q=v"), "404"},
		{"of a repeated one the first counts", get("exact.example/?q=v&q=x"), "one"},
		{"of a repeated one the second does not", get("exact.example/?q=x&q=v"), "404"},
		{"two parameters in either order", get("exact.example/?r=w&q=v"), "two"},
		{"percent-encoded", get("exact.example/?q=%76"), "one"},
		{"percent-encoded separators", get("exact.example/?text=a%20b%26c%3Dd%3Be"), "two"},
		{"a plus is a blank", get("exact.example/?text=a+b%26c%3Dd%3be"), "two"},
		{"a semicolon and an equals sign belong to the value", get("exact.example/?text=a+b%26c=d;e"), "two"},
		{"UTF-8, percent-encoded", get("exact.example/?word=gr%C3%BC%C3%9Fe+'x'+%22y%22+%23z"), "two"},
		{"a name of every kind of character", get("exact.example/?n!%23$%25%26'*%2B-.^_|~1=odd"), "two"},
		{"a name that is encoded", get("exact.example/?%71=v"), "one"},
		{"what is no encoding is literal", get("exact.example/?%q=v&%=&%7=&q=v"), "one"},
		{"an expression", get("regex.example/?q=abc"), "one"},
		{"an expression on the decoded value", get("regex.example/?q=ab%63+"), "one"},
		{"an expression matches the whole value", get("regex.example/?q=abcd"), "404"},
		{"an expression on an empty value", get("regex.example/?any="), "two"},
		{"an expression on a parameter without a value", get("regex.example/?any"), "two"},
		{"an expression without the parameter", get("regex.example/?many=1"), "404"},
	})
}

func TestAMethodMatchComparesWithCase(t *testing.T) {
	t.Parallel()
	var rules strings.Builder
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"}
	for _, method := range methods {
		rules.WriteString("- matches: [{path: {value: /" + method + "}, method: " + method + "}]\n  backendRefs: [{name: one, port: 80}]\n")
	}
	w := Run(t, gateway+route("methods", "rules:\n"+rules.String()), pods("one", 1))
	for _, method := range methods {
		for _, sent := range append([]string{strings.ToLower(method)}, methods...) {
			want := 404
			if sent == method {
				want = 200
			}
			if got := w.ask(t, request{method: sent, host: "x.example", target: "/" + method}); got.status != want {
				t.Errorf("%s where %s is asked for: %s, want %d", sent, method, got.outcome(), want)
			}
		}
	}
}

func TestAMatchNeedsAllOfItsConditionsAndARuleOneOfItsMatches(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- matches:
  - {path: {value: /a}, method: POST, headers: [{name: x, value: "1"}], queryParams: [{name: q, value: "1"}]}
  - {path: {type: Exact, value: /b}, headers: [{name: x, value: "2"}]}
  backendRefs: [{name: one, port: 80}]`), pods("one", 1))
	post := func(r request) request { r.method = http.MethodPost; return r }
	w.check(t, []row{
		{"all", post(get("x.example/a/c?q=1", "X: 1")), "one"},
		{"all but the method", get("x.example/a?q=1", "X: 1"), "404"},
		{"all but the header", post(get("x.example/a?q=1")), "404"},
		{"all but the query", post(get("x.example/a", "X: 1")), "404"},
		{"all but the path", post(get("x.example/c?q=1", "X: 1")), "404"},
		{"the second match", get("x.example/b", "X: 2"), "one"},
		{"the one's path with the other's header", get("x.example/b", "X: 1"), "404"},
	})
}
