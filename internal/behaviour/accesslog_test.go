package behaviour

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/accesslog"
)

// logged lets the World have an access log, and gives the lines of requests whose URI has a word in it.
func logged(form model.AccessLog) (option, *logLines) {
	lines := &logLines{}
	with := func(w *World) {
		w.limpet.options.accessLog = form
		log, err := accesslog.Listen(w.limpet.logSocket())
		if err != nil {
			w.t.Fatal(err)
		}
		go log.Copy(lines)
		w.t.Cleanup(func() { _ = log.Close() })
	}
	return with, lines
}

type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// has says whether there is a line with a word by now.
func (l *logLines) has(word string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), word)
}

// find waits for a line: it is written when the request is over, which its client may hear first.
func (l *logLines) find(t testing.TB, word string) string {
	t.Helper()
	for range 200 {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.Contains(line, word) {
				return line
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no line of the access log has %s", word)
	return ""
}

const loggedRules = `
hostnames: [shop.example]
rules:
- matches: [{path: {value: /plain}}]
  backendRefs: [{name: shop, port: 80}]
- name: checkout
  matches: [{path: {value: /cookie}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {absoluteTimeout: 2s, cookie: {name: c}}
- matches: [{path: {value: /header}}]
  backendRefs: [{name: shop, port: 80, weight: 1}, {name: shop, port: 80, weight: 0}]
  sessionPersistence: {type: Header, header: {name: X-Session}}
- matches: [{path: {value: /moved}}]
  filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
- matches: [{path: {value: /bad}}]
  backendRefs: [{name: nobody, port: 80}]
- matches: [{path: {value: /empty}}]
  backendRefs: [{name: empty, port: 80}]
`

// entry is what the tests look at of a line.
type entry struct {
	Route, Rule, Backend, Endpoint string
	Session, SessionWhy            string
	Status, ListenerPort           int
	Method, Host, URI, Client      string
	TotalMs                        int
}

func TestTheAccessLogSaysWhoAnsweredAndWhatBecameOfTheSession(t *testing.T) {
	t.Parallel()
	with, lines := logged(model.AccessLogJSON)
	w := Run(t, gateway+route("shop", loggedRules), with, pods("shop", 2), pods("empty", 0))
	number := 0
	look := func(path string, headers ...string) (entry, answer) {
		t.Helper()
		number++
		uri := path + "?n=" + strings.Repeat("x", number) + ";"
		a := w.ask(t, get("shop.example"+uri, headers...))
		var e entry
		line := lines.find(t, uri)
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Status != a.status || e.Method != "GET" || e.Host != "shop.example" || e.ListenerPort != 80 || e.Client == "" || e.TotalMs < 0 {
			t.Errorf("%s: %+v", path, e)
		}
		return e, a
	}
	named := func(e entry, rule, endpoint, session, why string) {
		t.Helper()
		want := entry{Route: "HTTPRoute default/shop", Rule: rule, Backend: "Service/default/shop/80", Endpoint: endpoint, Session: session, SessionWhy: why}
		got := entry{Route: e.Route, Rule: e.Rule, Backend: e.Backend, Endpoint: e.Endpoint, Session: e.Session, SessionWhy: e.SessionWhy}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	pod := func(a answer) string { return "pod default/" + a.echo.Pod }

	e, a := look("/plain")
	named(e, "0", pod(a), "none", "")
	e, a = look("/cookie")
	named(e, "1 (checkout)", pod(a), "new", "")
	cookie := "Cookie: a=b; c=" + a.given()[0].Value
	e, a = look("/cookie", cookie)
	named(e, "1 (checkout)", pod(a), "kept", "")
	e, a = look("/cookie", cookie+"x")
	named(e, "1 (checkout)", pod(a), "forged", "the token is not proven")
	_, a = look("/header")
	token := "X-Session: " + a.header.Get("X-Session")
	e, a = look("/header", token)
	named(e, "2", pod(a), "kept", "")
	if e, _ = look("/moved"); e.Status != 302 || e.Rule != "3" || e.Backend != "" || e.Endpoint != "" {
		t.Errorf("a redirect: %+v", e)
	}
	if e, _ = look("/bad"); e.Status != 500 || e.Rule != "4" || e.Backend != "" {
		t.Errorf("an invalid backendRef: %+v", e)
	}
	if e, _ = look("/empty"); e.Status != 503 || e.Rule != "5" || e.Backend != "Service/default/empty/80" || e.Endpoint != "" {
		t.Errorf("a Service without endpoints: %+v", e)
	}
	if e, _ = look("/nowhere"); e.Status != 404 || e.Route != "" || e.Session != "none" {
		t.Errorf("no route: %+v", e)
	}

	gone := w.services[0].pods[0]
	if pod(a) != "pod default/"+gone.name {
		gone = w.services[0].pods[1]
	}
	gone.stop()
	e, a = look("/header", token)
	named(e, "2", pod(a), "moved", "the endpoint did not take the connection")
	gone.gone = true
	w.Sync(t)
	e, a = look("/header", token)
	named(e, "2", pod(a), "moved", "the endpoint is gone")
	time.Sleep(2100 * time.Millisecond)
	e, a = look("/cookie", cookie)
	named(e, "1 (checkout)", pod(a), "expired", "absoluteTimeout")
	if w.Reloads(t) != 0 {
		t.Errorf("%d reloads", w.Reloads(t))
	}
}

// TestTheAccessLogSaysTheSameOfARequestThatTakesTheHop, and of one that is copied while it passes.
func TestTheAccessLogSaysTheSameOfARequestThatTakesTheHop(t *testing.T) {
	t.Parallel()
	with, lines := logged(model.AccessLogJSON)
	w := Run(t, gateway+route("shop", `
rules:
- name: idle
  timeouts: {request: 10s}
  filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {sessionName: sid, idleTimeout: 1s}
- matches: [{path: {value: /late}}]
  timeouts: {request: 200ms}
  backendRefs: [{name: shop, port: 80}]`), with, pods("shop", 3), pods("copy", 1))
	look := func(r request, uri string) (entry, answer) {
		t.Helper()
		a := w.ask(t, r)
		var e entry
		if err := json.Unmarshal([]byte(lines.find(t, uri)), &e); err != nil {
			t.Fatal(err)
		}
		return e, a
	}
	check := func(r request, uri, session, why string) answer {
		t.Helper()
		e, a := look(r, uri)
		if e.Rule != "0 (idle)" || e.Backend != "Service/default/shop/80" || e.Endpoint != "pod default/"+a.echo.Pod || e.Session != session || e.SessionWhy != why {
			t.Errorf("%s: %+v, answered by %s", uri, e, a.echo.Pod)
		}
		return a
	}
	first := check(get("shop.example/?first"), "/?first", "new", "")
	cookie := "Cookie: sid=" + first.given()[0].Value
	upload := get("shop.example/?upload", cookie)
	upload.method, upload.body = "POST", strings.Repeat("x", 100_000)
	check(upload, "/?upload", "kept", "")
	time.Sleep(2100 * time.Millisecond)
	check(get("shop.example/?idle", cookie), "/?idle", "expired", "idleTimeout")
	if e, a := look(get("shop.example/late?", "X-Reply-Never: 1"), "/late?"); e.Status != 504 || a.status != 504 || e.Backend != "Service/default/shop/80" || e.Endpoint != "" {
		t.Errorf("past its deadline: %+v", e)
	}
}

// TestTheAccessLogIsOneLineForARequestWhateverIsSent: what clients send cannot end a line or a value.
func TestTheAccessLogIsOneLineForARequestWhateverIsSent(t *testing.T) {
	t.Parallel()
	for _, form := range []model.AccessLog{model.AccessLogJSON, model.AccessLogText} {
		with, lines := logged(form)
		w := Run(t, gateway+route("all", "rules: [{backendRefs: [{name: one, port: 80}]}]"), with, pods("one", 1))
		for i, path := range []string{`/a"b`, `/a\`, "/a%0ab", "/%00", "/\xc3\xbc", "/\xff", "/{}"} {
			marker := "?marker" + string(rune('a'+i)) + "!"
			w.ask(t, request{host: "x.example", target: path + marker})
			if i == 4 || i == 5 {
				marker = "BADREQ" // HAProxy refuses bytes that a URI cannot have
			}
			line := lines.find(t, marker)
			if form == model.AccessLogJSON {
				var all map[string]any
				if err := json.Unmarshal([]byte(line), &all); err != nil {
					t.Errorf("%q: %v: %s", path, err, line)
				}
			} else if strings.Count(line, `"`)%2 != 0 || marker != "BADREQ" && !strings.Contains(line, `route="HTTPRoute default/all"`) || !strings.HasSuffix(line, "\n") {
				t.Errorf("%q: %s", path, line)
			}
		}
	}
}
