package behaviour

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNoRequestHoldsHAProxy: as much as a request can hold, of whatever is awkward to take apart, in every place that rules
// or Lua look at. Each is answered soon, and HAProxy is the process that it was.
func TestNoRequestHoldsHAProxy(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("all", "hostnames: [x.example]\nrules:\n"+
		sticky("/cookie", "one", "{cookie: {name: c}}")+
		sticky("/header", "one", "{type: Header, header: {name: X-Session}}")+`
- matches: [{path: {value: /query}, queryParams: [{name: q, value: x}, {name: r, type: RegularExpression, value: "(a|b)*c"}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /match}, headers: [{name: X-A, value: "a,a"}, {name: X-B, type: RegularExpression, value: "(a|b)*c"}]}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {type: RegularExpression, value: "/path/([a-z]+/)*x"}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /moved}}]
  filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
- backendRefs: [{name: one, port: 80}]
`) + route("wild", "hostnames: [\"*.a.a.a.a.a.a.a.a.a.example\"]\nrules:\n- backendRefs: [{name: one, port: 80}]")
	const room = 12_000
	fill := func(piece string) string { return strings.Repeat(piece, room/len(piece)) }
	places := map[string]func(string) request{
		"cookie":         func(s string) request { return get("x.example/cookie", "Cookie: a=b;"+s+"x") },
		"a cookie's end": func(s string) request { return get("x.example/cookie", "Cookie: c=x"+s+"y") },
		"session header": func(s string) request { return get("x.example/header", "X-Session: x"+s+"y") },
		"header":         func(s string) request { return get("x.example/match", "X-A: a", "X-A: x"+s, "X-B: a"+s+"y") },
		"query":          func(s string) request { return get("x.example/query?q=x&r=" + strings.ReplaceAll(s, " ", "+")) },
		"path":           func(s string) request { return get("x.example/path/" + strings.ReplaceAll(s, " ", "+")) },
		"moved path":     func(s string) request { return get("x.example/moved/" + strings.ReplaceAll(s, " ", "+")) },
		"host": func(s string) request {
			return request{host: "a" + strings.ReplaceAll(s, " ", "a") + ".example", target: "/"}
		},
	}
	check := func(t *testing.T, w *World) {
		t.Helper()
		before := w.processes(t)
		for place, build := range places {
			for _, piece := range []string{
				" ", "a", "=", ";", ",", ".", "%", "%61", "&", "+", "/", "|", "~", "-", "a=;", " =", "= ", " ;", "; ", "c=;", "c=1a.;", "c=1a.b.c.1.2.aaaaaaaaaaaaaaaaaaaaaa; ", "1a.", "1a..",
				"a.", "a ", "ab", "&a", "a&", "%61=&", "a/", "//", "/.", `"`, `\`, `'`, "1", "-1", "\xc3\xa9",
			} {
				r := build(fill(piece))
				r.patience = 30 * time.Second
				// What HTTP forbids is refused by HAProxy itself.
				if a := w.ask(t, r); a.err != nil || a.took > 5*time.Second {
					t.Fatalf("%q in the %s: %v after %s", piece, place, a.outcome(), a.took)
				}
			}
		}
		for i := range 3 {
			if a := w.ask(t, get("x.example/cookie", fmt.Sprintf("Cookie: %s", strings.Repeat("c=x; ", i)))); a.outcome() != "one" {
				t.Errorf("afterwards: %s", a.outcome())
			}
		}
		if after := w.processes(t); after.worker != before.worker || after.master != before.master {
			t.Errorf("HAProxy was %+v, and is %+v", before, after)
		}
	}
	t.Run("names that are literal", func(t *testing.T) {
		t.Parallel()
		check(t, Run(t, manifests, pods("one", 2)))
	})
	t.Run("names from maps", func(t *testing.T) {
		t.Parallel()
		w := Run(t, gateway, pods("one", 2))
		w.Apply(t, manifests)
		check(t, w)
	})
}
