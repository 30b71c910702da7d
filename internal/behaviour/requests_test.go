package behaviour

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestB11WhatMatchingSeesAndWhatTheBackendGets: a path is matched and passed on as it was sent, byte for byte; nothing is
// decoded, merged or removed on the way.
func TestB11WhatMatchingSeesAndWhatTheBackendGets(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("paths", `
hostnames: [x.example]
rules:
- backendRefs: [{name: root, port: 80}]
- matches: [{path: {value: /api}}]
  backendRefs: [{name: api, port: 80}]
- matches: [{path: {value: /api/private}}]
  backendRefs: [{name: private, port: 80}]
- matches: [{path: {type: Exact, value: /exact}}]
  backendRefs: [{name: exact, port: 80}]
- matches: [{path: {type: RegularExpression, value: "/cond/.*"}}]
  backendRefs: [{name: cond, port: 80}]`), pods("root", 1), pods("api", 1), pods("private", 1), pods("exact", 1), pods("cond", 1))
	for _, c := range []struct{ target, want string }{
		{"/api/commits/a%2Fb/statuses", "api"},
		{"/api/commits/a%2fb/statuses?x=a%2Fb", "api"},
		{"/api%2Fprivate", "root"},
		{"/api/%70rivate", "api"},
		{"/%61pi", "root"},
		{"//api", "root"},
		{"/api//private", "api"},
		{"//", "root"},
		{"/./api", "root"},
		{"/../api", "root"},
		{"/api/./private", "api"},
		{"/api/../private", "api"},
		{"/api/..", "api"},
		{"/x/../api/private", "root"},
		{"/api;jsessionid=1", "root"},
		{"/api/x;jsessionid=1?y", "api"},
		{"/exact;v=1", "root"},
		{"/exact%3Fq", "root"},
		{"/exact?q", "exact"},
		{"/exact?", "exact"},
		{"/exact?/api", "exact"},
		{"/api/private%3Fx", "api"},
		{"/api/a%00b", "api"},
		{"/api/%0d%0aX:y", "api"},
		{"/api/a|b^c`d{e}\\f\"<>", "api"},
		{"/cond/a%2Fb//c/../d;e?f=%2F", "cond"},
		{"*", "root"},
	} {
		method := "GET"
		if c.target == "*" {
			method = "OPTIONS"
		}
		a := w.ask(t, request{method: method, host: "x.example", target: c.target})
		if got := a.outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", c.target, got, c.want)
		} else if a.status == 200 && a.echo.URI != c.target {
			t.Errorf("%s reached the pod as %s", c.target, a.echo.URI)
		}
	}
	for name, raw := range map[string]string{
		"raw UTF-8":           "GET /ü HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n",
		"a control character": "GET /a\x01 HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n",
		"the end mark of an exact path, encoded by nobody": "GET /exact/\x01 HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n",
		"a blank":    "GET /a b HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n",
		"a fragment": "GET /a#b HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n",
	} {
		if got := w.ask(t, request{raw: raw}).outcome(); got != "400" {
			t.Errorf("%s: %s, want 400", name, got)
		}
	}
	// The path /exact with the end mark encoded is another path.
	if got := w.ask(t, get("x.example/exact/%01")).outcome(); got != "root" {
		t.Errorf("/exact/%%01: %s, want root", got)
	}
}

func TestARequestPassesAsItIs(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 1))
	r := get("x.example/p?q", "Accept: a/b", "X-Twice: 1", "X-Twice: 2", "X-Empty:", "Cookie: a=b; c=d", "X-Odd: é \"%[env(HOME)]\"", "Te: trailers")
	r.method, r.body = "PUT", strings.Repeat("body ", 10_000)
	a := w.ok(t, r)
	if a.echo.Method != "PUT" || a.echo.URI != "/p?q" || a.echo.Host != "x.example" || a.echo.Body != r.body {
		t.Errorf("%s %s of %s with %d bytes", a.echo.Method, a.echo.URI, a.echo.Host, len(a.echo.Body))
	}
	for name, want := range map[string]string{
		"Accept": "a/b", "X-Twice": "1|2", "X-Empty": "", "Cookie": "a=b; c=d", "X-Odd": "é \"%[env(HOME)]\"",
	} {
		if got := strings.Join(a.seen(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	a = w.ok(t, get("x.example/", "X-Reply: X-A: 1", "X-Reply: X-A: 2", "X-Reply: Cache-Control: max-age=60", "X-Reply: Set-Cookie: app=1; Path=/"))
	if got := a.header.Values("X-A"); strings.Join(got, "|") != "1|2" || a.header.Get("Cache-Control") != "max-age=60" || a.header.Get("Set-Cookie") != "app=1; Path=/" {
		t.Errorf("the answer's head: %v", a.header)
	}
	for _, status := range []string{"201", "204", "304", "404", "500", "503"} {
		a := w.ask(t, get("x.example/", "X-Reply-Status: "+status))
		if a.outcome() != status || a.header.Get("Pod") != "one-1" {
			t.Errorf("a pod's %s arrives as %s from %q", status, a.outcome(), a.header.Get("Pod"))
		}
	}
}

func TestSeveralRequestsOnOneConnectionAreRoutedEachOnItsOwn(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+
		route("one", "hostnames: [one.example]\nrules:\n- matches: [{path: {value: /}}]\n  backendRefs: [{name: one, port: 80}]")+
		route("two", `
hostnames: [two.example]
rules:
- matches: [{path: {value: /}}, {path: {value: /c}, headers: [{name: a, value: "1"}]}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Two, value: "yes"}]}}]
  backendRefs: [{name: two, port: 80}]
  sessionPersistence: {type: Cookie, cookie: {name: two}}`), pods("one", 1), pods("two", 2))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.at(80))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	from := bufio.NewReader(conn)
	for i, c := range []struct{ host, path, want string }{
		{"one.example", "/", "one"}, {"two.example", "/", "two"}, {"one.example", "/", "one"}, {"none.example", "/", "404"},
		{"two.example", "/c", "two"}, {"one.example", "/x", "one"},
	} {
		if _, err := io.WriteString(conn, "GET "+c.path+" HTTP/1.1\r\nHost: "+c.host+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		a := read(from, "GET")
		if a.outcome() != c.want {
			t.Fatalf("request %d to %s: %s, want %s", i+1, c.host, a.outcome(), c.want)
		}
		// Nothing of one request clings to the next.
		if two := c.want == "two"; two != (a.header.Get("Set-Cookie") != "") || two != (a.echo.Header.Get("X-Two") != "") {
			t.Errorf("request %d to %s: Set-Cookie %q, X-Two %q", i+1, c.host, a.header.Get("Set-Cookie"), a.echo.Header.Get("X-Two"))
		}
	}
}

func TestASlowAnswerArrives(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{cookie: {}}")), pods("one", 1))
	w.pod("one-1").wait.Store(int64(2500 * time.Millisecond))
	if a := w.ok(t, get("x.example/")); a.took < 2500*time.Millisecond {
		t.Errorf("it took %s", a.took)
	}
}
