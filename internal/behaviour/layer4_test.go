package behaviour

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
)

// connectionRoute is a TLSRoute or TCPRoute of the Gateway; the rest of its spec follows.
func connectionRoute(kind, name, section, spec string) string {
	made := strings.Replace(routeOf(name, "parentRefs: [{name: gw, sectionName: "+section+"}]\n"+spec), "kind: HTTPRoute", "kind: "+kind, 1)
	return made
}

func tlsRoute(name, section, hostnames, refs string) string {
	return connectionRoute("TLSRoute", name, section, "hostnames: ["+hostnames+"]\nrules:\n- backendRefs: ["+refs+"]")
}

func tcpRoute(name, section, refs string) string {
	return connectionRoute("TCPRoute", name, section, "rules:\n- backendRefs: ["+refs+"]")
}

const mixedListeners = `
  - {name: web, port: 443, protocol: HTTPS, hostname: "*.ex.com", tls: {certificateRefs: [{name: web}]}}
  - {name: terminate, port: 443, protocol: TLS, hostname: db.ex.com, tls: {mode: Terminate, certificateRefs: [{name: db}]}}
  - {name: passthrough, port: 443, protocol: TLS, hostname: "*.pass.ex.com", tls: {mode: Passthrough}}
`

// mixedManifests are HTTPS and both modes of TLS on one port.
func mixedManifests() string {
	return listeners(mixedListeners) + certificate("web", "*.ex.com") + certificate("db", "db.ex.com") +
		routeOf("web", "parentRefs: [{name: gw, sectionName: web}]\nrules:\n- backendRefs: [{name: shop, port: 80}]") +
		tlsRoute("db", "terminate", "db.ex.com", "{name: db, port: 80}") +
		tlsRoute("pass", "passthrough", `a.pass.ex.com, "*.deep.pass.ex.com"`, "{name: own, port: 80}")
}

func TestHTTPSAndBothModesOfTLSShareAPort(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	w := Run(t, mixedManifests(), pods("shop", 1), connecting("db", 1, nil), connecting("own", 1, ca.server("own.internal")))
	for _, c := range []struct{ sni, want, certificate string }{
		{"db.ex.com", "db-1 plain", "db.ex.com"},
		{"DB.ex.com", "db-1 plain", "db.ex.com"},
		{"a.pass.ex.com", "own-1 TLS for a.pass.ex.com", "own.internal"},
		{"x.deep.pass.ex.com", "own-1 TLS for x.deep.pass.ex.com", "own.internal"},
		{"1.2.3.4.5.6.7.deep.pass.ex.com", "own-1 TLS for 1.2.3.4.5.6.7.deep.pass.ex.com", "own.internal"},
	} {
		talking, err := w.talk(t, connection{port: 443, sni: c.sni})
		if err != nil || talking.greeting != c.want {
			t.Errorf("%s: %q, want %q: %v", c.sni, talking.greeting, c.want, err)
			continue
		}
		shown := talking.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames
		if fmt.Sprint(shown) != "["+c.certificate+"]" {
			t.Errorf("%s: the certificate of %v, want that of %s", c.sni, shown, c.certificate)
		}
		talking.say(t, "hello")
	}
	if a := w.ask(t, request{host: "www.ex.com", target: "/", tls: true, from: netip.MustParseAddr("127.0.0.9")}); a.outcome() != "shop" || !strings.Contains(forwarded(a), "for=127.0.0.9 proto=https port=443") {
		t.Errorf("HTTPS: %s %s", a.outcome(), forwarded(a))
	}
	t.Run("a server name that leads nowhere is closed without an alert", func(t *testing.T) {
		for _, sni := range []string{"b.pass.ex.com", "pass.example.org", "example.org"} {
			if got := w.greeted(t, connection{port: 443, sni: sni}); got != "closed" {
				t.Errorf("%s: %s", sni, got)
			}
		}
	})
	t.Run("a request for a hostname of TLS is misdirected", func(t *testing.T) {
		for host, want := range map[string]string{"db.ex.com": "421", "a.pass.ex.com": "421", "b.pass.ex.com": "421", "b.ex.com": "shop"} {
			if a := w.ask(t, request{host: host, target: "/", sni: "www.ex.com", tls: true}); a.outcome() != want {
				t.Errorf("Host %s: %s, want %s", host, a.outcome(), want)
			}
		}
	})
}

// TestTheMoreSpecificHostnameOfATLSRouteGoesFirst: GatewayRouteHostnameIntersectionPrecedence.
func TestTheMoreSpecificHostnameOfATLSRouteGoesFirst(t *testing.T) {
	t.Parallel()
	second := func(second, manifest string) string {
		return strings.Replace(manifest, "metadata: {", `metadata: {creationTimestamp: "2026-01-01T00:00:0`+second+`Z", `, 1)
	}
	w := Run(t, listeners(`
  - {name: one, port: 443, protocol: TLS, hostname: abc.ex.com, tls: {mode: Passthrough}}
  - {name: wild, port: 443, protocol: TLS, hostname: "*.ex.com", tls: {mode: Passthrough}}
`)+second("1", tlsRoute("broad", "one", `"*.ex.com"`, "{name: broad, port: 80}"))+second("2", tlsRoute("exact", "one", "abc.ex.com", "{name: exact, port: 80}"))+
		second("3", tlsRoute("wide", "wild", `"*.com"`, "{name: broad, port: 80}"))+second("4", tlsRoute("narrow", "wild", `"*.ex.com"`, "{name: exact, port: 80}"))+
		second("5", tlsRoute("late", "wild", `"*.ex.com", only.ex.com, abc.ex.com, other.org`, "{name: late, port: 80}")),
		connecting("broad", 1, newAuthority().server("a")), connecting("exact", 1, newAuthority().server("a")), connecting("late", 1, newAuthority().server("a")))
	for sni, want := range map[string]string{"abc.ex.com": "exact-1", "x.ex.com": "exact-1", "only.ex.com": "late-1"} {
		if got := w.greeted(t, connection{port: 443, sni: sni}); got != want+" TLS for "+sni {
			t.Errorf("%s: %s, want %s", sni, got, want)
		}
	}
	// A hostname that the route has and the listener has not.
	if got := w.greeted(t, connection{port: 443, sni: "other.org"}); got != "closed" {
		t.Errorf("other.org: %s", got)
	}
}

func TestATCPPortForwardsWhatever(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: empty, port: 9001, protocol: TCP}
  - {name: bad, port: 9002, protocol: TCP}
  - {name: none, port: 9003, protocol: TCP}
`)+tcpRoute("a", "tcp", "{name: one, port: 80}")+tcpRoute("b", "tcp", "{name: two, port: 80}")+tcpRoute("empty", "empty", "{name: empty, port: 80}")+
		tcpRoute("bad", "bad", "{name: gone, port: 80}"), connecting("one", 1, nil), connecting("two", 1, nil), connecting("empty", 0, nil))
	t.Run("the server speaks first", func(t *testing.T) {
		began := time.Now()
		if got := w.greeted(t, connection{port: 9000}); got != "one-1 plain" || time.Since(began) > time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
	})
	t.Run("of two routes the older, here the first by name, has all connections", func(t *testing.T) {
		for range 50 {
			if got := w.greeted(t, connection{port: 9000}); got != "one-1 plain" {
				t.Fatal(got)
			}
		}
	})
	t.Run("without an endpoint, a backend or a route it is closed", func(t *testing.T) {
		for _, port := range []int{9001, 9002, 9003} {
			if got := w.greeted(t, connection{port: port}); got != "closed" {
				t.Errorf("port %d: %s", port, got)
			}
		}
	})
	t.Run("a client that has ended hears the rest", func(t *testing.T) {
		w.pod("one-1").wait.Store(int64(2 * time.Second))
		defer w.pod("one-1").wait.Store(0)
		conn, err := net.Dial("tcp", w.at(9000))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "abc")
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if got, err := io.ReadAll(conn); string(got) != "one-1 plain\nabc3 bytes\n" || err != nil {
			t.Errorf("%q %v", got, err)
		}
	})
	t.Run("ten megabytes come back", func(t *testing.T) {
		talking, err := w.talk(t, connection{port: 9000})
		if err != nil {
			t.Fatal(err)
		}
		sent := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
		go func() {
			_, _ = talking.Write(sent)
			_ = talking.Conn.(*net.TCPConn).CloseWrite()
		}()
		got, err := io.ReadAll(talking.lines)
		if rest := bytes.TrimPrefix(got, sent); string(rest) != "10485760 bytes\n" || err != nil {
			t.Errorf("%d bytes back, %v", len(got), err)
		}
	})
	t.Run("when the older route goes the younger has it", func(t *testing.T) {
		talking, err := w.talk(t, connection{port: 9000})
		if err != nil {
			t.Fatal(err)
		}
		before := w.Reloads(t)
		w.Apply(t, strings.Replace(w.manifests, tcpRoute("a", "tcp", "{name: one, port: 80}"), "", 1))
		if got := w.greeted(t, connection{port: 9000}); got != "two-1 plain" || w.Reloads(t) != before {
			t.Errorf("%s, %d reloads", got, w.Reloads(t)-before)
		}
		talking.say(t, "still here")
	})
}

// share counts who greets connections.
func (w *World) share(t testing.TB, count int, to connection) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for range count {
		name, _, _ := strings.Cut(w.greeted(t, to), " ")
		seen[name]++
	}
	return seen
}

func TestConnectionsAreSharedByWeight(t *testing.T) {
	t.Parallel()
	shown := certificate("db", "db.ex.com")
	manifests := func(one, two, gone int) string {
		refs := fmt.Sprintf("{name: one, port: 80, weight: %d}, {name: two, port: 80, weight: %d}, {name: gone, port: 80, weight: %d}", one, two, gone)
		return listeners(`
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: terminate, port: 443, protocol: TLS, tls: {mode: Terminate, certificateRefs: [{name: db}]}}
`) + shown + tcpRoute("tcp", "tcp", refs) + tlsRoute("tls", "terminate", "db.ex.com", refs)
	}
	w := Run(t, manifests(5, 3, 2), connecting("one", 2, nil), connecting("two", 1, nil))
	for _, to := range []connection{{port: 9000}, {port: 443, sni: "db.ex.com"}} {
		seen := w.share(t, 400, to)
		one, two, none := seen["one-1"]+seen["one-2"], seen["two-1"], seen["closed"]
		// Five standard deviations: 10 of 200, 9.2 of 120, 8 of 80.
		if one+two+none != 400 || abs(one-200) > 50 || abs(two-120) > 46 || abs(none-80) > 40 || abs(seen["one-1"]-seen["one-2"]) > 1 {
			t.Errorf("%+v: %v, want 50 %%, 30 %% and 20 %% closed", to, seen)
		}
	}
	before := w.Reloads(t)
	w.Apply(t, manifests(0, 1, 0))
	for _, to := range []connection{{port: 9000}, {port: 443, sni: "db.ex.com"}} {
		if seen := w.share(t, 50, to); seen["two-1"] != 50 {
			t.Errorf("%+v: %v, want all at two", to, seen)
		}
	}
	w.Apply(t, manifests(0, 0, 0))
	if seen := w.share(t, 20, connection{port: 9000}); seen["closed"] != 20 {
		t.Errorf("without any weight: %v", seen)
	}
	if now := w.Reloads(t); now != before {
		t.Errorf("weights took %d reloads", now-before)
	}
}

func abs(n int) int { return max(n, -n) }

// TestConnectionsOutlastChanges: what is connected stays so whatever is changed around it, reloads included.
func TestConnectionsOutlastChanges(t *testing.T) {
	t.Parallel()
	web := listeners(strings.SplitAfterN(mixedListeners, "\n", 3)[1]) + certificate("web", "*.ex.com") +
		routeOf("web", "parentRefs: [{name: gw, sectionName: web}]\nrules:\n- backendRefs: [{name: shop, port: 80}]\n  sessionPersistence: {cookie: {name: c}}")
	all := strings.Replace(web, listeners(strings.SplitAfterN(mixedListeners, "\n", 3)[1]), listeners(mixedListeners+"  - {name: tcp, port: 9000, protocol: TCP}\n"), 1) +
		certificate("db", "db.ex.com")
	db, pass := tlsRoute("db", "terminate", "db.ex.com", "{name: db, port: 80}"), tlsRoute("pass", "passthrough", "a.pass.ex.com", "{name: own, port: 80}")
	tcp := tcpRoute("tcp", "tcp", "{name: db, port: 80}")
	w := Run(t, web, pods("shop", 2), connecting("db", 2, nil), connecting("own", 1, newAuthority().server("own")), connecting("new", 1, nil))

	// TLS is added to the port of a session that lives.
	visitor := w.visitor("www.ex.com")
	visitor.tls = true
	home := visitor.ok(t, "/")
	client := w.h2Of(t, "www.ex.com")
	w.Apply(t, all+db+pass+tcp)
	if got := visitor.ok(t, "/"); got != home {
		t.Errorf("the session moved from %s to %s", home, got)
	}
	if client() != "200" {
		t.Error("the connection that was there is cut")
	}
	var talks []*talk
	for _, to := range []connection{{port: 443, sni: "db.ex.com"}, {port: 443, sni: "a.pass.ex.com"}, {port: 9000}} {
		talking, err := w.talk(t, to)
		if err != nil {
			t.Fatal(err)
		}
		talks = append(talks, talking)
	}
	still := func(after string) {
		t.Helper()
		for _, talking := range talks {
			talking.say(t, after)
		}
	}
	before := w.Reloads(t)
	hot := func(after, manifests string) {
		t.Helper()
		w.Apply(t, manifests)
		still(after)
		if now := w.Reloads(t); now != before {
			t.Errorf("%s took %d reloads", after, now-before)
			before = now
		}
	}
	hot("a route more", all+db+pass+tcp+tlsRoute("more", "passthrough", "b.pass.ex.com", "{name: own, port: 80}"))
	if got := w.greeted(t, connection{port: 443, sni: "b.pass.ex.com"}); got != "own-1 TLS for b.pass.ex.com" {
		t.Error(got)
	}
	hot("a route less", all+db+pass+tcp)
	if got := w.greeted(t, connection{port: 443, sni: "b.pass.ex.com"}); got != "closed" {
		t.Error(got)
	}
	hot("another Service", all+db+pass+tcpRoute("tcp", "tcp", "{name: new, port: 80}"))
	if got := w.greeted(t, connection{port: 9000}); got != "new-1 plain" {
		t.Error(got)
	}
	hot("the route of a connection gone", all+db+tcp)
	hot("all is as it was", all+db+pass+tcp)
	w.Apply(t, strings.Replace(all, "  - {name: tcp, port", "  - {name: plain, port: 80, protocol: HTTP}\n  - {name: tcp, port", 1)+db+pass+tcp)
	if w.Reloads(t) == before {
		t.Error("a listener was added without a reload: what does this test show?")
	}
	still("a reload")
	gone := w.service("db").pods[0]
	gone.terminating, gone.ready = true, false
	w.Sync(t)
	still("an endpoint that drains")
	gone.gone = true
	w.Sync(t)
	still("an endpoint that is gone from the slice")
	if seen := w.share(t, 10, connection{port: 9000}); seen["db-2"] != 10 {
		t.Errorf("new connections: %v", seen)
	}
}

// h2Of has one connection over HTTP/2, which gives the status of a request with each call.
func (w *World) h2Of(t testing.TB, host string) func() string {
	t.Helper()
	client := w.h2(t)
	ask := func() string {
		res, err := client.Get("https://" + host + "/")
		if err != nil {
			return err.Error()
		}
		_ = res.Body.Close()
		return fmt.Sprint(res.StatusCode)
	}
	if got := ask(); got != "200" {
		t.Fatal(got)
	}
	return ask
}

func TestBackendsOfConnectionsProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	w := Run(t, listeners(`
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: wrong, port: 9001, protocol: TCP}
  - {name: unknown, port: 9002, protocol: TCP}
  - {name: terminate, port: 443, protocol: TLS, hostname: db.ex.com, tls: {mode: Terminate, certificateRefs: [{name: db}]}}
  - {name: passthrough, port: 443, protocol: TLS, hostname: "*.pass.ex.com", tls: {mode: Passthrough}}
`)+bundle("ca", ca)+certificate("db", "db.ex.com")+
		backendTLS("good", "hostname: s.internal, "+trustCA)+backendTLS("wrong", "hostname: s.internal, "+trustCA)+
		backendTLS("unknown", "hostname: s.internal, caCertificateRefs: [{group: '', kind: ConfigMap, name: gone}]")+
		tcpRoute("tcp", "tcp", "{name: good, port: 80}")+tcpRoute("wrong", "wrong", "{name: wrong, port: 80}")+
		tcpRoute("unknown", "unknown", "{name: unknown, port: 80}")+
		tlsRoute("terminate", "terminate", "db.ex.com", "{name: good, port: 80}")+
		tlsRoute("passthrough", "passthrough", "a.pass.ex.com", "{name: good, port: 80}")+
		tlsRoute("through", "passthrough", "b.pass.ex.com", "{name: unknown, port: 80}"),
		connecting("good", 1, ca.server("s.internal")), connecting("wrong", 1, ca.server("other.internal")), connecting("unknown", 1, ca.server("s.internal")))
	for to, want := range map[connection]string{
		{port: 9000}:                      "good-1 TLS for s.internal",
		{port: 9001}:                      "closed",
		{port: 9002}:                      "closed",
		{port: 443, sni: "db.ex.com"}:     "good-1 TLS for s.internal",
		{port: 443, sni: "a.pass.ex.com"}: "good-1 TLS for a.pass.ex.com",
		{port: 443, sni: "b.pass.ex.com"}: "unknown-1 TLS for b.pass.ex.com",
	} {
		if got := w.greeted(t, to); got != want {
			t.Errorf("%+v: %s, want %s", to, got, want)
		}
	}
}

func TestTheAccessLogHasOneLineForAConnection(t *testing.T) {
	t.Parallel()
	for _, form := range []model.AccessLog{model.AccessLogJSON, model.AccessLogText} {
		with, lines := logged(form)
		w := Run(t, strings.Replace(mixedManifests(), mixedListeners, mixedListeners+"  - {name: tcp, port: 9000, protocol: TCP}\n", 1)+
			tcpRoute("tcp", "tcp", "{name: db, port: 80, weight: 1}, {name: gone, port: 80, weight: 0}"), with, pods("shop", 1), connecting("db", 1, nil), connecting("own", 1, newAuthority().server("own")))
		for i, c := range []struct {
			to                     connection
			route, backend, pod    string
			protocol, host, secure string
		}{
			{connection{port: 9000}, "TCPRoute default/tcp", "Service/default/db/80 tcp", "pod default/db-1", "TCP", "", ""},
			{connection{port: 443, sni: "db.ex.com"}, "TLSRoute default/db", "Service/default/db/80 tcp", "pod default/db-1", "TLS", "db.ex.com", "TLSv1.3"},
			{connection{port: 443, sni: "a.pass.ex.com"}, "TLSRoute default/pass", "Service/default/own/80 passthrough", "pod default/own-1", "TLS", "a.pass.ex.com", ""},
			{connection{port: 443, sni: "b.pass.ex.com"}, "", "", "", "TLS", "b.pass.ex.com", ""},
		} {
			c.to.from = netip.AddrFrom4([4]byte{127, 0, 7, byte(i + 1)})
			talking, _ := w.talk(t, c.to)
			if talking.greeting != "" {
				talking.say(t, "hello")
			}
			_ = talking.Close()
			line := lines.find(t, c.to.from.String())
			if form == model.AccessLogText {
				if !strings.Contains(line, `route="`+c.route+`"`) || !strings.Contains(line, `endpoint="`+c.pod+`"`) {
					t.Errorf("%+v: %s", c.to, line)
				}
				continue
			}
			var e struct {
				entry

				Protocol, TLS, End  string
				Bytes, RequestBytes int
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if e.Route != c.route || e.Backend != c.backend || e.Endpoint != c.pod || e.Protocol != c.protocol || e.Host != c.host || e.TLS != c.secure ||
				e.ListenerPort != c.to.port || c.pod != "" && (e.Bytes == 0 || e.RequestBytes == 0) {
				t.Errorf("%+v: %s", c.to, line)
			}
		}
		w.ask(t, request{host: "www.ex.com", target: "/once", tls: true, from: netip.MustParseAddr("127.0.7.9")})
		if line := lines.find(t, "127.0.7.9"); !strings.Contains(line, "/once") {
			t.Errorf("a request over HTTPS is logged as a connection: %s", line)
		}
	}
}

func TestClientsOfTerminatedTLSShowCertificates(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	w := Run(t, frontend(listeners(strings.Replace(mixedListeners, "hostname: \"*.ex.com\"", "hostname: web.ex.com", 1)), "default: {validation: {"+trustCA+"}}")+bundle("ca", ca)+
		certificate("web", "web.ex.com")+certificate("db", "db.ex.com")+tlsRoute("db", "terminate", "db.ex.com", "{name: db, port: 80}")+
		tlsRoute("pass", "passthrough", "a.pass.ex.com", "{name: own, port: 80}"), connecting("db", 1, nil), connecting("own", 1, newAuthority().server("own")))
	if got := w.greeted(t, connection{port: 443, sni: "db.ex.com", own: ca.server("client")}); got != "db-1 plain" {
		t.Errorf("with a certificate: %s", got)
	}
	for name, own := range map[string]*tls.Config{"none": nil, "another one": newAuthority().server("client")} {
		if got := w.greeted(t, connection{port: 443, sni: "db.ex.com", own: own}); strings.HasPrefix(got, "db-1") {
			t.Errorf("with %s: %s", name, got)
		}
	}
	if got := w.greeted(t, connection{port: 443, sni: "a.pass.ex.com"}); got != "own-1 TLS for a.pass.ex.com" {
		t.Errorf("passed through: %s", got)
	}
}

// TestManyConnectionsAtOnce has connections come and go while routes do.
func TestManyConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	w := Run(t, mixedManifests(), pods("shop", 1), connecting("db", 2, nil), connecting("own", 1, newAuthority().server("own")))
	done := make(chan struct{})
	var wait sync.WaitGroup
	for _, sni := range []string{"db.ex.com", "a.pass.ex.com"} {
		for range 4 {
			wait.Go(func() {
				for count := 0; ; count++ {
					select {
					case <-done:
						if count == 0 {
							t.Error("nothing was asked")
						}
						return
					default:
					}
					if got := w.greeted(t, connection{port: 443, sni: sni}); !strings.HasPrefix(got, "db-") && !strings.HasPrefix(got, "own-1") {
						t.Errorf("%s: %s", sni, got)
						return
					}
				}
			})
		}
	}
	manifests := w.manifests
	for i := range 10 {
		w.Apply(t, manifests+tlsRoute(fmt.Sprint("new", i), "passthrough", fmt.Sprintf("n%d.pass.ex.com", i), "{name: own, port: 80}"))
		if i%5 == 4 {
			w.scale(t, "db", 2+i%2)
		}
	}
	w.Apply(t, strings.Replace(manifests, mixedListeners, mixedListeners+"  - {name: plain, port: 80, protocol: HTTP}\n", 1))
	close(done)
	wait.Wait()
}
