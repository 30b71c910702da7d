package spec

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/templates"
)

// serve lets a real HAProxy serve a Gateway with one plain listener, whose route leads to the handler. It returns the
// listener's address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	backend := httptest.NewServer(handler)
	t.Cleanup(backend.Close)
	at := backend.Listener.Addr().(*net.TCPAddr)
	port := freePort(t)
	shop := strings.NewReplacer("10.0.0.1", at.IP.String(), "port: 8080", fmt.Sprint("port: ", at.Port)).Replace(service("default", "shop"))
	config := translated(t, class+gateway("gw", fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port))+shop+
		route("r", "parentRefs: [{name: gw}]\nrules: [{backendRefs: [{name: shop, port: 80}]}]"))

	dir := haproxytest.Dir(t)
	renderer, err := templates.NewRenderer(templates.Settings{
		AdminSocket: haproxy.AdminSocket(dir), HealthSocket: filepath.Join(dir, "run", "health.sock"), Instance: filepath.Base(dir),
		HardStopAfter: "1h", SignKeys: []templates.SignKey{{ID: "a", Secret: "3Lm2TOntsDDfXdggrmms2YXqwLq1kjA2sLPGtYXreUk="}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var backends []string
	for _, entry := range config.Backends.Sorted() {
		backends = append(backends, entry.Key)
	}
	place := placement.Placement{}.Update(backends, nil)
	set, faults, err := renderer.Render(config, place)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	start(t, dir, set, place)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func start(t *testing.T, dir string, set files.Set, place placement.Placement) {
	t.Helper()
	store, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	number, faults, err := store.Write(set, place)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if err := store.Switch(number); err != nil {
		t.Fatal(err)
	}
	process, err := haproxy.NewProcess(haproxytest.Binary(t), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := process.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = process.Stop(ended)
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestTheHostHeaderArrivesUnmodified(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	for _, host := range []string{"shop.example.com", "Shop.EXAMPLE.com", "shop.example.com:80", "shop.example.com:8443", "shop.example.com.", "[::1]:80"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || string(got) != host {
			t.Errorf("%s: %d, arrives as %q, %v", host, response.StatusCode, got, err)
		}
	}
}

// TestPlainPortsSpeakHTTP2 shows what must be documented while it is so.
func TestPlainPortsSpeakHTTP2(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if got, err := io.ReadAll(response.Body); err != nil || response.ProtoMajor != 2 || string(got) != "HTTP/1.1" {
		t.Errorf("to the client it is %s, to the backend %s, %v", response.Proto, got, err)
	}
}

// TestARequestThatMayHaveBeenProcessedIsSentOnce has a back end that takes the request and closes the connection.
func TestARequestThatMayHaveBeenProcessedIsSentOnce(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		count.Store(0)
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if n := count.Load(); response.StatusCode != http.StatusBadGateway || n != 1 {
			t.Errorf("%s: %d after %d requests, want 502 after one", method, response.StatusCode, n)
		}
	}
}
