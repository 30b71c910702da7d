package behaviour

// Field reports, section H: the protocols that backends speak.

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func pairBytes(name string) (chain, key []byte) {
	c, k := pair(name)
	return []byte(c), []byte(k)
}

// TestB68ABackendsProtocolIsSpokenOrRefused: for each appProtocol, either the pod is spoken to as it says, WebSockets
// included, or the route says UnsupportedProtocol and that rule alone is answered with 500.
func TestB68ABackendsProtocolIsSpokenOrRefused(t *testing.T) {
	t.Parallel()
	cases := []struct {
		protocol   string
		secure, h2 bool
		upgrade    bool
		// must says that the specification demands the one or the other.
		must string
	}{
		{protocol: "http", must: "True"},
		{protocol: "HTTP", must: "True"},
		{protocol: "kubernetes.io/h2c", h2: true},
		{protocol: "kubernetes.io/ws", upgrade: true},
		{protocol: "kubernetes.io/wss", secure: true, upgrade: true},
		{protocol: "https", secure: true},
		{protocol: "grpc", h2: true},
		{protocol: "example.com/unknown", must: "False"},
		{protocol: "kubernetes.io/h3", must: "False"},
	}
	options := []option{pods("one", 1)}
	manifests := gateway + route("good", "rules:\n- backendRefs: [{name: one, port: 80}]")
	certificate, err := tls.X509KeyPair(pairBytes("backend.example"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		name := fmt.Sprintf("p%d", i)
		var config *tls.Config
		if c.secure {
			config = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		}
		options = append(options, speaking(name, c.protocol, c.h2, config))
		manifests += route(name, "rules:\n- matches: [{path: {value: /"+name+"}}]\n  backendRefs: [{name: "+name+", port: 80}]")
	}
	w := Run(t, manifests, options...)
	for i, c := range cases {
		name := fmt.Sprintf("p%d", i)
		resolved := w.condition(t, "HTTPRoute default/"+name, "ResolvedRefs")
		a := w.ask(t, get("x.example/"+name))
		if c.must != "" && string(resolved.Status) != c.must {
			t.Errorf("%s: ResolvedRefs is %s: %s", c.protocol, resolved.Status, resolved.Message)
		}
		if resolved.Status != "True" {
			if resolved.Reason != "UnsupportedProtocol" || !strings.Contains(resolved.Message, c.protocol) || a.outcome() != "500" {
				t.Errorf("%s: refused as %s (%s), and answered with %s", c.protocol, resolved.Reason, resolved.Message, a.outcome())
			}
			continue
		}
		proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[c.h2]
		if a.outcome() != name || a.echo.Protocol != proto || a.echo.Secure != c.secure {
			t.Errorf("%s: %s, spoken to in %s, TLS %t", c.protocol, a.outcome(), a.echo.Protocol, a.echo.Secure)
		}
		if c.upgrade {
			w.upgrade(t, "x.example", "/"+name).alive(t, c.protocol)
		}
	}
	if got := w.ask(t, get("x.example/")).outcome(); got != "one" {
		t.Errorf("the good route: %s", got)
	}
}

// flow is a stream of HTTP/2 on which everything comes back.
type flow struct {
	to     *io.PipeWriter
	from   *bufio.Reader
	cancel func()
}

func (w *World) flow(t testing.TB, client *http.Client, path string) *flow {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	body, to := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Reply-Stream", "yes")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Fatalf("a stream on %s: %s %s", path, res.Proto, res.Status)
	}
	// A body that is being sent hides the end of its context from the client.
	return &flow{to, bufio.NewReader(res.Body), func() { cancel(); _ = to.CloseWithError(context.Canceled) }}
}

// alive sends a word and waits for it to come back.
func (f *flow) alive(t testing.TB, what string) {
	t.Helper()
	word := "are you there?\n"
	if _, err := io.WriteString(f.to, word); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if got, err := f.from.ReadString('\n'); got != word {
		t.Errorf("%s: %q, %v", what, got, err)
	}
}

// TestB69LongStreamsOutlastChangesAndCancelsAreForwarded: streams in both directions, as gRPC has them, over HTTP/2 from the
// client, and to pods of HTTP/1.1 and of HTTP/2 where that is spoken. Pods come, HAProxy is reloaded: none is reset. One
// that its client cancels ends at the pod, and no other.
func TestB69LongStreamsOutlastChangesAndCancelsAreForwarded(t *testing.T) {
	t.Parallel()
	base := func(more string) string {
		return listeners("  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}\n" + more)
	}
	manifests := certificate("a", "a.ex.com") + route("plain", "rules:\n- backendRefs: [{name: plain, port: 80}]") +
		route("h2", "rules:\n- matches: [{path: {value: /h2}}]\n  backendRefs: [{name: h2, port: 80}]") + `---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: grpc}
spec:
  parentRefs: [{name: gw}]
  hostnames: [grpc.ex.com]
  rules: [{matches: [{method: {service: s.Echo}}], backendRefs: [{name: h2, port: 80}]}]
`
	w := Run(t, base("")+manifests, pods("plain", 1), speaking("h2", "kubernetes.io/h2c", true, nil))
	paths := map[string]string{"a.ex.com/plain": "plain"}
	if w.condition(t, "HTTPRoute default/h2", "ResolvedRefs").Status == "True" {
		paths["a.ex.com/h2"] = "h2"
	}
	if grpc := w.condition(t, "GRPCRoute default/grpc", "Accepted"); grpc.Status != "True" {
		t.Errorf("the GRPCRoute is %s (%s)", grpc.Reason, grpc.Message)
	}
	paths["grpc.ex.com/s.Echo/Talk"] = "h2"
	client := w.h2(t)
	client.Timeout = 0
	streams := map[*flow]string{}
	for path := range paths {
		for range scaled(15, 100) {
			streams[w.flow(t, client, path)] = path
		}
	}
	alive := func(what string) {
		t.Helper()
		for f, path := range streams {
			f.alive(t, path+": "+what)
		}
	}
	alive("open")
	w.scale(t, "plain", 3)
	alive("scaled up")
	w.Apply(t, base("  - {name: more, port: 81, protocol: HTTP}\n")+manifests)
	alive("reloaded")
	if reloads := w.Reloads(t); reloads < 1 {
		t.Errorf("%d reloads", reloads)
	}
	open := func(service string) (n int64) {
		for _, p := range w.service(service).pods {
			n += p.streams.Load()
		}
		return n
	}
	for path, service := range paths {
		before := open(service)
		for f, of := range streams {
			if of == path {
				f.cancel()
				delete(streams, f)
				break
			}
		}
		w.until(t, func() bool { return open(service) == before-1 }, fmt.Sprintf("%s: of %d streams one is cancelled, and is not", path, before))
	}
	alive("others cancelled")
	// So does one that waits for its answer still.
	before := open("plain")
	for _, r := range []request{{port: 81}, {port: 443, tls: true}} {
		r.host, r.target, r.headers, r.patience = "a.ex.com", "/", []string{"X-Reply-Never: yes"}, 300*time.Millisecond
		if a := w.ask(t, r); a.err == nil {
			t.Errorf("a request that is never answered is: %s", a.outcome())
		}
		w.until(t, func() bool { return open("plain") == before }, "a client that waited is gone, and its request is not")
	}
	// And no word waits for a next one.
	fastest := time.Minute
	for f := range streams {
		for range 5 {
			start := time.Now()
			f.alive(t, "at once")
			fastest = min(fastest, time.Since(start))
		}
		break
	}
	if fastest > 100*time.Millisecond {
		t.Errorf("there and back takes %s at best", fastest)
	}
}

// until waits for a condition.
func (w *World) until(t testing.TB, holds func() bool, otherwise string) {
	t.Helper()
	for range 200 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error(otherwise)
}
