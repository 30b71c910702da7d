package behaviour

import (
	"crypto/tls"
	"strings"
	"sync/atomic"
	"testing"
)

// shower shows a certificate, or none if it has none, and notes that it was asked.
type shower struct {
	certificate tls.Certificate
	asked       atomic.Int32
}

func (s *shower) show(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	s.asked.Add(1)
	return &s.certificate, nil
}

// client has a certificate that the authority signed.
func (a *authority) client() *shower { return showing(a.pair("client.example")) }

func showing(chain, key string) *shower {
	certificate, err := tls.X509KeyPair([]byte(chain), []byte(key))
	if err != nil {
		panic(err)
	}
	return &shower{certificate: certificate}
}

// frontend gives a Gateway the demands on its clients.
func frontend(gateway, demands string) string {
	return strings.Replace(gateway, "  listeners:", "  tls: {frontend: {"+demands+"}}\n  listeners:", 1)
}

const byCA = "validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}"

func clientManifests(trusted ...*authority) string {
	return frontend(openGateway(`
  - {name: strict, port: 443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: own}]}}
  - {name: asking, port: 8443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: own}]}}
  - {name: broken, port: 9443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: own}]}}
  - {name: free, port: 10443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: own}]}}
  - {name: plain, port: 80, protocol: HTTP}
`), "default: {"+byCA+"}, perPort: ["+
		"{port: 8443, tls: {"+strings.Replace(byCA, "validation: {", "validation: {mode: AllowInsecureFallback, ", 1)+"}}, "+
		"{port: 9443, tls: {"+strings.Replace(byCA, "name: ca", "name: missing", 1)+"}}, "+
		"{port: 10443, tls: {}}, {port: 80, tls: {"+byCA+"}}]") +
		bundle("ca", trusted...) + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]") +
		set("red", "  - {name: more, port: 443, protocol: HTTPS, hostname: red.ex.com, tls: {certificateRefs: [{name: own}]}, "+fromAll+"}\n") +
		ofSet("red", "red", "")
}

func TestClientsProveWhoTheyAreByPort(t *testing.T) {
	t.Parallel()
	ca, wrong := newAuthority(), newAuthority()
	own := certificate("own", "a.ex.com", "red.ex.com")
	w := Run(t, clientManifests(ca)+own+inside("red", own), pods("one", 1), pods("red", 1))
	selfSigned := showing(pair("client.example"))
	oldChain, oldKey := expired("client.example")
	for _, c := range []struct {
		name   string
		client *shower
		want   bool
	}{
		{"none", &shower{}, false}, {"one of the CA", ca.client(), true}, {"one of another CA", wrong.client(), false},
		{"one that signed itself", selfSigned, false}, {"an expired one of nobody", showing(oldChain, oldKey), false},
	} {
		for _, alpn := range []string{"http/1.1", "h2"} {
			for _, host := range []string{"a.ex.com", "red.ex.com"} {
				before := c.client.asked.Load()
				r := request{host: host, target: "/red", tls: true, client: c.client}
				if alpn == "http/1.1" {
					if got := w.ask(t, r); (got.err == nil) != c.want {
						t.Errorf("%s on %s: %s, want an answer: %v", c.name, host, got.outcome(), c.want)
					}
				} else if err := w.handshakeH2(t, r); (err == nil) != c.want {
					t.Errorf("%s on %s over HTTP/2: %v, want an answer: %v", c.name, host, err, c.want)
				}
				if c.client.asked.Load() == before {
					t.Errorf("%s on %s: the client was not asked for a certificate", c.name, host)
				}
			}
		}
		before := c.client.asked.Load()
		if got := w.ask(t, request{host: "a.ex.com", target: "/", tls: true, port: 8443, client: c.client}).outcome(); got != "one" {
			t.Errorf("%s where everybody is let in: %s", c.name, got)
		}
		if c.client.asked.Load() == before {
			t.Errorf("%s where everybody is let in: the client was not asked for a certificate", c.name)
		}
		before = c.client.asked.Load()
		if got := w.ask(t, request{host: "a.ex.com", target: "/", tls: true, port: 10443, client: c.client}).outcome(); got != "one" {
			t.Errorf("%s where nothing is demanded: %s", c.name, got)
		}
		if c.client.asked.Load() != before {
			t.Errorf("%s where nothing is demanded: the client was asked for a certificate", c.name)
		}
		if got := w.ask(t, request{host: "a.ex.com", target: "/", tls: true, port: 9443, client: c.client}); got.err == nil {
			t.Errorf("%s where no CA is valid: %s", c.name, got.outcome())
		}
	}
	if got := w.ask(t, get("any.net/")).outcome(); got != "one" {
		t.Errorf("plain HTTP: %s", got)
	}
	for listener, reason := range map[string]string{"strict": "Programmed", "asking": "Programmed", "broken": "Invalid", "free": "Programmed", "plain": "Programmed"} {
		if got := w.listenerCondition(t, "gw", listener, "Programmed"); got.Reason != reason {
			t.Errorf("%s: %+v", listener, got)
		}
	}
	if got := w.condition(t, "Gateway default/gw", "InsecureFrontendValidationMode"); got.Status != "True" || got.Reason != "ConfigurationChanged" {
		t.Errorf("%+v", got)
	}
}

// handshakeH2 makes a connection for HTTP/2 and waits for the server's first frame: in TLS 1.3 a client hears only then
// that its certificate was refused.
func (w *World) handshakeH2(t testing.TB, r request) error {
	t.Helper()
	r.alpn = []string{"h2"}
	conn, err := w.dial(t.Context(), r)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 9))
	return err
}

func TestWhoseClientsAreServedChangesAtOnce(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(), newAuthority()
	own := certificate("own", "a.ex.com", "red.ex.com")
	own += inside("red", own)
	ask := func(client *shower) request { return request{host: "a.ex.com", target: "/", tls: true, client: client} }
	w := Run(t, clientManifests(ca)+own, pods("one", 1), pods("red", 1))
	first, second := ca.client(), other.client()
	w.eventually(t, ask(first), "one")
	w.Apply(t, clientManifests(ca, other)+own)
	w.eventually(t, ask(first), "one")
	w.eventually(t, ask(second), "one")
	w.Apply(t, clientManifests(other)+own)
	w.eventually(t, ask(second), "one")
	if got := w.ask(t, ask(first)); got.err == nil {
		t.Errorf("a client of a CA that is gone: %s", got.outcome())
	}
	// Without any CA the port is closed rather than open to everybody.
	w.Apply(t, strings.Replace(clientManifests(other), "kind: ConfigMap\nmetadata: {name: ca}", "kind: ConfigMap\nmetadata: {name: gone}", 1)+own)
	for name, client := range map[string]*shower{"the CA's": second, "none": {}} {
		if got := w.ask(t, ask(client)); got.err == nil {
			t.Errorf("%s, with the ConfigMap gone: %s", name, got.outcome())
		}
	}
	if got := w.ask(t, request{host: "a.ex.com", target: "/", tls: true, port: 10443}).outcome(); got != "one" {
		t.Errorf("another port: %s", got)
	}
	w.Apply(t, clientManifests(ca)+own)
	w.eventually(t, ask(first), "one")
}

func TestARenewedCertificateIsShownWithoutAReload(t *testing.T) {
	t.Parallel()
	manifests := listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: one}, {name: two}]}}
`) + certificate("two", "two.ex.com") + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]")
	w := Run(t, manifests+certificate("one", "old.ex.com"), pods("one", 1))
	shown := func(sni string) string {
		return w.ok(t, request{host: sni, target: "/", tls: true}).shown()
	}
	if got := shown("any.net"); got != "old.ex.com" {
		t.Fatalf("%s is shown", got)
	}
	reloads := w.Reloads(t)
	parameters := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
	for _, name := range []string{"new.ex.com", "newer.ex.com"} {
		chain, key := pair(name)
		w.Apply(t, manifests+secret("one", strings.ReplaceAll(chain, "\n", "\r\n"), parameters+key))
		if got := shown("any.net"); got != name {
			t.Errorf("%s is shown, want %s", got, name)
		}
	}
	// Of several certificates each client gets the one that fits.
	if got := shown("two.ex.com"); got != "two.ex.com" {
		t.Errorf("%s is shown, want two.ex.com", got)
	}
	if now := w.Reloads(t); now != reloads {
		t.Errorf("%d reloads", now-reloads)
	}
}
