package spec

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
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
	port := freePort(t)
	run(t, class+gateway("gw", fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port))+shop(t, handler)+
		route("r", "parentRefs: [{name: gw}]\nrules: [{backendRefs: [{name: shop, port: 80}]}]"))
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// shop is the Service of a handler.
func shop(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	backend := httptest.NewServer(handler)
	t.Cleanup(backend.Close)
	at := backend.Listener.Addr().(*net.TCPAddr)
	return strings.NewReplacer("10.0.0.1", at.IP.String(), "port: 8080", fmt.Sprint("port: ", at.Port)).Replace(service("default", "shop"))
}

// run lets a real HAProxy serve the manifests until the test ends.
func run(t *testing.T, manifests string) {
	t.Helper()
	config := translated(t, manifests)
	dir := haproxytest.Dir(t)
	renderer, err := templates.NewRenderer(templates.Settings{
		AdminSocket: haproxy.AdminSocket(dir), HealthSocket: filepath.Join(dir, "run", "health.sock"), Instance: filepath.Base(dir),
		HardStopAfter: "1h", SignKeys: []templates.SignKey{{ID: "a", Secret: "3Lm2TOntsDDfXdggrmms2YXqwLq1kjA2sLPGtYXreUk="}},
	})
	if err != nil {
		t.Fatal(err)
	}
	place := placement.Placement{}.Update(placement.Backends(config), nil)
	set, faults, err := renderer.Render(config, place)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	start(t, dir, set, place)
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

// TestARequestThatMayHaveHadAnEffectIsSentOnce has a back end that takes the request and closes the connection. What only
// asks is sent again, as often as a connection that is refused would be.
func TestARequestThatMayHaveHadAnEffectIsSentOnce(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	for method, times := range map[string]int64{
		http.MethodPost: 1, http.MethodPut: 1, http.MethodPatch: 1, http.MethodDelete: 1,
		http.MethodGet: 3, http.MethodHead: 3, http.MethodOptions: 3,
	} {
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
		if n := count.Load(); response.StatusCode != http.StatusBadGateway || n != times {
			t.Errorf("%s: %d after %d requests, want 502 after %d", method, response.StatusCode, n, times)
		}
	}
}

// secret is a Secret with a certificate for the host.
func secret(t *testing.T, name, host string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	chain, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: %s}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}
`, name, encode("CERTIFICATE", chain), encode("PRIVATE KEY", private))
}

// TestAHostOnAConnectionOfAListener asks for a Host on a connection whose server name chose a listener.
func TestAHostOnAConnectionOfAListener(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	listener := "{name: %s, port: %d, protocol: HTTPS, hostname: '%s', tls: {certificateRefs: [{name: %[1]s}]}}"
	run(t, class+gateway("gw", fmt.Sprintf(listener, "exact", port, "a.example.com"), fmt.Sprintf(listener, "wild", port, "*.example.com"))+
		secret(t, "exact", "a.example.com")+secret(t, "wild", "*.example.com")+
		shop(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })+
		route("r", "parentRefs: [{name: gw}]\nrules: [{matches: [{path: {value: /here}}], backendRefs: [{name: shop, port: 80}]}]"))
	for _, test := range []struct {
		name, host, path string
		want             int
	}{
		{"a.example.com", "a.example.com", "/here", 200},
		{"b.example.com", "b.example.com", "/here", 200},
		{"b.example.com", "c.example.com", "/here", 200},
		{"a.example.com", "a.example.com", "/elsewhere", 404},
		{"a.example.com", "example.com", "/here", 404},
		{"a.example.com", "example.org", "/here", 404},
		{"b.example.com", "example.org", "/here", 404},
		{"a.example.com", "b.example.com", "/here", 421},
		{"b.example.com", "a.example.com", "/here", 421},
	} {
		dialer := &tls.Dialer{Config: &tls.Config{ServerName: test.name, InsecureSkipVerify: true}}
		transport := &http.Transport{DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
		}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+test.host+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		transport.CloseIdleConnections()
		if response.StatusCode != test.want {
			t.Errorf("server name %s, %s%s: %d, want %d", test.name, test.host, test.path, response.StatusCode, test.want)
		}
	}
}
