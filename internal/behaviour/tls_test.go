package behaviour

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const tlsListeners = `
  - {name: exact, port: 443, protocol: HTTPS, hostname: a.ex.com, tls: {certificateRefs: [{name: a}]}}
  - {name: wild, port: 443, protocol: HTTPS, hostname: "*.ex.com", tls: {certificateRefs: [{name: wild}]}}
  - {name: deep, port: 443, protocol: HTTPS, hostname: "*.deep.ex.com", tls: {certificateRefs: [{name: deep}]}}
  - {name: several, port: 443, protocol: HTTPS, hostname: several.org, tls: {certificateRefs: [{name: b}, {name: several}]}}
  - {name: every, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: a}, {name: wild}, {name: b}]}}
  - {name: plain, port: 80, protocol: HTTP}
`

func tlsManifests() string {
	var b strings.Builder
	b.WriteString(listeners(tlsListeners))
	b.WriteString(certificate("a", "a.ex.com") + certificate("wild", "*.ex.com") + certificate("deep", "*.deep.ex.com"))
	b.WriteString(certificate("b", "b.org", "www.b.org") + certificate("several", "several.org"))
	for _, section := range []string{"exact", "wild", "deep", "several", "every", "plain"} {
		b.WriteString(routeOf(section, "parentRefs: [{name: gw, sectionName: "+section+"}]\nrules:\n- backendRefs: [{name: "+section+", port: 80}]"))
	}
	return b.String()
}

func TestTheSNIChoosesListenerAndCertificate(t *testing.T) {
	t.Parallel()
	w := Run(t, tlsManifests(), pods("exact", 1), pods("wild", 1), pods("deep", 1), pods("several", 1), pods("every", 1), pods("plain", 1))
	for _, c := range []struct {
		sni, host, shown, want string
		port                   int
	}{
		{"a.ex.com", "a.ex.com", "a.ex.com", "exact", 443},
		{"A.EX.com", "a.ex.com", "a.ex.com", "exact", 443},
		{"b.ex.com", "b.ex.com", "*.ex.com", "wild", 443},
		{"x.y.z.ex.com", "x.y.z.ex.com", "*.ex.com", "wild", 443},
		{"1.2.3.4.5.6.7.8.9.ex.com", "1.2.3.4.5.6.7.8.9.ex.com", "*.ex.com", "wild", 443},
		{"x.a.ex.com", "x.a.ex.com", "*.ex.com", "wild", 443},
		{"x.deep.ex.com", "x.deep.ex.com", "*.deep.ex.com", "deep", 443},
		{"y.x.deep.ex.com", "y.x.deep.ex.com", "*.deep.ex.com", "deep", 443},
		{"deep.ex.com", "deep.ex.com", "*.ex.com", "wild", 443},
		{"several.org", "several.org", "several.org", "several", 443},
		// Every listener of port 444 takes every name; the certificate is the one that fits, else the first.
		{"a.ex.com", "a.ex.com", "a.ex.com", "every", 444},
		{"b.ex.com", "b.ex.com", "*.ex.com", "every", 444},
		{"www.b.org", "www.b.org", "b.org www.b.org", "every", 444},
		{"unknown.net", "unknown.net", "a.ex.com", "every", 444},
		{"-", "unknown.net", "a.ex.com", "every", 444},
	} {
		a := w.ask(t, request{host: c.host, target: "/", sni: c.sni, port: c.port, tls: true})
		if a.outcome() != c.want || a.shown() != c.shown {
			t.Errorf("SNI %s on port %d: %s with the certificate of %q, want %s with %q", c.sni, c.port, a.outcome(), a.shown(), c.want, c.shown)
		}
	}
	for _, sni := range []string{"unknown.net", "ex.com", "-"} {
		if a := w.ask(t, request{host: "a.ex.com", target: "/", sni: sni, tls: true}); a.err == nil {
			t.Errorf("SNI %s on port 443: %s with the certificate of %q, want no handshake", sni, a.outcome(), a.shown())
		}
	}
	t.Run("a Host of another listener on a connection", func(t *testing.T) {
		// RFC 9110, 15.5.20: the client made the connection for another host, and must make one for this.
		for _, c := range []struct{ sni, host, want string }{
			{"b.ex.com", "a.ex.com", "421"}, {"a.ex.com", "b.ex.com", "421"}, {"several.org", "a.ex.com", "421"}, {"x.deep.ex.com", "b.ex.com", "421"},
			{"b.ex.com", "c.ex.com", "wild"}, {"b.ex.com", "B.ex.com.:443", "wild"},
		} {
			if got := w.ask(t, request{host: c.host, target: "/", sni: c.sni, tls: true}).outcome(); got != c.want {
				t.Errorf("SNI %s, Host %s: %s, want %s", c.sni, c.host, got, c.want)
			}
		}
		if got := w.ask(t, request{host: "other.net", target: "/", sni: "a.ex.com", tls: true}).outcome(); got != "404" && got != "421" {
			t.Errorf("SNI a.ex.com, Host other.net: %s", got)
		}
	})
	t.Run("ports are apart", func(t *testing.T) {
		w.check(t, []row{
			{"plain", get("a.ex.com/"), "plain"},
			{"plain, another host", get("any.net/"), "plain"},
		})
	})
}

func TestPlainHTTPToATLSPortIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`)+certificate("a", "a.ex.com")+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 1))
	for name, bytes := range map[string]string{
		"HTTP": get("a.ex.com/").text(), "nothing": "", "half a hello": "\x16\x03\x01\x02\x00\x01", "noise": strings.Repeat("\xff", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.at(443))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, bytes)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if got, err := io.ReadAll(conn); len(got) > 7 || err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q %v, want a closed connection", got, err)
			}
		})
	}
	if got := w.ask(t, request{host: "a.ex.com", target: "/", tls: true}).outcome(); got != "one" {
		t.Errorf("TLS: %s, want one", got)
	}
}

func TestTLSVersionsAndProtocols(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`)+certificate("a", "a.ex.com")+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 1))
	for _, c := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"http/1.1"}, "http/1.1"}, {[]string{"h2", "http/1.1"}, "h2"}, {[]string{"h2"}, "h2"}} {
		conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: "a.ex.com", NextProtos: c.offered, InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", w.at(443))
		if err != nil {
			t.Errorf("ALPN %v: %v", c.offered, err)
			continue
		}
		if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("ALPN %v: %q, want %q", c.offered, got, c.want)
		}
		_ = conn.Close()
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			ServerName: "a.ex.com", InsecureSkipVerify: true, MinVersion: version, MaxVersion: version,
		}}).DialContext(t.Context(), "tcp", w.at(443))
		if good := version >= tls.VersionTLS12; good != (err == nil) {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// h2 is a client that speaks HTTP/2 over one connection.
func (w *World) h2(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			return (&tls.Dialer{Config: &tls.Config{ServerName: host, NextProtos: []string{"h2"}, InsecureSkipVerify: true}}).DialContext(ctx, network, w.at(443))
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func TestHTTP2RequestsAreRoutedEachOnItsOwn(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`)+certificate("a", "a.ex.com")+route("all", `
hostnames: [a.ex.com]
rules:
- backendRefs: [{name: one, port: 80}]
- matches: [{path: {value: /two}, headers: [{name: a, value: "1"}]}]
  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Two, value: "yes"}]}}]
  backendRefs: [{name: two, port: 80}]
- matches: [{path: {value: /session}}]
  backendRefs: [{name: two, port: 80}]
  sessionPersistence: {type: Cookie, cookie: {name: c}}
- matches: [{path: {value: /away}}]
  filters: [{type: RequestRedirect, requestRedirect: {hostname: b.ex.com}}]`), pods("one", 1), pods("two", 3))
	client := w.h2(t)
	ask := func(path string, body io.Reader, headers ...string) answer {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.ex.com"+path, body)
		if err != nil {
			t.Error(err)
			return answer{}
		}
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Add(name, value)
		}
		res, err := client.Do(req)
		if err != nil {
			return answer{err: err}
		}
		defer func() { _ = res.Body.Close() }()
		if res.ProtoMajor != 2 {
			t.Errorf("%s: %s", path, res.Proto)
		}
		text, err := io.ReadAll(res.Body)
		a := answer{status: res.StatusCode, header: res.Header, err: err, tls: res.TLS}
		if res.Header.Get("Pod") != "" {
			_ = json.Unmarshal(text, &a.echo)
		}
		return a
	}
	session := ask("/session", nil)
	cookie, _, _ := strings.Cut(session.header.Get("Set-Cookie"), ";")
	if session.outcome() != "two" || !strings.HasPrefix(cookie, "c=1a.") || !strings.Contains(session.header.Get("Set-Cookie"), "; Secure") {
		t.Fatalf("a session over HTTP/2: %s %v", session.outcome(), session.header)
	}
	var wait sync.WaitGroup
	for i := range 30 {
		wait.Go(func() {
			switch i % 4 {
			case 0:
				if a := ask("/x?y", bytes.NewReader(make([]byte, 100_000))); a.outcome() != "one" || len(a.echo.Body) != 100_000 || a.echo.URI != "/x?y" || a.echo.Host != "a.ex.com" {
					t.Errorf("a body: %s, %d bytes for %s%s", a.outcome(), len(a.echo.Body), a.echo.Host, a.echo.URI)
				}
			case 1:
				if a := ask("/two", nil, "A: 1"); a.outcome() != "two" || a.echo.Header.Get("X-Two") != "yes" || forwarded(a) != "for=127.0.0.1 proto=https port=443 forwarded=" {
					t.Errorf("a condition: %s %v", a.outcome(), a.echo.Header)
				}
			case 2:
				// Cookies may come in pieces in HTTP/2.
				if a := ask("/session", nil, "Cookie: a=b", "Cookie: "+cookie, "Cookie: d=e"); a.echo.Pod != session.echo.Pod || a.header.Get("Set-Cookie") != "" {
					t.Errorf("a session: %s, want %s; %v", a.echo.Pod, session.echo.Pod, a.header)
				}
			case 3:
				if a := ask("/away", nil); a.outcome() != "302 https://b.ex.com/away" {
					t.Errorf("a redirect: %s", a.outcome())
				}
			}
		})
	}
	wait.Wait()
}

// TestB70ABadCertificateFailsAlone: of the listeners of a port, one after the other has a certificate that cannot be used,
// and the others are served, after a fresh start too.
func TestB70ABadCertificateFailsAlone(t *testing.T) {
	t.Parallel()
	good, goodKey := pair("good.ex.com")
	_, otherKey := pair("other.ex.com")
	weakCertificate, weakKey := weak()
	w := Run(t, gateway, pods("one", 1))
	manifests := listeners(`
  - {name: good, port: 443, protocol: HTTPS, hostname: good.ex.com, tls: {certificateRefs: [{name: good}]}}
  - {name: bad, port: 443, protocol: HTTPS, hostname: bad.ex.com, tls: {certificateRefs: [{name: bad}]}}
  - {name: half, port: 443, protocol: HTTPS, hostname: half.ex.com, tls: {certificateRefs: [{name: bad}, {name: good}]}}
  - {name: http, port: 80, protocol: HTTP}
`) + secret("good", good, goodKey) + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]")
	for name, bad := range map[string]string{
		"missing":      "",
		"mismatch":     secret("bad", good, otherKey),
		"garbage":      secret("bad", "garbage", "garbage"),
		"empty":        secret("bad", "", ""),
		"a key only":   secret("bad", goodKey, goodKey),
		"cut":          secret("bad", good[:len(good)/2], goodKey),
		"another type": strings.Replace(secret("bad", good, goodKey), "type: kubernetes.io/tls", "type: Opaque", 1),
		"1024 bits":    secret("bad", weakCertificate, weakKey),
	} {
		w.Apply(t, manifests+bad)
		for _, host := range []string{"good.ex.com", "half.ex.com"} {
			if a := w.ask(t, request{host: host, target: "/", tls: true}); a.outcome() != "one" || a.shown() != "good.ex.com" {
				t.Errorf("%s: %s is answered with %s and the certificate of %q", name, host, a.outcome(), a.shown())
			}
		}
		if a := w.ask(t, request{host: "bad.ex.com", target: "/", tls: true}); a.err == nil {
			t.Errorf("%s: the listener is served: %s with %q", name, a.outcome(), a.shown())
		}
		if got := w.ask(t, get("good.ex.com/")).outcome(); got != "one" {
			t.Errorf("%s: plain HTTP: %s", name, got)
		}
	}
	w.restart(t)
	if a := w.ask(t, request{host: "good.ex.com", target: "/", tls: true}); a.outcome() != "one" {
		t.Errorf("after a start: %s", a.outcome())
	}
	t.Run("line ends of Windows, comments and parameters are no fault", func(t *testing.T) {
		odd := "# comment\r\n" + strings.ReplaceAll(good, "\n", "\r\n")
		parameters := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
		w.Apply(t, manifests+secret("bad", odd, parameters+strings.ReplaceAll(goodKey, "\n", "\r\n")))
		if a := w.ask(t, request{host: "bad.ex.com", target: "/", tls: true}); a.outcome() != "one" {
			t.Errorf("%s, want one", a.outcome())
		}
	})
	t.Run("a certificate that was replaced is shown", func(t *testing.T) {
		chain, key := pair("new.ex.com")
		w.Apply(t, manifests+secret("bad", chain, key))
		if a := w.ask(t, request{host: "bad.ex.com", target: "/", tls: true}); a.outcome() != "one" || a.shown() != "new.ex.com" {
			t.Errorf("%s with %q, want one with new.ex.com", a.outcome(), a.shown())
		}
	})
}
