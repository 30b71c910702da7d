package behaviour

// Field reports, section K: who the client is, and the PROXY protocol.

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestB81NoListenerTakesAProxyHeaderUnasked: what claims another client's address is not served, on any port; clients
// without it are, the probe answers, and TLS is passed through.
func TestB81NoListenerTakesAProxyHeaderUnasked(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(twoPorts+"  - {name: pass, port: 444, protocol: TLS, tls: {mode: Passthrough}}\n")+certificate("cert", "x.example")+
		route("all", "rules:\n"+sticky("/", "one", "{cookie: {name: c}}"))+tlsRoute("pass", "pass", "pass.example", "{name: own, port: 80}"),
		pods("one", 2), connecting("own", 1, newAuthority().server("own.internal")), trusting("10.0.0.0/8"))
	const http = "GET / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n"
	headers := map[string]string{
		"version 1": "PROXY TCP4 6.6.6.6 7.7.7.7 1 2\r\n",
		"unknown":   "PROXY UNKNOWN\r\n",
		"version 2": "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x06\x06\x06\x06\x07\x07\x07\x07\x00\x01\x00\x02",
		"local":     "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00",
	}
	client := w.block.address(5)
	serves := func(when string) {
		t.Helper()
		for _, r := range []request{{}, {port: 81}, {tls: true}} {
			r.host, r.target, r.from = "x.example", "/", client
			if a := w.ask(t, r); a.outcome() != "one" || a.keeps() || strings.Join(a.seen("X-Forwarded-For"), "|") != client.String() {
				t.Errorf("%s: port %d, TLS %t: %s from %q", when, r.port, r.tls, a.outcome(), a.seen("X-Forwarded-For"))
			}
		}
		if got := w.probe(t); got != "HTTP/1.1 200 OK" {
			t.Errorf("%s: the probe is answered with %q", when, got)
		}
	}
	serves("at first")
	for name, header := range headers {
		for _, port := range []int{80, 81, 443} {
			before := w.pod("one-1").requests.Load() + w.pod("one-2").requests.Load()
			a := w.ask(t, request{raw: header + http, port: port, from: client, patience: 3 * time.Second})
			if a.err == nil && a.status != 400 {
				t.Errorf("%s on port %d: %s", name, port, a.outcome())
			}
			if after := w.pod("one-1").requests.Load() + w.pod("one-2").requests.Load(); after != before {
				t.Errorf("%s on port %d reached a pod", name, port)
			}
		}
		serves("after " + name)
	}
	if got := w.greeted(t, connection{port: 444, sni: "pass.example"}); got != "own-1 TLS for pass.example" {
		t.Errorf("what is passed through: %s", got)
	}
}

// probe asks for HAProxy's health as a probe does, and returns the first line of the answer.
func (w *World) probe(t testing.TB) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", w.limpet.dir+"/run/health.sock")
	if err != nil {
		return fmt.Sprint(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	answer := make([]byte, 4096)
	n, _ := conn.Read(answer)
	return firstLine(string(answer[:n]))
}
