package templates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/originator"
	"github.com/limpet-gateway/limpet/internal/table"
)

// authority is a CA of the test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue makes a certificate for servers and clients, and its PEM with the key.
func (a *authority) issue(t testing.TB, names ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pair, err := tls.X509KeyPair(text, private)
	if err != nil {
		t.Fatal(err)
	}
	return pair, string(text) + string(private)
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// overTLS asks a port for https://shop.example/ and returns the status, or 0 and the error.
func overTLS(t testing.TB, port uint16, config *tls.Config) (int, error) {
	t.Helper()
	config.ServerName = "shop.example"
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/r", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example"
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, nil
}

func TestClientsShowCertificates(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	_, shop := ours.issue(t, "shop.example")
	good, _ := ours.issue(t, "client")
	wrong, _ := theirs.issue(t, "client")
	open, strict, other, lax := freePort(t), freePort(t), freePort(t), freePort(t)
	config := serving(0, []table.Entry[*model.Backend]{backend("one", echo(t, "one"))}, to("r", "one", model.Filters{}))
	config.Frame.Ports = nil
	hosts := config.Hosts.Edit()
	port := func(id string, bind uint16, clients *model.ClientValidation) {
		config.Frame.Ports = append(config.Frame.Ports, model.Port{
			ID: id, Owner: "Gateway a/b", Address: netip.MustParseAddr("127.0.0.1"), Bind: bind, Public: 443, Clients: clients,
			Servers: []model.TLSServer{{ID: "t" + id, Certificates: []string{"shop"}}},
		})
		hosts.Set(model.HostKey(id, "*"), &model.Host{VirtualHost: "v1", Server: "t" + id})
	}
	port("p1", open, nil)
	port("p2", strict, &model.ClientValidation{Authority: "ours"})
	port("p3", other, &model.ClientValidation{Authority: "theirs"})
	port("p4", lax, &model.ClientValidation{Authority: "ours", InsecureFallback: true})
	config.Hosts = hosts.Table()
	config.Certificates = table.Of(table.Entry[*model.Certificate]{Key: "shop", Value: &model.Certificate{ID: "shop", PEM: shop}})
	config.Authorities = table.Of(
		table.Entry[*model.Authority]{Key: "ours", Value: &model.Authority{ID: "ours", PEM: ours.pem}},
		table.Entry[*model.Authority]{Key: "theirs", Value: &model.Authority{ID: "theirs", PEM: theirs.pem}})
	run(t, config)
	for _, c := range []struct {
		name        string
		port        uint16
		certificate *tls.Certificate
		served      bool
	}{
		{"open", open, nil, true}, {"open, one shown", open, &wrong, true},
		{"strict", strict, &good, true}, {"strict, none", strict, nil, false}, {"strict, wrong", strict, &wrong, false},
		{"other", other, &wrong, true}, {"other, wrong", other, &good, false},
		{"lax", lax, &good, true}, {"lax, none", lax, nil, true}, {"lax, wrong", lax, &wrong, true},
	} {
		asked := false
		status, err := overTLS(t, c.port, &tls.Config{RootCAs: ours.pool(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			if c.certificate == nil {
				return &tls.Certificate{}, nil
			}
			return c.certificate, nil
		}})
		if (status == 200) != c.served || asked != (c.port != open) {
			t.Errorf("%s: %d %v, asked for a certificate: %v", c.name, status, err, asked)
		}
	}
	// A session that began where nobody is asked, or with another authority, opens nothing.
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cache := tls.NewLRUClientSessionCache(0)
		for _, step := range []struct {
			port        uint16
			certificate []tls.Certificate
			served      bool
		}{{open, nil, true}, {strict, nil, false}, {lax, []tls.Certificate{good}, true}, {strict, []tls.Certificate{good}, true}, {other, nil, false}} {
			status, err := overTLS(t, step.port, &tls.Config{
				RootCAs: ours.pool(), ClientSessionCache: cache, Certificates: step.certificate, MinVersion: version, MaxVersion: version,
			})
			if (status == 200) != step.served {
				t.Errorf("with a session to resume: %d %v, want served %v", status, err, step.served)
			}
		}
	}
}

// secure is a backend that speaks TLS and answers with what it was asked for and shown.
func secure(t testing.TB, certificate tls.Certificate, clients *x509.CertPool, protocols ...string) netip.AddrPort {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := ""
		if len(r.TLS.PeerCertificates) > 0 {
			shown = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.TLS.ServerName, r.TLS.NegotiatedProtocol, shown)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients, NextProtos: protocols}
	if clients != nil {
		server.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	server.EnableHTTP2 = len(protocols) > 0 && protocols[0] == "h2"
	server.StartTLS()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func TestBackendsAreSpokenToOverTLS(t *testing.T) {
	port := freePort(t)
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	certificate, _ := ours.issue(t, "inner.example")
	_, client := ours.issue(t, "limpet")
	both, old := secure(t, certificate, nil, "h2", "http/1.1"), secure(t, certificate, nil, "http/1.1")
	mutual := secure(t, certificate, ours.pool(), "http/1.1")
	var backends []table.Entry[*model.Backend]
	var rules []*model.Rule
	add := func(id string, address netip.AddrPort, http2 bool, tls model.BackendTLS) {
		entry := backend(id, address)
		entry.Value.HTTP2, entry.Value.TLS = http2, &tls
		backends = append(backends, entry)
		rules = append(rules, to("r"+id, id, model.Filters{Request: &model.HeaderChange{Set: []model.Header{{Name: "A", Value: "b"}}}}))
	}
	good := model.BackendTLS{ServerName: "inner.example", Authority: "ours"}
	add("plain", both, false, good)
	add("two", both, true, good)
	add("old", old, false, good)
	add("wrongname", old, false, model.BackendTLS{ServerName: "outer.example", Authority: "ours"})
	add("wrongca", old, false, model.BackendTLS{ServerName: "inner.example", Authority: "theirs"})
	add("system", old, false, model.BackendTLS{ServerName: "inner.example"})
	add("mutual", mutual, false, model.BackendTLS{ServerName: "inner.example", Authority: "ours", Certificate: "client"})
	add("nobody", mutual, false, good)
	add("cleartext", echo(t, "one"), false, good)
	config := serving(port, backends, rules...)
	config.Certificates = table.Of(table.Entry[*model.Certificate]{Key: "client", Value: &model.Certificate{ID: "client", PEM: client}})
	config.Authorities = table.Of(
		table.Entry[*model.Authority]{Key: "ours", Value: &model.Authority{ID: "ours", PEM: ours.pem}},
		table.Entry[*model.Authority]{Key: "theirs", Value: &model.Authority{ID: "theirs", PEM: theirs.pem}})
	run(t, config)
	for path, want := range map[string]string{
		"/rplain": "HTTP/1.1 inner.example http/1.1 ", "/rtwo": "HTTP/2.0 inner.example h2 ", "/rold": "HTTP/1.1 inner.example http/1.1 ",
		"/rmutual": "HTTP/1.1 inner.example http/1.1 limpet",
	} {
		if got := send(t, port, "GET", path, nil); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %q, want %q", path, got.status, got.body, want)
		}
	}
	for _, path := range []string{"/rwrongname", "/rwrongca", "/rsystem", "/rnobody", "/rcleartext"} {
		if got := send(t, port, "GET", path, nil); got.status != 503 && got.status != 502 {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
}

func TestSubjectAltNamesAreWhatCounts(t *testing.T) {
	port := freePort(t)
	ours := newAuthority(t, "ours")
	certificate, _ := ours.issue(t, "one.example", "two.example")
	asked := secure(t, certificate, nil, "h2", "http/1.1")
	var backends []table.Entry[*model.Backend]
	var rules []*model.Rule
	add := func(id string, http2 bool, names ...model.SubjectAltName) {
		entry := backend(id, asked)
		entry.Value.HTTP2 = http2
		entry.Value.TLS = &model.BackendTLS{ServerName: "sent.example", Authority: "ours", SubjectAltNames: names}
		backends = append(backends, entry)
		rules = append(rules, to("r"+id, id, model.Filters{Request: &model.HeaderChange{Set: []model.Header{{Name: "A", Value: "b"}}}}))
	}
	add("match", false, model.SubjectAltName{DNS: "other.example"}, model.SubjectAltName{DNS: "two.example"})
	add("second", true, model.SubjectAltName{DNS: "one.example"})
	add("mismatch", false, model.SubjectAltName{DNS: "sent.example"})
	add("uri", false, model.SubjectAltName{URI: "spiffe://one.example/x"})
	config := serving(port, backends, rules...)
	config.Authorities = table.Of(table.Entry[*model.Authority]{Key: "ours", Value: &model.Authority{ID: "ours", PEM: ours.pem}})
	dir := run(t, config)
	if err := os.MkdirAll(filepath.Dir(originator.Socket(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	socket, err := originator.Listen(originator.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		originator.New(dir, slog.New(slog.DiscardHandler)).Serve(ctx, socket)
	}()
	t.Cleanup(func() { cancel(); <-done })
	for path, want := range map[string]string{"/rmatch": "HTTP/1.1 sent.example  ", "/rsecond": "HTTP/2.0 sent.example h2 "} {
		if got := send(t, port, "GET", path, nil); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %q, want %q", path, got.status, got.body, want)
		}
	}
	for _, path := range []string{"/rmismatch", "/ruri"} {
		if got := send(t, port, "GET", path, nil); got.status != 502 && got.status != 503 {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
}

func TestANameOutsideIsResolved(t *testing.T) {
	port := freePort(t)
	outside := &model.Backend{Name: "out", External: fmt.Sprintf("localhost:%d", echo(t, "outside").Port())}
	run(t, serving(port, []table.Entry[*model.Backend]{{Key: "out", Value: outside}}, bounded("r", "out", 5*time.Second)))
	if got := send(t, port, "GET", "/r", nil); got.status != 200 || got.server != "outside" {
		t.Errorf("%d %q", got.status, got.body)
	}
}
