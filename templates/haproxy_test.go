package templates

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/originator"
	"github.com/limpet-gateway/limpet/internal/table"
)

// haproxy is the binary that the tests run: there is no test of a rule without it.
func haproxy(t testing.TB) string {
	t.Helper()
	for _, path := range []string{os.Getenv("HAPROXY"), "../.cache/bin/haproxy", "haproxy"} {
		if found, err := exec.LookPath(path); path != "" && err == nil {
			abs, err := filepath.Abs(found)
			if err != nil {
				t.Fatal(err)
			}
			return abs
		}
	}
	t.Fatal("no haproxy: run the tests with make test")
	return ""
}

// run renders config, checks it with HAProxy and starts it. It returns the folder.
func run(t testing.TB, config model.Config) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "limpet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	renderer, err := NewRenderer(Settings{
		AdminSocket: dir + "/admin.sock", HealthSocket: dir + "/health.sock", OriginatorSocket: originator.Socket(dir), Instance: filepath.Base(dir), HardStopAfter: "1h",
		SignKeys: []SignKey{{"a", "3Lm2TOntsDDfXdggrmms2YXqwLq1kjA2sLPGtYXreUk="}},
	})
	if err != nil {
		t.Fatal(err)
	}
	place := placement.Placement{}.Update(placement.Backends(config), nil)
	set, faults, err := renderer.Render(config, place)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	store, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	number, left, err := store.Write(set, place)
	if err != nil || len(left) > 0 {
		t.Fatal(err, left)
	}
	if err := os.Symlink(store.Path(number), dir+"/current"); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-C", store.Path(number)}
	for _, name := range files.ConfigFiles() {
		arguments = append(arguments, "-f", name)
	}
	if out, err := exec.Command(haproxy(t), append([]string{"-c"}, arguments...)...).CombinedOutput(); err != nil {
		t.Fatalf("haproxy -c: %v\n%s", err, out)
	}
	cmd := exec.Command(haproxy(t), append([]string{"-db"}, arguments...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := os.WriteFile(dir+"/pid", []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // a busy machine is slow
		if conn, err := net.Dial("unix", dir+"/admin.sock"); err == nil {
			_ = conn.Close()
			return dir
		}
	}
	t.Fatal("haproxy did not start within 30 s")
	return ""
}

// echo starts a server that answers with its name and what it was asked.
func echo(t testing.TB, name string) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server-Name", name)
		if v := r.URL.Query().Get("cache"); v != "" {
			w.Header().Set("Cache-Control", v)
		}
		for _, field := range r.URL.Query()["answer"] {
			name, value, _ := strings.Cut(field, ":")
			w.Header().Add(name, value)
		}
		fmt.Fprintf(w, "%s %s\nHost: %s\r\n", r.Method, r.RequestURI, r.Host)
		_ = r.Header.Write(w)
	}))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

type reply struct {
	status int
	server string
	header http.Header
	body   string
}

func ask(t testing.TB, port uint16, host, path string, header http.Header) reply {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header.Get("Server-Name"), res.Header, string(body)}
}

func backend(name string, addrs ...netip.AddrPort) table.Entry[*model.Backend] {
	b := &model.Backend{Name: name}
	for i, a := range addrs {
		b.Endpoints = append(b.Endpoints, model.Endpoint{Name: fmt.Sprintf("e%d", i+1), Address: a, ID: int32(1000 + i)})
	}
	return table.Entry[*model.Backend]{Key: name, Value: b}
}

func plain(backend string) *model.Path {
	return &model.Path{Candidates: []model.Candidate{{Target: model.Target{Backend: backend}}}}
}

// serving is a configuration of one port and a hostname for all, whose rules are found by the prefix that is their ID (which
// must not begin as slots and groups do, with s or g).
func serving(port uint16, backends []table.Entry[*model.Backend], rules ...*model.Rule) model.Config {
	edit, paths := table.Table[*model.Rule]{}.Edit(), table.Table[*model.Path]{}.Edit()
	for _, rule := range rules {
		edit.Set(rule.ID, rule)
		candidate := toRule(rule.ID)
		if rule.Plain() {
			candidate.Target.Backend = rule.Split[0].Backend
		}
		paths.Set(model.PrefixKey("v1", "/"+rule.ID), &model.Path{Candidates: []model.Candidate{candidate}})
	}
	return model.Config{
		Frame:    model.Frame{Ports: []model.Port{{ID: "p1", Address: netip.MustParseAddr("127.0.0.1"), Bind: port, Public: 80}}},
		Hosts:    table.Of(table.Entry[*model.Host]{Key: model.HostKey("p1", "*"), Value: &model.Host{VirtualHost: "v1"}}),
		Paths:    paths.Table(),
		Rules:    edit.Table(),
		Backends: table.Of(backends...),
	}
}

// to is a rule with one share.
func to(id, backend string, filters model.Filters) *model.Rule {
	return &model.Rule{ID: id, Filters: filters, Split: []model.Share{{Weight: 1, Backend: backend}}}
}

func toRule(rule string, conditions ...model.Condition) model.Candidate {
	return model.Candidate{Conditions: conditions, Target: model.Target{Rule: rule}}
}

func TestARequestTakesItsRouteFilterAndSession(t *testing.T) {
	port := freePort(t)
	one, two := echo(t, "one"), echo(t, "two")
	session := &model.Session{
		ID: "ssess", Scope: "scope1", Backend: "bshop", Carrier: model.Cookie, Name: "shop", Absolute: time.Hour, Path: "/", Permanent: true,
	}
	header := &model.Session{ID: "shead", Scope: "scope2", Backend: "bshop", Carrier: model.HeaderLine, Name: "X-Session", Path: "/"}
	config := model.Config{
		Frame: model.Frame{Ports: []model.Port{{ID: "p1", Address: netip.MustParseAddr("127.0.0.1"), Bind: port, Public: 80}}},
		Hosts: table.Of(
			table.Entry[*model.Host]{Key: "p1|shop.example", Value: &model.Host{VirtualHost: "v1"}},
			table.Entry[*model.Host]{Key: "p1|*.example", Value: &model.Host{VirtualHost: "v2"}},
		),
		Parents: table.Of(table.Entry[*model.Parent]{Key: "v1", Value: &model.Parent{VirtualHost: "v2"}}),
		Paths: table.Of(
			table.Entry[*model.Path]{Key: "v1/a/", Value: plain("one")},
			table.Entry[*model.Path]{Key: "v1/a/\x01", Value: plain("two")},
			table.Entry[*model.Path]{Key: "v1/cookie/", Value: &model.Path{Candidates: []model.Candidate{toRule("rcookie")}}},
			table.Entry[*model.Path]{Key: "v1/header/", Value: &model.Path{Candidates: []model.Candidate{toRule("rheader")}}},
			table.Entry[*model.Path]{Key: "v1/away/", Value: &model.Path{Candidates: []model.Candidate{toRule("raway")}}},
			table.Entry[*model.Path]{Key: "v1/bad/", Value: &model.Path{Candidates: []model.Candidate{toRule("rbad")}}},
			table.Entry[*model.Path]{Key: "v1/stripped/", Value: &model.Path{Candidates: []model.Candidate{toRule("rstripped")}}},
			table.Entry[*model.Path]{Key: "v1/re/", Value: &model.Path{Candidates: []model.Candidate{
				toRule("rcookie", model.Condition{On: model.OnPath, Value: "/re/(a|b)*c?", Regex: true}),
			}}},
			table.Entry[*model.Path]{Key: "v1/split/", Value: &model.Path{Candidates: []model.Candidate{toRule("rsplit")}}},
			table.Entry[*model.Path]{Key: "v1/a/c/", Value: &model.Path{Candidates: []model.Candidate{
				toRule("rcookie", model.Condition{On: model.OnHeader, Name: "x", Value: "y"}),
				toRule("rheader", model.Condition{On: model.OnQuery, Name: "q", Value: "b+ ", Regex: true}),
			}}},
			table.Entry[*model.Path]{Key: "v2/", Value: plain("two")},
		),
		Rules: table.Of(
			table.Entry[*model.Rule]{Key: "rcookie", Value: &model.Rule{ID: "rcookie", Split: []model.Share{{Weight: 1, Backend: "both", Session: session}}}},
			table.Entry[*model.Rule]{Key: "rstripped", Value: &model.Rule{
				ID: "rstripped", Filters: model.Filters{Request: &model.HeaderChange{Remove: []string{"Cookie"}}},
				Split: []model.Share{{Weight: 1, Backend: "both", Session: &model.Session{
					ID: "sstripped", Scope: "scope3", Backend: "bshop", Carrier: model.Cookie, Name: "shop", Path: "/",
				}}},
			}},
			table.Entry[*model.Rule]{Key: "rheader", Value: &model.Rule{ID: "rheader", Split: []model.Share{{Weight: 1, Backend: "both", Session: header}}}},
			table.Entry[*model.Rule]{Key: "rbad", Value: &model.Rule{ID: "rbad", Split: []model.Share{{Weight: 1}}}},
			table.Entry[*model.Rule]{Key: "raway", Value: &model.Rule{ID: "raway", Filters: model.Filters{Redirect: &model.Redirect{Status: 302, KeepPort: true, ReplacePrefix: true, Prefix: "/away", Path: "/there"}}}},
			table.Entry[*model.Rule]{Key: "rsplit", Value: &model.Rule{ID: "rsplit", Filters: model.Filters{Request: &model.HeaderChange{Set: []model.Header{{Name: "X-A", Value: "%[env(HOME)] ; \"q\""}}}},
				Split: []model.Share{{Weight: 3, Backend: "one"}, {Weight: 1, Backend: "two"}, {Weight: 0, Backend: "one"}}}},
		),
		Backends: table.Of(backend("one", one), backend("two", two), backend("both", one, two)),
	}
	run(t, config)
	for _, c := range []struct {
		host, path string
		header     http.Header
		status     int
		server     string
	}{
		{"shop.example", "/a/b", nil, 200, "one"},
		{"shop.example", "/a", nil, 200, "two"},
		{"SHOP.example.:80", "/a/", nil, 200, "one"},
		{"shop.example", "/ab", nil, 200, "two"},
		{"x.y.example", "/", nil, 200, "two"},
		{"a.b.c.d.e.f.g.h.i.example", "/", nil, 200, "two"},
		{"example", "/", nil, 404, ""},
		{"shop.example", "/bad", nil, 500, ""},
		{"shop.example", "/a/c", nil, 200, "one"},
		{"shop.example", "/away/x?y=1", nil, 302, ""},
		{"shop.example", "/re/" + strings.Repeat("ab", 50) + "c!", nil, 200, "two"},
		{"shop.example", "/re/" + strings.Repeat("ab", 3000), nil, 500, ""},
	} {
		got := ask(t, port, c.host, c.path, c.header)
		if got.status != c.status || got.server != c.server {
			t.Errorf("%s%s: %d from %q, want %d from %q", c.host, c.path, got.status, got.server, c.status, c.server)
		}
	}
	if got := ask(t, port, "shop.example", "/away/x?y=1", nil).header.Get("Location"); got != "http://shop.example/there/x?y=1" {
		t.Errorf("Location: %s", got)
	}
	if got := ask(t, port, "shop.example", "/a/c?q=bb%20", nil); got.header.Get("X-Session") == "" {
		t.Errorf("no header token: %v", got)
	}
	if got := ask(t, port, "shop.example", "/split", nil); !strings.Contains(got.body, "X-A: %[env(HOME)] ; \"q\"\r\n") || !strings.Contains(got.body, "X-Forwarded-Port: 80\r\n") {
		t.Errorf("headers: %v", got)
	}
	first := ask(t, port, "shop.example", "/cookie?cache=max-age%3D60", nil)
	if cookie := first.header.Get("Set-Cookie"); !strings.HasSuffix(cookie, "; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax") {
		t.Errorf("Set-Cookie: %s", cookie)
	}
	if got := first.header.Get("Cache-Control"); got != "private" {
		t.Errorf("a cacheable response with a token has Cache-Control: %s", got)
	}
	token := strings.Split(strings.TrimPrefix(first.header.Get("Set-Cookie"), "shop="), ";")[0]
	for range 10 {
		got := ask(t, port, "shop.example", "/cookie", http.Header{"Cookie": {"a=b; shop=" + token + "; c=d"}})
		if got.server != first.server || got.header.Get("Set-Cookie") != "" {
			t.Errorf("moved: %v", got)
		}
	}
	other := strings.Split(strings.TrimPrefix(ask(t, port, "shop.example", "/stripped", nil).header.Get("Set-Cookie"), "shop="), ";")[0]
	for _, cookies := range [][]string{
		{"shop=" + token + "; shop=" + other}, {"shop=" + other + "; shop=" + token}, {"shop=" + token + "; shop=1abc"},
		{"a=b", "shop=" + token, "c=d"}, {"shop=" + other, "shop=" + token}, {"Shop=x; xshop=y; shop=" + token},
	} {
		got := ask(t, port, "shop.example", "/cookie", http.Header{"Cookie": cookies})
		if got.server != first.server || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%q among others is not found: %v", cookies, got.header)
		}
	}
	stripped := ask(t, port, "shop.example", "/stripped", http.Header{"Cookie": {"shop=" + other}})
	if stripped.header.Get("Set-Cookie") != "" || strings.Contains(stripped.body, "Cookie") {
		t.Errorf("a filter that removes the cookie from the request ended the session: %v", stripped)
	}
	got := ask(t, port, "shop.example", "/cookie", http.Header{"Cookie": {"shop=" + token[:len(token)-3] + "abc"}})
	if got.header.Get("Set-Cookie") == "" {
		t.Errorf("forged token kept")
	}
	first = ask(t, port, "shop.example", "/header", nil)
	for range 10 {
		got := ask(t, port, "shop.example", "/header", http.Header{"X-Session": {first.header.Get("X-Session")}})
		if got.server != first.server || got.header.Get("X-Session") != "" {
			t.Errorf("moved: %v", got)
		}
	}
	counts := map[string]int{}
	for range 400 {
		counts[ask(t, port, "shop.example", "/split", nil).server]++
	}
	if counts["one"] < 240 || counts["two"] < 60 {
		t.Errorf("a split of 3 to 1 gave %v", counts)
	}
}
