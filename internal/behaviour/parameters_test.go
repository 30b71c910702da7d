package behaviour

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
)

// withParameters are listeners of a Gateway with LimpetParameters of its own and of its class.
func withParameters(own, class, list string) string {
	const refer = "{group: limpet.dev, kind: LimpetParameters, name: %s%s}"
	manifests := strings.Replace(listeners(list), "controllerName: limpet.dev/gateway-controller",
		"controllerName: limpet.dev/gateway-controller, parametersRef: "+fmt.Sprintf(refer, "class", ", namespace: default"), 1)
	manifests = strings.Replace(manifests, "  gatewayClassName: limpet\n",
		"  gatewayClassName: limpet\n  infrastructure: {parametersRef: "+fmt.Sprintf(refer, "own", "")+"}\n", 1)
	for name, spec := range map[string]string{"own": own, "class": class} {
		manifests += "---\napiVersion: limpet.dev/v1alpha1\nkind: LimpetParameters\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	return manifests + certificate("cert", "x.example") + route("all", "rules:\n- backendRefs: [{name: one, port: 80}]")
}

func TestTrustedProxiesAreForEachGatewayToSay(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("one", 1), trusting("127.0.0.0/8"))
	trusted, other := w.block.address(7), w.block.address(8)
	said := []string{"X-Forwarded-For: 6.6.6.6"}
	for name, c := range map[string]struct {
		own, class    string
		trusts, other bool
	}{
		"nobody says anything":         {"{}", "{}", true, true},
		"the class says it":            {"{}", fmt.Sprintf("{trustedProxies: [%q]}", trusted), true, false},
		"the Gateway says it":          {fmt.Sprintf("{trustedProxies: [\"2001:db8::/32\", \"%s/32\"]}", trusted), "{trustedProxies: [127.0.0.0/8]}", true, false},
		"the Gateway says that nobody": {"{trustedProxies: []}", "{trustedProxies: [127.0.0.0/8]}", false, false},
	} {
		w.Apply(t, withParameters(c.own, c.class, twoPorts))
		for _, secure := range []bool{false, true} {
			for from, believed := range map[string]bool{trusted.String(): c.trusts, other.String(): c.other} {
				r := request{host: "x.example", target: "/", headers: said, tls: secure, from: trusted}
				if from == other.String() {
					r.from = other
				}
				want := from
				if believed {
					want = "6.6.6.6|" + from
				}
				if got := strings.Join(w.ok(t, r).seen("X-Forwarded-For"), "|"); got != want {
					t.Errorf("%s, TLS %t, from %s: X-Forwarded-For %s, want %s", name, secure, from, got, want)
				}
			}
		}
	}
}

// TestB81TheProxyProtocolIsSpokenByWhoIsTrustedAlone: per Gateway, with and without TLS, and without a word from others.
func TestB81TheProxyProtocolIsSpokenByWhoIsTrustedAlone(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("one", 1))
	balancer, other := w.block.address(7), w.block.address(8)
	w.Apply(t, withParameters(fmt.Sprintf("{proxyProtocol: {trusted: [%q]}, trustedProxies: [192.0.2.0/24]}", balancer), "{}", twoPorts))
	const header = "PROXY TCP4 192.0.2.7 198.51.100.1 1000 80\r\n"
	for name, c := range map[string]struct {
		from   request
		header string
		want   string
	}{
		"with a header":             {request{from: balancer}, header, "6.6.6.6|192.0.2.7"},
		"with a header, TLS":        {request{from: balancer, tls: true}, header, "6.6.6.6|192.0.2.7"},
		"of an untrusted client":    {request{from: balancer}, strings.ReplaceAll(header, "192.0.2.7", "203.0.113.1"), "203.0.113.1"},
		"without one":               {request{from: balancer}, "", ""},
		"without one, TLS":          {request{from: balancer, tls: true}, "", ""},
		"another, without one":      {request{from: other}, "", other.String()},
		"another, without one, TLS": {request{from: other, tls: true}, "", other.String()},
		"another, with one":         {request{from: other}, header, "400"},
		"another, with one, TLS":    {request{from: other, tls: true}, header, ""},
	} {
		r := c.from
		r.host, r.target, r.headers, r.before = "x.example", "/", []string{"X-Forwarded-For: 6.6.6.6"}, c.header
		a := w.ask(t, r)
		got := strings.Join(a.seen("X-Forwarded-For"), "|")
		if a.err == nil && a.status != 200 {
			got = fmt.Sprint(a.status)
		}
		if got != c.want || (c.want == "") != (a.err != nil) {
			t.Errorf("%s: %q (%v), want %q", name, got, a.err, c.want)
		}
	}
}

func TestTLSVersionsAndCipherSuitesAreForEachGatewayToSay(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("one", 1))
	const (
		aes128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
		aes256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	)
	for name, c := range map[string]struct{ own, class, v12, v13 string }{
		"nothing is said":           {"{}", "{}", aes256, "any"},
		"the class wants 1.3":       {"{}", "{tls: {minVersion: TLSv1.3}}", "", "any"},
		"the Gateway takes 1.2":     {"{tls: {minVersion: TLSv1.2}}", "{tls: {minVersion: TLSv1.3}}", aes256, "any"},
		"one suite of each version": {"{tls: {cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256, TLS_CHACHA20_POLY1305_SHA256]}}", "{}", aes128, "TLS_CHACHA20_POLY1305_SHA256"},
		"suites of 1.2 alone":       {"{tls: {cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256]}}", "{}", aes128, ""},
		"suites of 1.3 alone":       {"{tls: {cipherSuites: [TLS_AES_256_GCM_SHA384]}}", "{}", "", "TLS_AES_256_GCM_SHA384"},
	} {
		w.Apply(t, withParameters(c.own, c.class, twoPorts))
		for version, want := range map[uint16]string{tls.VersionTLS12: c.v12, tls.VersionTLS13: c.v13} {
			got := ""
			conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: "x.example", InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}}).
				DialContext(t.Context(), "tcp", w.at(443))
			if err == nil {
				got = tls.CipherSuiteName(conn.(*tls.Conn).ConnectionState().CipherSuite)
				_ = conn.Close()
			}
			if got != want && (want != "any" || got == "") {
				t.Errorf("%s, %s: %q (%v), want %q", name, tls.VersionName(version), got, err, want)
			}
		}
		if a := w.ask(t, request{host: "x.example", target: "/", tls: true}); a.outcome() != "one" && c.v13 != "" {
			t.Errorf("%s: %s", name, a.outcome())
		}
	}
}

// patience sends a text, reads the answers to it, and returns how long it then takes until anything happens.
func (w *World) patience(t testing.TB, r request, text string, answers int) time.Duration {
	t.Helper()
	conn, err := w.dial(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	for range answers {
		if a := read(from, "GET"); a.outcome() != "one" {
			t.Fatal(a.outcome())
		}
	}
	start := time.Now()
	_, _ = from.ReadByte()
	return time.Since(start)
}

func TestTimeoutsOfClientsAreForEachGatewayToSay(t *testing.T) {
	t.Parallel()
	w := Run(t, withParameters("{timeouts: {request: 1s}}", "{timeouts: {request: 9s, keepAlive: 2s, idle: 3s}}", twoPorts), pods("one", 1))
	const whole = "GET / HTTP/1.1\r\nHost: x.example\r\n\r\n"
	for name, c := range map[string]struct {
		text    string
		answers int
		want    time.Duration
	}{
		"half a header":    {"GET / HTTP/1.1\r\nHost:", 0, time.Second},
		"no next request":  {whole, 1, 2 * time.Second},
		"half of the body": {"POST / HTTP/1.1\r\nHost: x.example\r\nContent-Length: 9\r\n\r\nhalf", 0, 3 * time.Second},
	} {
		for _, secure := range []bool{false, true} {
			took := w.patience(t, request{host: "x.example", tls: secure}, c.text, c.answers)
			if took < c.want-100*time.Millisecond || took > c.want+900*time.Millisecond {
				t.Errorf("%s, TLS %t: %s passed, want %s", name, secure, took, c.want)
			}
		}
	}
}

func TestTimeoutsOfBackendsAreForTheClassToSay(t *testing.T) {
	t.Parallel()
	w := Run(t, withParameters("{haproxy: {timeouts: {idle: 9s}}}", "{haproxy: {timeouts: {idle: 1s, connect: 200ms, tunnel: 2s}}}", twoPorts), pods("one", 1))
	upgraded := w.upgrade(t, "x.example", "/ws")
	upgraded.alive(t, "an upgraded connection")
	start := time.Now()
	_, _ = io.Copy(io.Discard, upgraded.from)
	if idle := time.Since(start); idle < 1900*time.Millisecond || idle > 3*time.Second {
		t.Errorf("an idle upgraded connection ended after %s, want 2 s", idle)
	}
	w.pod("one-1").wait.Store(int64(4 * time.Second))
	if a := w.ask(t, get("x.example/")); a.status != 504 || a.took < 900*time.Millisecond || a.took > 2*time.Second {
		t.Errorf("a slow pod: %s after %s, want 504 after 1 s", a.outcome(), a.took)
	}
	w.pod("one-1").blackHole(t)
	// Three attempts, of a second each if the class said nothing.
	if a := w.ask(t, get("x.example/")); a.status != 503 || a.took < 500*time.Millisecond || a.took > 2*time.Second {
		t.Errorf("a pod that swallows connections: %s after %s, want 503 after 0.6 s", a.outcome(), a.took)
	}
	if got := w.condition(t, "Gateway default/gw", "limpet.dev/Ignored").Message; !strings.Contains(got, "spec.haproxy of LimpetParameters default/own") {
		t.Errorf("what the Gateway says in vain: %s", got)
	}
}

func TestLimitsOfHAProxyAreForTheClassToSay(t *testing.T) {
	t.Parallel()
	w := Run(t, withParameters("{}", "{haproxy: {threads: 1, maxConnections: 100}}", twoPorts), pods("one", 1))
	if info := w.command(t, "show info"); !strings.Contains(info, "Nbthread: 1\n") || !strings.Contains(info, "Maxconn: 100\n") {
		t.Errorf("show info: %s", info)
	}
	w.Apply(t, withParameters("{}", "{haproxy: {threads: 2, maxConnections: 2000000}}", twoPorts))
	if info := w.command(t, "show info"); !strings.Contains(info, "Nbthread: 2\n") {
		t.Errorf("show info: %s", info)
	}
	w.ok(t, get("x.example/"))
}

func TestTheAccessLogIsForTheClassToSay(t *testing.T) {
	t.Parallel()
	with, lines := logged(model.AccessLogNone)
	w := Run(t, withParameters("{}", "{haproxy: {accessLog: JSON}}", twoPorts), pods("one", 1), with)
	w.ok(t, get("x.example/first"))
	if line := lines.find(t, "/first"); !strings.Contains(line, `"backend": "Service/default/one/80"`) {
		t.Errorf("JSON: %s", line)
	}
	w.Apply(t, withParameters("{}", "{haproxy: {accessLog: Text}}", twoPorts))
	w.ok(t, get("x.example/second"))
	if line := lines.find(t, "/second"); !strings.Contains(line, "endpoint=\"pod default/one-1\"") {
		t.Errorf("text: %s", line)
	}
	w.Apply(t, withParameters("{}", "{haproxy: {accessLog: None}}", twoPorts))
	w.ok(t, get("x.example/third"))
	w.Apply(t, withParameters("{}", "{haproxy: {accessLog: Text}}", twoPorts))
	w.ok(t, get("x.example/fourth"))
	lines.find(t, "/fourth")
	if lines.has("/third") {
		t.Error("a line though there is to be none")
	}
}
