package behaviour

// Field reports, section D: cookies.

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestB29EverySubsetOfASessionsFieldsIsServedOrRefused: whichever fields are missing, a rule either keeps sessions, from its
// first answer on, or is refused with the field's name, alone.
func TestB29EverySubsetOfASessionsFieldsIsServedOrRefused(t *testing.T) {
	t.Parallel()
	type subset struct {
		name, fields string
		valid        bool
	}
	var all []subset
	for _, kind := range []string{"", "type: Cookie", "type: Header"} {
		for _, timeout := range []string{"", "absoluteTimeout: 1h"} {
			for _, cookie := range []string{"", "cookie: {}", "cookie: {name: c}", "cookie: {path: /p}", "cookie: {lifetimeType: Session}", "cookie: {lifetimeType: Permanent}"} {
				for _, header := range []string{"", "header: {}", "header: {name: X-Session}"} {
					var fields []string
					for _, field := range []string{kind, timeout, cookie, header} {
						if field != "" {
							fields = append(fields, field)
						}
					}
					isOld := cookie == "" && header == "" // v1.1 to v1.6 demanded neither
					valid := header == "" && (timeout != "" || !strings.Contains(cookie, "Permanent"))
					if kind == "type: Header" {
						valid = isOld || cookie == "" && strings.Contains(header, "name")
					}
					all = append(all, subset{fmt.Sprintf("s%d", len(all)), "{" + strings.Join(fields, ", ") + "}", valid})
				}
			}
		}
	}
	manifests := gateway + route("good", "rules:\n- backendRefs: [{name: one, port: 80}]")
	for _, s := range all {
		manifests += route(s.name, "rules:\n"+sticky("/"+s.name, "one", s.fields))
	}
	w := Run(t, manifests, pods("one", 2))
	for _, s := range all {
		first := w.ask(t, get("x.example/"+s.name))
		accepted := w.condition(t, "HTTPRoute default/"+s.name, "Accepted")
		given := len(first.given()) == 1 || first.header.Get("X-Session") != ""
		for name := range first.header {
			given = given || strings.HasPrefix(name, "Limpet-") // a header's generated name
		}
		switch {
		case s.valid && (accepted.Status != "True" || first.outcome() != "one" || !given):
			t.Errorf("%s is %s (%s), answered with %s, a token: %t", s.fields, accepted.Reason, accepted.Message, first.outcome(), given)
		case !s.valid && (accepted.Status != "False" || !strings.Contains(accepted.Message, "sessionPersistence") || first.outcome() != "500" || given):
			t.Errorf("%s is %s (%s), answered with %s, a token: %t", s.fields, accepted.Reason, accepted.Message, first.outcome(), given)
		}
	}
	if got := w.ask(t, get("x.example/")).outcome(); got != "one" {
		t.Errorf("the good route: %s", got)
	}
}

// TestB30WhatIsAcceptedIsDone: each thing that a rule can ask for is either seen to happen, or refused by name, with 500
// for what the rule matches.
func TestB30WhatIsAcceptedIsDone(t *testing.T) {
	t.Parallel()
	filter := func(kind, field, spec string) string {
		return "filters: [{type: " + kind + ", " + field + ": " + spec + "}]"
	}
	w := Run(t, gateway, pods("one", 2), pods("other", 1), pods("slow", 1), pods("fails", 2))
	w.pod("slow-1").wait.Store(int64(1500 * time.Millisecond))
	arrived := func(service string) (n int64) {
		for _, p := range w.service(service).pods {
			n += p.requests.Load()
		}
		return n
	}
	cases := []struct {
		name, spec, backend string
		headers             []string
		// done looks at an answer for what was asked for.
		done func(answer) bool
	}{
		{"request-headers", filter("RequestHeaderModifier", "requestHeaderModifier", "{set: [{name: X-Did, value: it}]}"), "one", nil, func(a answer) bool { return a.echo.Header.Get("X-Did") == "it" }},
		{"response-headers", filter("ResponseHeaderModifier", "responseHeaderModifier", "{set: [{name: X-Did, value: it}]}"), "one", nil, func(a answer) bool { return a.header.Get("X-Did") == "it" }},
		{"redirect", filter("RequestRedirect", "requestRedirect", "{hostname: y.example}"), "", nil, func(a answer) bool { return a.header.Get("Location") == "http://y.example/redirect" }},
		{"rewrite", filter("URLRewrite", "urlRewrite", "{hostname: y.example, path: {type: ReplaceFullPath, replaceFullPath: /new}}"), "one", nil, func(a answer) bool { return a.echo.URI == "/new" && a.echo.Host == "y.example" }},
		{"cors", filter("CORS", "cors", "{allowOrigins: [\"https://y.example\"]}"), "one", []string{"Origin: https://y.example"}, func(a answer) bool { return a.header.Get("Access-Control-Allow-Origin") == "https://y.example" }},
		{"mirror", filter("RequestMirror", "requestMirror", "{backendRef: {name: other, port: 80}}"), "one", nil, func(answer) bool {
			for range 50 {
				if arrived("other") > 0 {
					return true
				}
				time.Sleep(20 * time.Millisecond)
			}
			return false
		}},
		{"extension", filter("ExtensionRef", "extensionRef", "{group: x.example, kind: Thing, name: thing}"), "one", nil, func(answer) bool { return false }},
		{"auth", filter("ExternalAuth", "externalAuth", "{protocol: HTTP, backendRef: {name: other, port: 80}}"), "one", nil, func(answer) bool { return false }},
		{"request-timeout", "timeouts: {request: 500ms}", "slow", nil, func(a answer) bool { return a.status == http.StatusGatewayTimeout }},
		{"backend-timeout", "timeouts: {backendRequest: 500ms}", "slow", nil, func(a answer) bool { return a.status == http.StatusGatewayTimeout }},
		{"retry", "retry: {codes: [503], attempts: 1}", "fails", []string{"X-Reply-Status: 503"}, func(answer) bool { return arrived("fails") == 2 }},
		{"cookie", "sessionPersistence: {cookie: {name: c}}", "one", nil, func(a answer) bool { return len(a.given()) == 1 }},
		{"header", "sessionPersistence: {type: Header, header: {name: X-Session}}", "one", nil, func(a answer) bool { return a.header.Get("X-Session") != "" }},
	}
	manifests := gateway
	for _, c := range cases {
		rule := "rules:\n- matches: [{path: {value: /" + c.name + "}}]\n  " + c.spec
		if c.backend != "" {
			rule += "\n  backendRefs: [{name: " + c.backend + ", port: 80}]"
		}
		manifests += route(c.name, rule)
	}
	w.Apply(t, manifests)
	for _, c := range cases {
		a := w.ask(t, get("x.example/"+c.name, c.headers...))
		got := w.condition(t, "HTTPRoute default/"+c.name, "Accepted")
		field, _, _ := strings.Cut(strings.TrimPrefix(c.spec, "filters: [{type: "), ":")
		field, _, _ = strings.Cut(field, ",")
		switch done := c.done(a); {
		case got.Status == "True" && !done:
			t.Errorf("%s is accepted, and not done: %s %v", c.name, a.outcome(), a.header)
		case got.Status != "True" && (a.outcome() != "500" || !strings.Contains(got.Message, field)):
			t.Errorf("%s is refused as %s (%s), and answered with %s", c.name, got.Reason, got.Message, a.outcome())
		}
	}
}

// TestB32APathIsNeverMadeOfAMatch: whatever a rule matches, its cookie is for "/" unless it says otherwise.
func TestB32APathIsNeverMadeOfAMatch(t *testing.T) {
	t.Parallel()
	matches := map[string]string{
		"/re/a1":      `{type: RegularExpression, value: "/re/[a-z]+[0-9]*"}`,
		"/alt/b":      `{type: RegularExpression, value: "/alt/(a|b)"}`,
		"/begin/x":    `{type: RegularExpression, value: "^/begin/.*$"}`,
		"/exact":      `{type: Exact, value: /exact}`,
		"/prefix/x/y": `{type: PathPrefix, value: /prefix/x/}`,
	}
	manifests := gateway
	for path, match := range matches {
		name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
		manifests += route(name, "rules:\n- matches: [{path: "+match+"}]\n  backendRefs: [{name: one, port: 80}]\n  sessionPersistence: {cookie: {name: "+name+"}}") +
			route(name+"-path", "hostnames: [path.example]\nrules:\n- matches: [{path: "+match+"}]\n  backendRefs: [{name: one, port: 80}]\n  sessionPersistence: {cookie: {name: "+name+", path: /p}}")
	}
	w := Run(t, manifests, pods("one", 3))
	for path := range matches {
		for host, want := range map[string]string{"x.example": "Path=/", "path.example": "Path=/p"} {
			line := w.ok(t, get(host+path)).cookieLine(t)
			if strings.Count(line, "Path=") != 1 || !strings.Contains(line, "; "+want+"; ") {
				t.Errorf("%s%s: %s, want %s", host, path, line, want)
			}
		}
	}
}

// TestB28BehindAnEdgeThatRewritesPathsASessionHolds: what the browser asks for and what arrives have different paths, and
// the browser asks for an icon besides. There is one cookie, and nothing replaces it.
func TestB28BehindAnEdgeThatRewritesPathsASessionHolds(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/app", "one", "{cookie: {name: c}}")+sticky("/favicon.ico", "one", "{cookie: {name: icon}}")), pods("one", 5))
	v := w.visitor("x.example")
	first := v.ok(t, "/app/x")
	given := v.cookies("/outside/app/x")
	for range 5 {
		v.ok(t, "/favicon.ico")
		// The edge serves /outside/app, and asks us for /app.
		a := w.ok(t, get("x.example/app/y", "Cookie: "+v.cookies("/outside/app/y")))
		if a.echo.Pod != first || !a.keeps() {
			t.Errorf("%s, want %s; given %q", a.echo.Pod, first, a.header.Values("Set-Cookie"))
		}
	}
	if now := v.cookies("/outside/app/x"); !strings.Contains(now, given) {
		t.Errorf("the browser had %q and has %q", given, now)
	}
}

// TestB37AHeadersTokenIsNeverTheClients: whatever a client makes up is answered, with a token of ours that then holds.
func TestB37AHeadersTokenIsNeverTheClients(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{type: Header, header: {name: processId}}")), pods("one", 4))
	for _, chosen := range []string{"4711", "order-1", "", " ", "1a", "1a.....", "\"quoted\"", strings.Repeat("x", 8000), "one-1", "1", "a,b", "ü"} {
		reached := map[string]bool{}
		for range 8 {
			a := w.ok(t, get("x.example/", "processId: "+chosen))
			token := a.header.Get("processId")
			if token == "" || token == chosen {
				t.Fatalf("a client that chose %.20q is given %q", chosen, token)
			}
			if len(a.seen("processId")) > 1 || chosen != "" && chosen != " " && a.echo.Header.Get("processId") != chosen {
				t.Errorf("the pod sees %.40q, the client chose %.20q", a.seen("processId"), chosen)
			}
			reached[a.echo.Pod] = true
			for range 2 {
				if again := w.ok(t, get("x.example/", "processId: "+token)); again.echo.Pod != a.echo.Pod || again.header.Get("processId") != "" {
					t.Errorf("the token given for %.20q is of %s, and led to %s", chosen, a.echo.Pod, again.echo.Pod)
				}
			}
		}
		if len(reached) < 2 {
			t.Errorf("%.20q is a name for one endpoint: %v", chosen, reached)
		}
	}
}
