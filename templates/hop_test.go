package templates

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// bounded is a rule with a deadline.
func bounded(id, backend string, deadline time.Duration) *model.Rule {
	rule := to(id, backend, model.Filters{})
	rule.RequestTimeout = deadline
	return rule
}

func TestADeadlineEndsARequestUntilTheAnswerBegins(t *testing.T) {
	port := freePort(t)
	short, attempt, free := bounded("brief", "slow", 400*time.Millisecond), bounded("attempt", "slow", 5*time.Second), bounded("free", "slow", model.Unlimited)
	attempt.BackendTimeout = 200 * time.Millisecond
	run(t, serving(port, []table.Entry[*model.Backend]{backend("slow", slow(t))}, short, attempt, free))
	for path, limit := range map[string]time.Duration{"/brief": 400 * time.Millisecond, "/attempt": 200 * time.Millisecond} {
		start := time.Now()
		got := send(t, port, "GET", path+"?wait=4s", nil)
		if took := time.Since(start); got.status != 504 || took < limit || took > limit+time.Second {
			t.Errorf("%s: %d after %v", path, got.status, took)
		}
		if got := send(t, port, "GET", path+"?wait=50ms&pause=700ms", nil); got.status != 200 || got.body != "beginend" {
			t.Errorf("%s, an answer that takes longer: %d %q", path, got.status, got.body)
		}
	}
	if got := send(t, port, "GET", "/free?wait=600ms", nil); got.status != 200 {
		t.Errorf("0s: %d", got.status)
	}
}

func TestWhatTheHopSaysNobodyElseCanSay(t *testing.T) {
	port := freePort(t)
	rule := bounded("hop", "one", 5*time.Second)
	rule.Filters.Request = &model.HeaderChange{Set: []model.Header{{Name: "Limpet-Slot", Value: "s2"}}}
	config := serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one")), backend("two", echo(t, "two"))}, rule, bounded("other", "two", time.Second))
	run(t, config)
	lies := http.Header{"Limpet-Slot": {"s2", "s2"}, "Limpet-Attempt": {"1"}, "Limpet-Endpoint": {"e9"}, "Limpet-Other": {"x"}}
	got := send(t, port, "GET", "/hop?answer=Limpet-Endpoint:e9", lies)
	if got.server != "one" || strings.Contains(got.body, "\nLimpet-") || got.header["Limpet-Endpoint"] != nil {
		t.Errorf("%v", got)
	}
	if !strings.Contains(got.body, "X-Forwarded-For: 127.0.0.1\r\n") || !strings.Contains(got.body, "Host: shop.example\r\n") {
		t.Errorf("what the backend sees: %s", got.body)
	}
}

func TestASessionGoesThroughTheHop(t *testing.T) {
	port := freePort(t)
	rule := bounded("hop", "both", 5*time.Second)
	rule.Filters.Response = &model.HeaderChange{Set: []model.Header{{Name: "X-Set", Value: "v"}}}
	rule.Split[0].Session = &model.Session{ID: "s1", Scope: "x", Backend: "b", Carrier: model.Cookie, Name: "shop", Path: "/"}
	dead := bounded("dead", "dead", 5*time.Second)
	dead.Filters.Response, dead.Split[0].Session = rule.Filters.Response, rule.Split[0].Session
	config := serving(port, []table.Entry[*model.Backend]{
		backend("both", echo(t, "one"), echo(t, "two")), backend("dead", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(t))),
	}, rule, dead)
	run(t, config)
	first := send(t, port, "GET", "/hop", nil)
	cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(cookie, "shop=1a.b.e") || first.header.Get("X-Set") != "v" {
		t.Fatalf("the first answer: %v", first.header)
	}
	for range 10 {
		got := send(t, port, "GET", "/hop?answer=Limpet-Endpoint:e9", http.Header{"Cookie": {cookie}})
		if got.server != first.server || got.header["Set-Cookie"] != nil || got.header.Get("X-Set") != "v" {
			t.Errorf("moved: %v", got)
		}
	}
	if got := send(t, port, "GET", "/dead", nil); got.status != 503 || got.header["Set-Cookie"] != nil || got.header.Get("X-Set") != "v" {
		t.Errorf("HAProxy's own answer: %d %v", got.status, got.header)
	}
}

// summing is a backend that answers with the length and the hash of the request's body, and its trailer.
func summing(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := md5.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d %x %v %s", n, sum.Sum(nil), err, r.Trailer.Get("X-Trailer"))
	}))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// clients speak HTTP/1.1, and HTTP/2 with prior knowledge.
func clients() map[string]*http.Client {
	h1, h2 := new(http.Protocols), new(http.Protocols)
	h1.SetHTTP1(true)
	h2.SetUnencryptedHTTP2(true)
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: &http.Transport{Protocols: h1}}, "HTTP/2": {Transport: &http.Transport{Protocols: h2}},
	}
}

func post(t testing.TB, client *http.Client, port uint16, path string, body io.Reader, trailer http.Header) string {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Trailer = trailer
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBodiesGoThroughTheHopWhole(t *testing.T) {
	port := freePort(t)
	run(t, serving(port, []table.Entry[*model.Backend]{backend("sum", summing(t))}, bounded("hop", "sum", 10*time.Second)))
	for name, client := range clients() {
		for _, size := range []int{0, 5_000, 100_000, 1 << 20, 8 << 20} {
			body := bytes.Repeat([]byte("limpet!\x00\xff"), size/9+1)[:size]
			sum := md5.Sum(body)
			want := fmt.Sprintf("%d %s <nil> ", size, hex.EncodeToString(sum[:]))
			if got := post(t, client, port, "/hop", bytes.NewReader(body), nil); got != want {
				t.Errorf("%s, %d bytes: %q", name, size, got)
			}
			chunked := io.MultiReader(bytes.NewReader(body))
			if got := post(t, client, port, "/hop", chunked, http.Header{"X-Trailer": {"last"}}); got != want+"last" {
				t.Errorf("%s, %d bytes in chunks: %q", name, size, got)
			}
		}
	}
}

func TestAWebSocketOutlivesTheDeadline(t *testing.T) {
	port := freePort(t)
	run(t, serving(port, []table.Entry[*model.Backend]{backend("ws", upgrading(t))}, bounded("hop", "ws", 300*time.Millisecond)))
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /hop HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res, err)
	}
	defer func() { _ = res.Body.Close() }()
	for i := range 3 {
		time.Sleep(250 * time.Millisecond)
		text := fmt.Sprintf("frame %d;", i)
		_, _ = io.WriteString(conn, text)
		if got, err := reader.ReadString(';'); got != text || err != nil {
			t.Fatalf("after %d: %q %v", i, got, err)
		}
	}
}

// upgrading is a backend that switches protocols and says again what it hears.
func upgrading(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			http.Error(w, "no WebSocket", http.StatusBadRequest)
			return
		}
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(accept[:])+"\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	}))
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// h2c is a backend that speaks HTTP/2 with prior knowledge, and counts requests.
func h2c(t testing.TB, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func http2Backend(name string, address netip.AddrPort) table.Entry[*model.Backend] {
	entry := backend(name, address)
	entry.Value.HTTP2 = true
	return entry
}

func TestAStreamGoesBothWaysThroughTheHop(t *testing.T) {
	port := freePort(t)
	repeat := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		if r.URL.Query().Has("refuse") {
			w.Header().Set("Grpc-Status", "12")
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() && lines.Text() != "end" {
			fmt.Fprintln(w, lines.Text())
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0")
	}
	run(t, serving(port, []table.Entry[*model.Backend]{http2Backend("grpc", h2c(t, repeat))}, bounded("hop", "grpc", 400*time.Millisecond), to("plain", "grpc", model.Filters{}),
		mirrored("mirrored", "grpc", model.Mirror{Backend: "grpc", Numerator: 1, Denominator: 1})))
	for _, path := range []string{"/plain", "/hop", "/mirrored"} {
		body, write := io.Pipe()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		res, err := clients()["HTTP/2"].Do(req)
		if err != nil {
			t.Fatal(path, err)
		}
		answer := bufio.NewReader(res.Body)
		for i := range 3 {
			time.Sleep(250 * time.Millisecond)
			text := fmt.Sprintf("message %d\n", i)
			_, _ = io.WriteString(write, text)
			if got, err := answer.ReadString('\n'); got != text || err != nil {
				t.Fatalf("%s: %q %v", path, got, err)
			}
		}
		_, _ = io.WriteString(write, "end\n") // The server ends first.
		if rest, err := io.ReadAll(answer); len(rest) > 0 || err != nil || res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: the end: %q %v %v", path, rest, err, res.Trailer)
		}
		_ = write.Close()
		_ = res.Body.Close()
	}
}

func TestWhatIsGivenUpIsCancelledBehindTheHop(t *testing.T) {
	port := freePort(t)
	var begun, cancelled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		select {
		case <-r.Context().Done():
			cancelled.Add(1)
		case <-time.After(5 * time.Second):
		}
	}))
	defer server.Close()
	run(t, serving(port, []table.Entry[*model.Backend]{backend("stuck", netip.MustParseAddrPort(server.Listener.Addr().String()))},
		bounded("hop", "stuck", 300*time.Millisecond)))
	if got := send(t, port, "GET", "/hop", nil); got.status != 504 {
		t.Errorf("%d", got.status)
	}
	within(t, 2*time.Second, func() bool { return begun.Load() == 1 && cancelled.Load() == 1 })
}

func within(t testing.TB, limit time.Duration, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v", limit)
		}
	}
}
