package templates

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// send is ask for shop.example with a method.
func send(t testing.TB, port uint16, method, path string, header http.Header) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example"
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header.Get("Server-Name"), res.Header, string(text)}
}

func TestAnAnswersHeadersAreSetAddedAndRemoved(t *testing.T) {
	port := freePort(t)
	change := func(set, add, remove string) *model.HeaderChange {
		return &model.HeaderChange{Set: []model.Header{{Name: "X-Set", Value: set}}, Add: []model.Header{{Name: "X-Add", Value: add}}, Remove: []string{remove}}
	}
	rule := to("r", "one", model.Filters{Response: change("rule", "rule", "X-Gone")})
	rule.Split[0].Filters.Response = change("share; \"q\" %[env(HOME)]", "share", "X-Gone-Too")
	rule.Split[0].Session = &model.Session{ID: "s1", Scope: "x", Backend: "b", Carrier: model.Cookie, Name: "shop", Path: "/"}
	robber := to("robber", "one", model.Filters{Response: &model.HeaderChange{Set: []model.Header{{Name: "Set-Cookie", Value: "a=b"}}, Remove: []string{"X-Session"}}})
	robber.Split[0].Session = rule.Split[0].Session
	remover := to("remover", "one", model.Filters{Response: &model.HeaderChange{Remove: []string{"Set-Cookie", "X-Session"}}})
	remover.Split[0].Session = &model.Session{ID: "s2", Scope: "y", Backend: "b", Carrier: model.HeaderLine, Name: "X-Session", Path: "/"}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))}, rule, robber, remover))
	query := "?answer=X-Set:a&answer=X-Set:b&answer=X-Add:backend&answer=X-Gone:1&answer=x-gone:2&answer=X-Gone-Too:1&answer=Set-Cookie:theirs%3D1&answer=X-Session:theirs"

	got := send(t, port, "GET", "/r"+query, nil).header
	if diff := cmp.Diff([]string{"share; \"q\" %[env(HOME)]"}, got["X-Set"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"backend", "rule", "share"}, got["X-Add"]); diff != "" {
		t.Error(diff)
	}
	if got["X-Gone"] != nil || got["X-Gone-Too"] != nil {
		t.Errorf("removed headers are there: %v", got)
	}
	if cookies := got["Set-Cookie"]; len(cookies) != 2 || cookies[0] != "theirs=1" || !strings.HasPrefix(cookies[1], "shop=1a.b.e1.") {
		t.Errorf("Set-Cookie: %q", cookies)
	}
	token := strings.TrimPrefix(strings.Split(got["Set-Cookie"][1], ";")[0], "shop=")
	kept := send(t, port, "GET", "/r"+query, http.Header{"Cookie": {"shop=" + token}}).header
	if kept.Get("X-Set") != got.Get("X-Set") || len(kept["Set-Cookie"]) != 1 {
		t.Errorf("the answer of a kept session: %v", kept)
	}
	if cookies := send(t, port, "GET", "/robber"+query, nil).header["Set-Cookie"]; len(cookies) != 2 || cookies[0] != "a=b" || !strings.HasPrefix(cookies[1], "shop=1a.") {
		t.Errorf("a filter that sets Set-Cookie: %q", cookies)
	}
	if got := send(t, port, "GET", "/remover"+query, nil).header; got["Set-Cookie"] != nil || !strings.HasPrefix(got.Get("X-Session"), "1a.b.e1.") {
		t.Errorf("a filter that removes the session's header: %v", got)
	}
}

func TestHostAndPathAreRewritten(t *testing.T) {
	port := freePort(t)
	strip := func(id, path string) *model.Rule {
		return to(id, "one", model.Filters{Rewrite: &model.Rewrite{ReplacePrefix: true, Prefix: "/" + id, Path: path}})
	}
	full := to("full", "one", model.Filters{Rewrite: &model.Rewrite{ReplaceFull: true, Path: "/one"}})
	host := to("host", "one", model.Filters{Rewrite: &model.Rewrite{Host: "inner.example"}})
	both := to("both", "one", model.Filters{
		Rewrite: &model.Rewrite{ReplacePrefix: true, Prefix: "/both", Path: "/rule", Host: "rule.example"},
		Request: &model.HeaderChange{Set: []model.Header{{Name: "X-Set", Value: "v"}}},
	})
	both.Split[0].Filters.Rewrite = &model.Rewrite{Host: "share.example"}
	rules := []*model.Rule{strip("app", "/"), strip("bare", ""), strip("deep", "/x/y"), strip("tail", "/x/"), full, host, both}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))}, rules...))
	for path, want := range map[string]string{
		"/app": "/", "/app/": "/", "/app/x": "/x", "/app/x/": "/x/", "/app?q=1": "/?q=1", "/app/x?a=b?c&d=%2F": "/x?a=b?c&d=%2F",
		"/bare": "/", "/bare/x": "/x", "/deep": "/x/y", "/deep/z": "/x/y/z", "/deep/": "/x/y/", "/tail": "/x/", "/tail/z": "/x/z",
		"/app/a%2Fb/%C3%A9": "/a%2Fb/%C3%A9", "/app//x": "//x", "/deep//x": "/x/y//x", "/full/a/b?x=y": "/one?x=y", "/both/a": "/rule/a",
	} {
		if got, _, _ := strings.Cut(send(t, port, "GET", path, nil).body, "\n"); got != "GET "+want {
			t.Errorf("%s arrives as %q, want %s", path, got, want)
		}
	}
	got := send(t, port, "GET", "/host", http.Header{"X-Forwarded-Host": {"liar.example"}}).body
	if !strings.Contains(got, "\nHost: inner.example\r\n") || !strings.Contains(got, "X-Forwarded-Host: shop.example\r\n") {
		t.Errorf("the host: %s", got)
	}
	if got := send(t, port, "GET", "/both", nil).body; !strings.Contains(got, "\nHost: share.example\r\n") || !strings.Contains(got, "X-Set: v\r\n") {
		t.Errorf("rule and share: %s", got)
	}
	if got := raw(t, port, "GET /app/\xe9'\"<> HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", untilTheEnd); !strings.Contains(got, " 400 ") && !strings.Contains(got, "\xe9'\"<>") {
		t.Errorf("raw bytes: %s", got)
	}
}

func TestAProxyThatIsTrustedSaysTheHost(t *testing.T) {
	port := freePort(t)
	config := serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))},
		to("host", "one", model.Filters{Rewrite: &model.Rewrite{Host: "inner.example"}}))
	config.Frame.Ports[0].TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	run(t, config)
	if got := send(t, port, "GET", "/host", http.Header{"X-Forwarded-Host": {"first.example"}}).body; !strings.Contains(got, "X-Forwarded-Host: first.example\r\n") {
		t.Errorf("a trusted proxy's X-Forwarded-Host: %s", got)
	}
	if got := send(t, port, "GET", "/host", nil).body; !strings.Contains(got, "X-Forwarded-Host: shop.example\r\n") {
		t.Errorf("no X-Forwarded-Host: %s", got)
	}
}

// raw sends bytes and returns what comes back until the connection ends or it is enough.
func raw(t testing.TB, port uint16, text string, enough func(string) bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for buffer := make([]byte, 4096); !enough(string(got)); {
		n, err := conn.Read(buffer)
		got = append(got, buffer[:n]...)
		if err != nil {
			break
		}
	}
	return string(got)
}

func untilTheEnd(string) bool { return false }

func TestAShareRedirects(t *testing.T) {
	port := freePort(t)
	rule := &model.Rule{ID: "r", Split: []model.Share{
		{Weight: 1, Backend: "one", Filters: model.Filters{Redirect: &model.Redirect{Status: 307, Host: "there.example", ReplacePrefix: true, Prefix: "/r", Path: ""}}},
		{Weight: 1, Backend: "one"},
	}}
	cors := &model.CORS{Origins: []string{"https://a.example"}, MaxAge: 5 * time.Second}
	away := &model.Rule{ID: "away", Filters: model.Filters{CORS: cors, Redirect: &model.Redirect{Status: 308, Scheme: "https"}}}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))}, rule, away))
	counts := map[string]int{}
	for range 100 {
		res := send(t, port, "GET", "/r/x?y", nil)
		counts[fmt.Sprint(res.status, " ", res.header.Get("Location"))]++
	}
	if counts["307 http://there.example/x?y"] < 20 || counts["200 "] < 20 || len(counts) != 2 {
		t.Errorf("a share that redirects: %v", counts)
	}
	res := send(t, port, "GET", "/away", http.Header{"Origin": {"https://a.example"}})
	if res.status != 308 || res.header.Get("Location") != "https://shop.example/away" || res.header.Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("a redirect with CORS: %v %v", res.status, res.header)
	}
}

// corsHeaders are an answer's that CORS is about, by name.
func corsHeaders(header http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range header {
		if short, is := strings.CutPrefix(name, "Access-Control-"); is {
			all[short] = strings.Join(values, "|")
		}
	}
	if vary := header["Vary"]; vary != nil {
		all["Vary"] = strings.Join(vary, "|")
	}
	return all
}

func TestCrossOriginRequests(t *testing.T) {
	port := freePort(t)
	cors := func(id string, cors model.CORS) *model.Rule {
		cors.MaxAge = max(cors.MaxAge, 5*time.Second)
		return to(id, "one", model.Filters{CORS: &cors})
	}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))},
		cors("list", model.CORS{
			Origins: []string{"https://www.foo.com", "https://*.bar.com", "http://host:8080", "https://*:8443"}, Methods: []string{"GET", "OPTIONS"},
			Headers: []string{"x-header-1", "x-header-2"}, Expose: []string{"x-header-3", "x-header-4"}, Credentials: true, MaxAge: time.Hour,
		}),
		cors("any-method", model.CORS{Origins: []string{"https://www.foo.com"}, Methods: []string{"*"}}),
		cors("any-origin", model.CORS{Origins: []string{"*"}, Methods: []string{"PUT"}}),
		cors("any-credentials", model.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"}, Expose: []string{"*"}, Credentials: true}),
		cors("any", model.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"}, Expose: []string{"*"}}),
		cors("nothing", model.CORS{}),
	))
	const preflightVary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
	listed := func(origin string) map[string]string {
		return map[string]string{
			"Allow-Origin": origin, "Allow-Credentials": "true", "Allow-Methods": "GET, OPTIONS", "Allow-Headers": "x-header-1, x-header-2",
			"Expose-Headers": "x-header-3, x-header-4", "Max-Age": "3600", "Vary": preflightVary,
		}
	}
	shared := func(origin string) map[string]string {
		return map[string]string{"Allow-Origin": origin, "Allow-Credentials": "true", "Expose-Headers": "x-header-3, x-header-4", "Vary": "Origin"}
	}
	none, refused := map[string]string{"Vary": "Origin"}, map[string]string{"Vary": preflightVary}
	const theirs = "?answer=Access-Control-Allow-Origin:*&answer=Access-Control-Allow-Origin:x&answer=Access-Control-Max-Age:9&answer=X-Own:1"
	for _, c := range []struct {
		path, origin, method, headers string // a method makes it a preflight
		want                          map[string]string
	}{
		{"list", "https://www.foo.com", "GET", "x-header-1, x-header-2", listed("https://www.foo.com")},
		{"list", "https://www.bar.com", "GET", "x-header-1, x-header-2", listed("https://www.bar.com")},
		{"list", "https://xpto.www.bar.com", "GET", "x-header-1, x-header-2", listed("https://xpto.www.bar.com")},
		{"list", "https://foobar.com", "GET", "", refused},
		{"list", "https://bar.com", "GET", "", refused},
		{"list", "https://.bar.com.evil.com", "GET", "", refused},
		{"list", "http://www.foo.com", "GET", "", refused},
		{"list", "https://www.foo.com:444", "GET", "", refused},
		{"list", "https://www.foo.com:443", "GET", "", listed("https://www.foo.com:443")},
		{"list", "HTTPS://WWW.FOO.COM", "GET", "", listed("HTTPS://WWW.FOO.COM")},
		{"list", "http://host:8080", "GET", "", listed("http://host:8080")},
		{"list", "https://whatever.org:8443", "GET", "", listed("https://whatever.org:8443")},
		{"list", "null", "GET", "", refused},
		{"list", strings.Repeat(":1", 3000), "GET", "", refused},
		{"list" + theirs, "https://www.foo.com", "", "", shared("https://www.foo.com")},
		{"list" + theirs, "https://www.bar.com", "", "", shared("https://www.bar.com")},
		{"list" + theirs, "https://foobar.com", "", "", none},
		{"list" + theirs, "", "", "", none},
		{"list?answer=Vary:Accept,%20origin", "https://foobar.com", "", "", map[string]string{"Vary": "Accept, origin"}},
		{"any-method", "https://www.foo.com", "POST", "", map[string]string{"Allow-Origin": "https://www.foo.com", "Allow-Methods": "*", "Max-Age": "5", "Vary": preflightVary}},
		{"any-origin", "https://foobar.com:12345", "PUT", "", map[string]string{"Allow-Origin": "*", "Allow-Methods": "PUT", "Max-Age": "5", "Vary": preflightVary}},
		{"any-origin" + theirs, "https://foobar.com:12345", "", "", map[string]string{"Allow-Origin": "*"}},
		{"any-origin", "null", "", "", map[string]string{"Allow-Origin": "*"}},
		{"any-credentials", "https://other.foo.com", "PUT", "x-header-1, x-header-2", map[string]string{
			"Allow-Origin": "https://other.foo.com", "Allow-Credentials": "true", "Allow-Methods": "PUT", "Allow-Headers": "x-header-1, x-header-2", "Max-Age": "5", "Vary": preflightVary,
		}},
		{"any-credentials", "https://other.foo.com", "PUT", "", map[string]string{
			"Allow-Origin": "https://other.foo.com", "Allow-Credentials": "true", "Allow-Methods": "PUT", "Max-Age": "5", "Vary": preflightVary,
		}},
		{"any-credentials" + theirs, "https://other.foo.com", "", "", map[string]string{
			"Allow-Origin": "https://other.foo.com", "Allow-Credentials": "true", "Expose-Headers": "date, server-name, x-own", "Vary": "Origin",
		}},
		{"any", "https://other.foo.com", "PUT", "x-header-1", map[string]string{
			"Allow-Origin": "*", "Allow-Methods": "*", "Allow-Headers": "*", "Expose-Headers": "*", "Max-Age": "5", "Vary": preflightVary,
		}},
		{"any" + theirs, "https://other.foo.com", "", "", map[string]string{"Allow-Origin": "*", "Expose-Headers": "*"}},
		{"nothing", "https://other.foo.com", "GET", "", refused},
	} {
		header, method, status := http.Header{}, "GET", 200
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		if c.method != "" {
			method, status = "OPTIONS", 204
			header.Set("Access-Control-Request-Method", c.method)
		}
		if c.headers != "" {
			header.Set("Access-Control-Request-Headers", c.headers)
		}
		got := send(t, port, method, "/"+c.path, header)
		if diff := cmp.Diff(c.want, corsHeaders(got.header)); diff != "" || got.status != status {
			t.Errorf("%s for %.40s %s: %d (-want +got)\n%s", c.path, c.origin, c.method, got.status, diff)
		}
	}
	// Without Origin, or without the method that is asked for, OPTIONS is a request like others.
	for _, header := range []http.Header{{"Origin": {"https://www.foo.com"}}, {"Access-Control-Request-Method": {"GET"}}} {
		if got := send(t, port, "OPTIONS", "/list", header); got.status != 200 || got.header.Get("Server-Name") != "one" {
			t.Errorf("OPTIONS with %v: %d", header, got.status)
		}
	}
	// A request that asks for a method is no preflight unless it is OPTIONS.
	if got := send(t, port, "GET", "/list", http.Header{"Origin": {"https://www.foo.com"}, "Access-Control-Request-Method": {"GET"}}); got.header.Get("Server-Name") != "one" {
		t.Errorf("GET: %v", got.header)
	}
}

// breaking is a backend that takes requests and closes their connections.
func breaking(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func TestWhatHAProxyAnswersGoesThroughTheFiltersToo(t *testing.T) {
	port := freePort(t)
	rule := func(id, backend string, request, attempt time.Duration) *model.Rule {
		made := to(id, backend, model.Filters{
			CORS:     &model.CORS{Origins: []string{"https://a.example"}, Methods: []string{"GET"}, Credentials: true},
			Response: &model.HeaderChange{Set: []model.Header{{Name: "X-Set", Value: "v"}}, Add: []model.Header{{Name: "X-Add", Value: "w"}}, Remove: []string{"Cache-Control"}},
		})
		made.RequestTimeout, made.BackendTimeout = request, attempt
		return made
	}
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("one", echo(t, "one")), backend("empty"), backend("breaking", breaking(t)), backend("slow", slow(t)),
	}, rule("fine", "one", 0, 0), rule("empty", "empty", 0, 0), rule("breaking", "breaking", 0, 0), rule("attempt", "slow", 0, 200*time.Millisecond),
		rule("hop-fine", "one", time.Second, 0), rule("hop-empty", "empty", time.Second, 0), rule("hop-breaking", "breaking", time.Second, 0), rule("hop-slow", "slow", 200*time.Millisecond, 0)))
	for path, status := range map[string]int{
		"fine": 200, "empty": 503, "breaking": 502, "attempt": 504, "hop-fine": 200, "hop-empty": 503, "hop-breaking": 502, "hop-slow": 504,
	} {
		got := send(t, port, "GET", "/"+path+"?wait=2s", http.Header{"Origin": {"https://a.example"}})
		cors := map[string]string{"Allow-Origin": "https://a.example", "Allow-Credentials": "true", "Vary": "Origin"}
		if diff := cmp.Diff(cors, corsHeaders(got.header)); diff != "" || got.status != status {
			t.Errorf("%s: %d (-want +got)\n%s", path, got.status, diff)
		}
		if len(got.header["X-Set"]) != 1 || len(got.header["X-Add"]) != 1 || got.header["Cache-Control"] != nil {
			t.Errorf("%s: %v", path, got.header)
		}
	}
}

func TestABackendThatIsTooSlowIsLeftAfterTheLimitOfAnAttempt(t *testing.T) {
	port := freePort(t)
	limited := to("limited", "slow", model.Filters{})
	limited.BackendTimeout = 300 * time.Millisecond
	filtered := to("filtered", "slow", model.Filters{Request: &model.HeaderChange{Set: []model.Header{{Name: "A", Value: "b"}}}})
	filtered.BackendTimeout = 300 * time.Millisecond
	filtered.Split[0].Session = &model.Session{ID: "s1", Scope: "x", Backend: "b", Carrier: model.Cookie, Name: "shop", Path: "/"}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("slow", slow(t))}, limited, filtered, to("free", "slow", model.Filters{})))
	for _, path := range []string{"/limited", "/filtered"} {
		start := time.Now()
		if got := send(t, port, "GET", path+"?wait=2s", nil); got.status != 504 || time.Since(start) > 1500*time.Millisecond {
			t.Errorf("%s: %d after %v", path, got.status, time.Since(start))
		}
		// What has begun to answer has all the time it needs.
		if got := send(t, port, "GET", path+"?wait=50ms&pause=800ms", nil).body; got != "beginend" {
			t.Errorf("%s: the answer %q", path, got)
		}
	}
	if got := send(t, port, "GET", "/free?wait=800ms", nil); got.status != 200 {
		t.Errorf("without a limit: %d", got.status)
	}
}

// slow is a backend that waits before it answers and in its answer.
func slow(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sleep := func(name string) {
			d, _ := time.ParseDuration(r.URL.Query().Get(name))
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		sleep("wait")
		_, _ = io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		sleep("pause")
		_, _ = io.WriteString(w, "end")
	}))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func TestStepsStayWithinALine(t *testing.T) {
	long := strings.Repeat("v", 4096)
	var filters model.Filters
	filters.Request = &model.HeaderChange{Set: []model.Header{{Name: strings.Repeat("n", 256), Value: long}}}
	filters.CORS = &model.CORS{Origins: slices.Repeat([]string{"https://" + strings.Repeat("a.", 120) + "example"}, 64)}
	for _, text := range steps(filters, model.Filters{}) {
		if len(text) > 8000 {
			t.Errorf("a step of %d bytes", len(text))
		}
	}
}

// FuzzSteps: whatever valid filters hold, the Lua side's pattern takes each step apart as it was put together.
func FuzzSteps(f *testing.F) {
	f.Add("X-A", "a=b;c ; ", "https://*.example")
	f.Add("~", "%[env(HOME)]", "*")
	f.Fuzz(func(t *testing.T, name, value, origin string) {
		if strings.ContainsAny(name, "=\n") || strings.ContainsAny(value+origin, "\r\n") {
			return // no token, or no value of a header
		}
		change := &model.HeaderChange{Set: []model.Header{{Name: name, Value: value}}, Remove: []string{name}}
		filters := model.Filters{Request: change, Response: change, CORS: &model.CORS{Origins: []string{origin}}}
		want := [][3]string{
			{"c", "0", "false"}, {"o", "", origin}, {"s", name, value}, {"d", name, ""}, {"S", name, value}, {"D", name, ""},
		}
		var got [][3]string
		for _, text := range steps(filters, model.Filters{}) {
			key, rest, _ := strings.Cut(text[1:], "=")
			got = append(got, [3]string{text[:1], key, strings.TrimSuffix(rest, ";")})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
