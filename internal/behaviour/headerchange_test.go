package behaviour

import (
	"fmt"
	"strings"
	"testing"
)

func TestARequestHeaderModifierSetsAddsAndRemoves(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- matches: [{path: {value: /set}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: new}, {name: x-SET, value: ignored}]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /add}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: X-Add, value: new}, {name: X-More, value: "1"}]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /remove}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x-remove, X-Absent]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /all}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: new}], add: [{name: X-Add, value: new}], remove: [X-Remove]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /ref}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: rule}, {name: X-Rule, value: rule}], add: [{name: X-Add, value: rule}]}}]
  backendRefs:
  - name: one
    port: 80
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: ref}], add: [{name: X-Add, value: ref}], remove: [X-Remove]}}]
- matches: [{path: {value: /host}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: "other.example:81"}]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /forwarded}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Forwarded-Proto, value: gopher}], remove: [X-Forwarded-For]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /session}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: new}]}}]
  backendRefs: [{name: one, port: 80}]
  sessionPersistence: {type: Cookie, cookie: {}}
- matches: [{path: {value: /every}}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: "x!#$%&'*+-.^_|~1", value: odd}]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /matched}, headers: [{name: X-Set, value: old}]}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: new}]}}]
  backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /}}]
  backendRefs: [{name: one, port: 80}]`), pods("one", 1))
	for _, c := range []struct{ path, want string }{
		// What reaches the pod of: X-Set: old (twice), X-Add: old, X-Remove: old (twice).
		{"set", "Set=new Add=old Remove=old|old"},
		{"add", "Set=old|old Add=old|new Remove=old|old"},
		{"remove", "Set=old|old Add=old Remove="},
		{"all", "Set=new Add=old|new Remove="},
		{"ref", "Set=ref Add=old|rule|ref Remove="},
		{"session", "Set=new Add=old Remove=old|old"},
		{"matched", "Set=new Add=old Remove=old|old"},
		{"", "Set=old|old Add=old Remove=old|old"},
	} {
		headers := []string{"X-Set: old", "X-Set: old", "X-Add: old", "X-Remove: old", "X-Remove: old"}
		if c.path == "matched" {
			headers = headers[1:]
		}
		a := w.ok(t, get("x.example/"+c.path, headers...))
		seen := func(name string) string { return strings.Join(a.seen(name), "|") }
		if got := fmt.Sprintf("Set=%s Add=%s Remove=%s", seen("X-Set"), seen("X-Add"), seen("X-Remove")); got != c.want {
			t.Errorf("/%s: %s, want %s", c.path, got, c.want)
		}
	}
	if a := w.ok(t, get("x.example/set")); strings.Join(a.seen("X-Set"), "|") != "new" {
		t.Errorf("set where there was none: %q", a.seen("X-Set"))
	}
	if a := w.ok(t, get("x.example/host")); a.echo.Host != "other.example:81" {
		t.Errorf("Host is %s", a.echo.Host)
	}
	if a := w.ok(t, get("x.example/forwarded")); a.echo.Header.Get("X-Forwarded-Proto") != "gopher" || len(a.seen("X-Forwarded-For")) > 0 {
		t.Errorf("X-Forwarded-Proto %q and -For %q", a.seen("X-Forwarded-Proto"), a.seen("X-Forwarded-For"))
	}
	if a := w.ok(t, get("x.example/every")); a.echo.Header.Get("X!#$%&'*+-.^_|~1") != "odd" {
		t.Errorf("a name of every kind of character: %v", a.echo.Header)
	}
}

func TestAFilterOfABackendRefIsForItsShareAlone(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Rule, value: "all"}]}}]
  backendRefs:
  - {name: one, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Ref, value: one}]}}]}
  - {name: two, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Ref, value: two}]}}]}
  - {name: three, port: 80}
  sessionPersistence: {cookie: {}}`), pods("one", 1), pods("two", 1), pods("three", 1))
	reached := map[string]bool{}
	for range 60 {
		a := w.ok(t, get("x.example/", "X-Ref: sent"))
		want := a.echo.Service
		if want == "three" {
			want = "sent"
		}
		if got := strings.Join(a.seen("X-Ref"), "|"); got != want || a.echo.Header.Get("X-Rule") != "all" {
			t.Errorf("%s sees X-Ref %q and X-Rule %q", a.echo.Service, got, a.echo.Header.Get("X-Rule"))
		}
		reached[a.echo.Service] = true
	}
	if len(reached) != 3 {
		t.Errorf("60 requests reached %v", reached)
	}
}

// TestB15AHeaderValueIsLiteral: what would mean something in a file, on a socket or to Lua arrives as it was written, after
// a fresh start too.
func TestB15AHeaderValueIsLiteral(t *testing.T) {
	t.Parallel()
	values := []string{
		`frame-ancestors 'self' https://x`, `{"a":"b"}`, `a "b" c`, `a\`, `#x`, `%`, `${HOME}`, `%[env(HOME)]`, `$HOME`, `a;b`, `; http-request deny`,
		`-f /etc/passwd`, `--`, `<< payload`, `\n`, `\x0a`, `%0a`, `%%`, `'`, `"`, "`id`", `$(id)`, `a=b=c;`, `h1.1`, `]`, `}`, `[[x]]`, `{{ .X }}`,
		`str(x),map(y)`, `\1 \2`, `x,y`, `/* */`, `<script>`, `a||b`, `*`, `~`, `!`, `1`, `0x41`, `-`, `500`, `draw;x`, strings.Repeat("v", 4096),
		strings.Repeat(`"'\%#;`, 600),
	}
	var rule, ref strings.Builder
	for i, value := range values {
		// At most 16 in one filter.
		if i%16 == 0 {
			fmt.Fprintf(&rule, "\n- matches: [{path: {value: /rule%d}}]\n  backendRefs: [{name: one, port: 80}]\n  filters:\n  - type: RequestHeaderModifier\n    requestHeaderModifier:\n      set:", i/16)
			fmt.Fprintf(&ref, "\n- matches: [{path: {value: /ref%d}}]\n  backendRefs:\n  - name: one\n    port: 80\n    filters:\n    - type: RequestHeaderModifier\n      requestHeaderModifier:\n        add:", i/16)
		}
		fmt.Fprintf(&rule, "\n      - {name: X-%d, value: %s}", i, yamlText(value))
		fmt.Fprintf(&ref, "\n        - {name: X-%d, value: %s}", i, yamlText(value))
	}
	w := Run(t, gateway+route("rule", "rules:"+rule.String())+route("ref", "rules:"+ref.String()), pods("one", 1))
	check := func(t *testing.T) {
		t.Helper()
		for i := range (len(values) + 15) / 16 {
			for _, at := range []string{"rule", "ref"} {
				a := w.ok(t, get(fmt.Sprintf("x.example/%s%d", at, i)))
				for j := i * 16; j < min(len(values), i*16+16); j++ {
					if got := a.echo.Header.Get(fmt.Sprintf("X-%d", j)); got != values[j] {
						t.Errorf("%s: %.80q arrives as %.80q", at, values[j], got)
					}
				}
			}
		}
	}
	check(t)
	w.restart(t)
	check(t)
}

func TestB17AValueThatIsNotLegalIsRefusedAndNothingElseIs(t *testing.T) {
	t.Parallel()
	// Each rule is dropped alone: 500 for what it matches. The neighbour's stay.
	bad := map[string]string{
		"newline-in-a-header":      `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-A, value: "a\n    http-request deny"}]}}]`,
		"return-in-a-header":       `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-A, value: "a\rb"}]}}]`,
		"nul-in-a-header":          `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: X-A, value: "a\0b"}]}}]`,
		"newline-in-a-name":        `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: "X-A\nX-B", value: a}]}}]`,
		"colon-in-a-name":          `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: "X-A: b", value: a}]}}]`,
		"newline-in-a-removal":     `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: ["X-A\n"]}}]`,
		"too-long-a-header":        `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-A, value: "` + strings.Repeat("v", 5000) + `"}]}}]`,
		"framing":                  `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Transfer-Encoding, value: chunked}]}}]`,
		"length":                   `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Content-Length, value: "0"}]}}]`,
		"host-removed":             `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [Host]}}]`,
		"newline-in-a-cookie-name": `sessionPersistence: {type: Cookie, cookie: {name: "a\nb"}}`,
		"semicolon-in-a-cookie":    `sessionPersistence: {type: Cookie, cookie: {name: "a;b"}}`,
		"newline-in-a-cookie-path": `sessionPersistence: {type: Cookie, cookie: {path: "/a\nb"}}`,
		"semicolon-in-a-path":      `sessionPersistence: {type: Cookie, cookie: {path: "/a; Domain=x"}}`,
		"newline-in-a-token-name":  `sessionPersistence: {type: Header, header: {name: "a\r\nSet-Cookie"}}`,
		"absurd-timeout":           `sessionPersistence: {type: Cookie, absoluteTimeout: 99999h99999h99999h99999h, cookie: {}}`,
		"negative-timeout":         `sessionPersistence: {type: Cookie, absoluteTimeout: -1s, cookie: {}}`,
	}
	var routes strings.Builder
	for name, field := range bad {
		routes.WriteString(route(name, "rules:\n- matches: [{path: {value: /"+name+"}}]\n  backendRefs: [{name: one, port: 80}]\n  "+field))
	}
	routes.WriteString(route("newline-in-a-path", `rules: [{matches: [{path: {value: "/x\n    http-request deny"}}], backendRefs: [{name: two, port: 80}]}]`))
	routes.WriteString(route("newline-in-a-regex", `rules: [{matches: [{path: {type: RegularExpression, value: "/x\n"}}], backendRefs: [{name: two, port: 80}]}]`))
	routes.WriteString(route("newline-in-a-host", "hostnames: [\"a.example\\nb.example\"]\nrules: [{backendRefs: [{name: two, port: 80}]}]"))
	routes.WriteString(route("newline-in-a-match", `rules: [{matches: [{headers: [{name: a, value: "x\ny"}]}], backendRefs: [{name: two, port: 80}]}]`))
	routes.WriteString(route("newline-in-a-query", `rules: [{matches: [{queryParams: [{name: a, value: "x\ny"}]}], backendRefs: [{name: two, port: 80}]}]`))
	w := Run(t, gateway+route("good", "rules:\n- backendRefs: [{name: one, port: 80}]")+routes.String(), pods("one", 1), pods("two", 1))
	for name := range bad {
		if got := w.ask(t, get("x.example/"+name)).outcome(); got != "500" {
			t.Errorf("%s: %s, want 500", name, got)
		}
	}
	for _, r := range []request{get("x.example/"), get("x.example/x"), get("a.example/"), get("b.example/"), get("x.example/?a=x%0Ay")} {
		if got := w.ask(t, r).outcome(); got != "one" {
			t.Errorf("the good route at %s%s: %s, want one", r.host, r.target, got)
		}
	}
}
