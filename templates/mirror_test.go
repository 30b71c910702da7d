package templates

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// listener is a backend that remembers what it was asked, in one line each.
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sum := md5.New()
	n, _ := io.Copy(sum, r.Body)
	header := r.Header.Clone()
	header.Del("Content-Length")
	header.Del("Host")        // over HTTP/2 HAProxy says it twice
	header.Del("Limpet-Copy") // says of a copy that it is one
	var fields bytes.Buffer
	_ = header.Write(&fields)
	l.mu.Lock()
	l.heard = append(l.heard, fmt.Sprintf("%s %s %s %d %x\n%s", r.Method, r.RequestURI, r.Host, n, sum.Sum(nil), fields.String()))
	l.mu.Unlock()
	_, _ = io.WriteString(w, "heard")
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

func (l *listener) start(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func mirrored(id, backend string, mirrors ...model.Mirror) *model.Rule {
	return to(id, backend, model.Filters{Mirrors: mirrors})
}

func TestMirrorsHearWhatTheBackendHears(t *testing.T) {
	port := freePort(t)
	var backendSide, copySide, second listener
	rule := mirrored("r", "main", model.Mirror{Backend: "copy", Numerator: 1, Denominator: 1}, model.Mirror{Backend: "two", Numerator: 1, Denominator: 1})
	rule.Filters.Rewrite = &model.Rewrite{Host: "inner.example", ReplacePrefix: true, Prefix: "/r", Path: "/new"}
	rule.Filters.Request = &model.HeaderChange{Set: []model.Header{{Name: "X-Set", Value: "v"}}}
	rule.RequestTimeout, rule.BackendTimeout = 5*time.Second, 4*time.Second
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", backendSide.start(t)), backend("copy", copySide.start(t)), http2Backend("two", h2c(t, second.ServeHTTP)),
	}, rule))
	ask := func(client *http.Client, method, path string, body io.Reader) {
		req, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Many"] = []string{"1", "2", "3"}
		req.Header.Set("Limpet-Slot", "s9")
		req.Header.Set("Te", "trailers")
		if method == "DELETE" {
			req.Header.Set("User-Agent", "") // Go sends none then.
			req.Header.Set("Accept", "text/plain")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(res.Body); res.StatusCode != 200 || (method != "HEAD" && string(text) != "heard") {
			t.Errorf("%s %s: %d %q", method, path, res.StatusCode, text)
		}
		_ = res.Body.Close()
	}
	asked := 0
	for _, client := range clients() {
		for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS", "PATCH"} {
			ask(client, method, "/r/a%2Fb?q=1&r=%20", nil)
			asked++
		}
		for _, size := range []int{1, 5_000, 100_000, 1 << 20} {
			body := bytes.Repeat([]byte("mirror\x00\r\n"), size/9+1)[:size]
			ask(client, "POST", "/r?length", bytes.NewReader(body))
			ask(client, "PUT", "/r?chunks", io.MultiReader(bytes.NewReader(body)))
			ask(client, "GET", "/r?chunks", io.MultiReader(bytes.NewReader(body)))
			ask(client, "PATCH", "/r?late", &late{Reader: bytes.NewReader(body)})
			ask(client, "DELETE", "/r?late", &late{Reader: bytes.NewReader(body)})
			ask(client, "GET", "/r?late", &late{Reader: bytes.NewReader(body)})
			asked += 6
		}
	}
	within(t, 5*time.Second, func() bool { return len(copySide.all()) >= asked && len(second.all()) >= asked })
	sorted := func(l *listener) []string { return slices.Sorted(slices.Values(l.all())) }
	if diff := cmp.Diff(sorted(&backendSide), sorted(&copySide)); diff != "" {
		t.Errorf("(-backend +copy)\n%.4000s", diff)
	}
	if diff := cmp.Diff(sorted(&backendSide), sorted(&second)); diff != "" {
		t.Errorf("(-backend +copy over HTTP/2)\n%.4000s", diff)
	}
	for _, text := range append(copySide.all(), backendSide.all()...) {
		if strings.Contains(strings.ToLower(text), "limpet") || !strings.Contains(text, " inner.example ") || !strings.Contains(text, "X-Set: v\r\n") {
			t.Fatalf("a copy: %s", text)
		}
	}
}

func TestAShareOfRequestsIsMirrored(t *testing.T) {
	port := freePort(t)
	var main, fifth, share listener
	rule := mirrored("r", "main", model.Mirror{Backend: "fifth", Numerator: 20, Denominator: 100}, model.Mirror{Backend: "never", Numerator: 0, Denominator: 100})
	rule.Split = []model.Share{{Weight: 1, Backend: "main", Filters: model.Filters{Mirrors: []model.Mirror{{Backend: "share", Numerator: 1, Denominator: 1}}}}, {Weight: 1, Backend: "main"}}
	var never listener
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("fifth", fifth.start(t)), backend("share", share.start(t)), backend("never", never.start(t)),
	}, rule))
	const n = 2000
	for range n {
		if got := send(t, port, "GET", "/r", nil); got.status != 200 {
			t.Fatal(got)
		}
	}
	time.Sleep(300 * time.Millisecond)
	near := func(what string, got int, p float64) {
		if bound := 5 * math.Sqrt(n*p*(1-p)); math.Abs(float64(got)-n*p) > bound {
			t.Errorf("%s: %d of %d, want %.0f within %.0f", what, got, n, n*p, bound)
		}
	}
	near("a fifth", len(fifth.all()), 0.2)
	near("a share's own mirror", len(share.all()), 0.5)
	if len(main.all()) != n || len(never.all()) != 0 {
		t.Errorf("the backend heard %d, the mirror of nothing %d", len(main.all()), len(never.all()))
	}
}

// residentKB is the memory of the HAProxy that runs in a folder.
func residentKB(t testing.TB, dir string) int {
	t.Helper()
	pid, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all, resident int
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() / 1024
}

// TestATargetThatHangsOrIsDeadCostsNothing compares the latency of a mirrored rule with that of one that has no filter at all,
// interleaved.
func TestATargetThatHangsOrIsDeadCostsNothing(t *testing.T) {
	port := freePort(t)
	var main listener
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}))
	t.Cleanup(stuck.CloseClientConnections)
	some := func(backend string, percent int32) model.Mirror {
		return model.Mirror{Backend: backend, Numerator: percent, Denominator: 100}
	}
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("stuck", netip.MustParseAddrPort(stuck.Listener.Addr().String())),
		backend("dead", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(t))),
	}, to("none", "main", model.Filters{}), mirrored("hanging", "main", some("stuck", 100)), mirrored("dead", "main", some("dead", 100)),
		mirrored("tenth", "main", some("dead", 10))))
	took := map[string][]time.Duration{}
	for range 300 {
		for _, path := range []string{"/none", "/hanging", "/dead", "/tenth"} {
			start := time.Now()
			if got := send(t, port, "GET", path, nil); got.status != 200 {
				t.Fatal(path, got)
			}
			took[path] = append(took[path], time.Since(start))
		}
	}
	median := func(path string) time.Duration { return slices.Sorted(slices.Values(took[path]))[150] }
	none := median("/none")
	for path, limit := range map[string]float64{"/hanging": 1.5, "/dead": 1.5, "/tenth": 1.25} {
		ratio := float64(median(path)) / float64(none)
		t.Logf("%s: %v, %v without a mirror: %.2f", path, median(path), none, ratio)
		if ratio > limit {
			t.Errorf("%s takes %.2f of what a rule without mirrors does", path, ratio)
		}
	}
}

func TestACopyThatComesBackIsNotCopiedAgain(t *testing.T) {
	port := freePort(t)
	var main listener
	all := func(backend string) model.Mirror { return model.Mirror{Backend: backend, Numerator: 1, Denominator: 1} }
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("self", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)),
	}, mirrored("loop", "main", all("self"), all("self"))))
	if got := send(t, port, "GET", "/loop", http.Header{"Limpet-Copy": {"forged"}}); got.status != 200 {
		t.Fatal(got)
	}
	if got := post(t, http.DefaultClient, port, "/loop", io.MultiReader(strings.NewReader("body")), nil); got != "heard" {
		t.Fatal(got)
	}
	within(t, 3*time.Second, func() bool { return len(main.all()) >= 6 })
	time.Sleep(300 * time.Millisecond)
	if heard := main.all(); len(heard) != 6 {
		t.Errorf("two requests with two copies each were %d", len(heard))
	}
}

func TestAFilterCannotSendACopyElsewhere(t *testing.T) {
	port := freePort(t)
	var main, copySide, victim listener
	ours := &model.HeaderChange{}
	for _, name := range []string{"Limpet-Slot", "limpet-targets", "Limpet-Method", "Limpet-Copy"} {
		for _, slot := range []string{"s1", "s2", "s3"} {
			ours.Add = append(ours.Add, model.Header{Name: name, Value: slot})
		}
	}
	rule := mirrored("r", "main", model.Mirror{Backend: "copy", Numerator: 1, Denominator: 1})
	rule.Filters.Request = ours
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("copy", copySide.start(t)), backend("victim", victim.start(t)),
	}, rule, to("other", "victim", model.Filters{})))
	for _, body := range []io.Reader{nil, strings.NewReader("here"), &late{Reader: strings.NewReader("later")}} {
		post(t, http.DefaultClient, port, "/r", body, nil)
	}
	within(t, 3*time.Second, func() bool { return len(copySide.all()) == 3 })
	if len(victim.all()) > 0 || len(main.all()) != 3 || strings.Contains(strings.Join(copySide.all(), ""), "Limpet") {
		t.Errorf("%d to the backend, %v to another; copies: %v", len(main.all()), victim.all(), copySide.all())
	}
}

// late is a body that comes after the request's head.
type late struct {
	io.Reader
	waited bool
}

func (l *late) Read(p []byte) (int, error) {
	if !l.waited {
		time.Sleep(30 * time.Millisecond)
		l.waited = true
	}
	return l.Reader.Read(p)
}

func TestWhatATargetDoesNotTakeIsBounded(t *testing.T) {
	port := freePort(t)
	var main listener
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	var copySide listener
	all := func(backend string) model.Mirror { return model.Mirror{Backend: backend, Numerator: 1, Denominator: 1} }
	dir := run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("silent", netip.MustParseAddrPort(silent.Addr().String())), backend("copy", copySide.start(t)),
	}, mirrored("hanging", "main", all("silent")), mirrored("big", "main", all("copy"))))
	before := residentKB(t, dir)
	body := bytes.Repeat([]byte("x"), 1<<20)
	for range 400 { // 400 MB
		if got := post(t, http.DefaultClient, port, "/hanging", bytes.NewReader(body), nil); got != "heard" {
			t.Fatal(got)
		}
	}
	grown := residentKB(t, dir) - before
	t.Logf("HAProxy grew by %d KB", grown)
	if grown > 300<<10 {
		t.Errorf("HAProxy grew by %d KB", grown)
	}
	// A body that is too long is sent to nobody, not even its beginning.
	if got := post(t, http.DefaultClient, port, "/big", bytes.NewReader(bytes.Repeat(body, 5)), nil); got != "heard" {
		t.Fatal(got)
	}
	time.Sleep(200 * time.Millisecond)
	if heard := copySide.all(); len(heard) != 0 {
		t.Errorf("a long body was mirrored: %v", heard)
	}
}

func TestAbortedUploadsAndUpgradesAreNotMirroredAndNotKept(t *testing.T) {
	port := freePort(t)
	var main, copySide listener
	all := model.Mirror{Backend: "copy", Numerator: 1, Denominator: 1}
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("main", main.start(t)), backend("ws", upgrading(t)), backend("copy", copySide.start(t)),
	}, mirrored("r", "main", all), mirrored("ws", "ws", all)))
	part := bytes.Repeat([]byte("x"), 150_000)
	for range 600 { // 90 MB, more than what all threads keep
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "POST /r HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
		_, _ = conn.Write(part)
		_ = conn.Close()
	}
	got := raw(t, port, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nGET", func(got string) bool { return strings.HasSuffix(got, "GET") })
	if !strings.HasPrefix(got, "HTTP/1.1 101 ") {
		t.Errorf("a WebSocket: %q", got)
	}
	time.Sleep(300 * time.Millisecond)
	if heard := copySide.all(); len(heard) != 0 {
		t.Errorf("what was not complete was mirrored: %d, %s", len(heard), heard[0])
	}
	for i := range 8 {
		if got := post(t, http.DefaultClient, port, "/r", bytes.NewReader(bytes.Repeat(part, 5)), nil); got != "heard" {
			t.Fatal(got)
		}
		within(t, 3*time.Second, func() bool { return len(copySide.all()) == i+1 })
	}
}
