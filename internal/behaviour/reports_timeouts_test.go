package behaviour

// Field reports, section M: timeouts, bodies, checks, and first requests at once.

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestB86FirstRequestsAtOnceEndInOneSession: a browser opens several connections at once and has no token on any. Each
// answer gives one; the browser keeps the last, and from then on all that it asks for is answered by one endpoint.
func TestB86FirstRequestsAtOnceEndInOneSession(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4))
	for path, name := range map[string]string{"/cookie": "", "/generated": "", "/header": "X-Session"} {
		for range 5 {
			v := w.headerVisitor("shop.example", name)
			var mu sync.Mutex
			var wait sync.WaitGroup
			tokens := map[string]string{}
			for range 7 {
				wait.Go(func() {
					a := w.ok(t, get("shop.example"+path))
					mu.Lock()
					defer mu.Unlock()
					v.jar.SetCookies(v.url(path), a.given())
					if name != "" {
						v.token = a.header.Get(name)
					}
					if token := v.cookies(path) + v.token; token != "" {
						tokens[token] = a.echo.Pod
					}
				})
			}
			wait.Wait()
			want := tokens[v.cookies(path)+v.token]
			if cookies := strings.Count(v.cookies(path), "="); want == "" || name == "" && cookies != 1 {
				t.Fatalf("%s: after the first requests the visitor has %q", path, v.cookies(path)+v.token)
			}
			for range 7 {
				wait.Go(func() {
					if a := w.ok(t, get("shop.example"+path, "Cookie: "+v.cookies(path), "X-Session: "+v.token)); a.echo.Pod != want || !a.keeps() {
						t.Errorf("%s: afterwards on %s, want %s", path, a.echo.Pod, want)
					}
				})
			}
			wait.Wait()
			// And who kept an earlier one is as well off.
			for token, pod := range tokens {
				if a := w.ok(t, get("shop.example"+path, "Cookie: "+token, "X-Session: "+token)); a.echo.Pod != pod || !a.keeps() {
					t.Errorf("%s: an earlier token leads to %s, want %s", path, a.echo.Pod, pod)
				}
			}
		}
	}
}

// TestB87WithoutTimeoutsNothingHasADeadline: what goes on for longer than any usual deadline, and never pauses for long, is
// not cut: events, a slow download, a slow upload, an upgraded connection. All of them at once, for 17 seconds.
func TestB87WithoutTimeoutsNothingHasADeadline(t *testing.T) {
	t.Parallel()
	const seconds = 17
	w := Run(t, gateway+route("all", "rules:\n- backendRefs: [{name: one, port: 80}]"), pods("one", 1))
	dial := func(t *testing.T, head string) (*bufio.Reader, io.Writer) {
		t.Helper()
		conn, err := w.dial(t.Context(), request{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(2 * seconds * time.Second))
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(conn), conn
	}
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		from, _ := dial(t, fmt.Sprintf("GET / HTTP/1.1\r\nHost: x.example\r\nX-Reply-Events: %d\r\n\r\n", seconds))
		if a := read(from, http.MethodGet); a.status != http.StatusOK || strings.Count(a.body, "data: ") != seconds {
			t.Errorf("%d: %q", a.status, a.body)
		}
	})
	t.Run("a slow upload", func(t *testing.T) {
		t.Parallel()
		from, to := dial(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x.example\r\nContent-Length: %d\r\n\r\n", 1000*seconds))
		for range seconds {
			time.Sleep(time.Second)
			if _, err := io.WriteString(to, strings.Repeat("x", 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if a := read(from, http.MethodPost); a.outcome() != "one" || len(a.echo.Body) != 1000*seconds {
			t.Errorf("%s with %d bytes", a.outcome(), len(a.echo.Body))
		}
	})
	t.Run("a slow download", func(t *testing.T) {
		t.Parallel()
		const size = 4 << 20
		from, to := dial(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", size))
		if _, err := io.WriteString(to, strings.Repeat("y", size)); err != nil {
			t.Fatal(err)
		}
		got := 0
		for range seconds {
			time.Sleep(time.Second)
			n, err := io.CopyN(io.Discard, from, size/seconds/2)
			if got += int(n); err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
		}
		rest, err := io.Copy(io.Discard, from)
		if got += int(rest); err != nil || got < size {
			t.Errorf("%d of %d bytes: %v", got, size, err)
		}
	})
	t.Run("an upgraded connection", func(t *testing.T) {
		t.Parallel()
		u := w.upgrade(t, "x.example", "/ws")
		for range seconds / 3 {
			time.Sleep(3 * time.Second)
			u.alive(t, "upgraded")
		}
	})
}

// TestB87ATimeoutEndsWithTheFirstWordOfTheAnswer: a timeout is for who waits for an answer. One that has begun goes on for
// longer, whichever timeout there is: events, and an upgraded connection. "0s" is none.
func TestB87ATimeoutEndsWithTheFirstWordOfTheAnswer(t *testing.T) {
	t.Parallel()
	timeouts := map[string]string{"/request": "{request: 1s}", "/backend": "{backendRequest: 1s}", "/both": "{request: 1s, backendRequest: 1s}", "/none": "{request: 0s}"}
	rules := "rules:"
	for path, timeout := range timeouts {
		rules += fmt.Sprintf("\n- matches: [{path: {value: %s}}]\n  timeouts: %s\n  backendRefs: [{name: one, port: 80}]", path, timeout)
	}
	w := Run(t, gateway+route("all", rules), pods("one", 1))
	if got := w.condition(t, "HTTPRoute default/all", "Accepted"); got.Status != "True" {
		t.Fatalf("%s: %s", got.Reason, got.Message)
	}
	const seconds = 4
	for path := range timeouts {
		t.Run(path[1:]+", events", func(t *testing.T) {
			t.Parallel()
			if a := w.ask(t, get("x.example"+path, fmt.Sprintf("X-Reply-Events: %d", seconds))); strings.Count(a.body, "data: ") != seconds {
				t.Errorf("%s %q", a.outcome(), a.body)
			}
		})
		t.Run(path[1:]+", upgraded", func(t *testing.T) {
			t.Parallel()
			u := w.upgrade(t, "x.example", path)
			time.Sleep(seconds * time.Second)
			u.alive(t, path)
		})
		t.Run(path[1:]+", silence", func(t *testing.T) {
			t.Parallel()
			a := w.ask(t, request{host: "x.example", target: path, headers: []string{"X-Reply-Never: yes"}, patience: seconds * time.Second})
			switch {
			case path == "/none" && a.err == nil:
				t.Errorf("without a timeout: %s after %s", a.outcome(), a.took)
			case path != "/none" && (a.status != http.StatusGatewayTimeout || a.took < 900*time.Millisecond):
				t.Errorf("%s after %s, want 504 after a second", a.outcome(), a.took)
			}
		})
	}
}

// TestB89WhatLimpetDoesNotKnowItSays: a limit that nobody enforces is worse than none. Fields and annotations that Limpet
// does not know are warned of by name, and bodies of any size and form pass.
func TestB89WhatLimpetDoesNotKnowItSays(t *testing.T) {
	t.Parallel()
	limited := strings.Replace(route("all", "rules:\n- backendRefs: [{name: one, port: 80}]\n  maxBodySize: 1Mi"), "metadata: {", "metadata: {annotations: {limpet.dev/max-body-size: 1m, haproxy.org/max-body-size: 1m}, ", 1)
	w := Run(t, gateway+limited, pods("one", 1), problems())
	log := w.limpet.log.tail(1 << 20)
	for _, want := range []string{"spec.rules[0].maxBodySize", "limpet.dev/max-body-size"} {
		found := false
		for line := range strings.Lines(log) {
			found = found || strings.Contains(line, "level=WARN") && strings.Contains(line, want) && strings.Contains(line, "HTTPRoute default/all")
		}
		if !found {
			t.Errorf("no warning of %s in\n%s", want, log)
		}
	}
	body := strings.Repeat("0123456789abcdef", 2<<20/16)
	chunked := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, r := range map[string]request{
		"with its length": {method: http.MethodPost, host: "x.example", target: "/", body: body},
		"in chunks":       {raw: chunked},
		"empty":           {method: http.MethodPost, host: "x.example", target: "/", headers: []string{"Content-Length: 0"}},
		"empty in chunks": {raw: "POST / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	} {
		want := body
		if strings.Contains(name, "empty") {
			want = ""
		}
		if a := w.ask(t, r); a.outcome() != "one" || a.echo.Body != want {
			t.Errorf("a body %s: %s, with %d bytes, want %d", name, a.outcome(), len(a.echo.Body), len(want))
		}
	}
}

// TestB91NobodyIsAskedWhetherItIsWell: readiness is what EndpointSlices say. HAProxy connects to no pod unless there is a
// request for it, and one that refused is tried again as soon as it takes connections.
func TestB91NobodyIsAskedWhetherItIsWell(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 2))
	w.scale(t, "shop", 3)
	w.Apply(t, strings.Replace(w.manifests, "listeners: [", "listeners: [{name: more, port: 81, protocol: HTTP}, ", 1))
	time.Sleep(3 * time.Second)
	for _, p := range w.service("shop").pods {
		if n := p.connections.Load(); n > 0 {
			t.Errorf("%s had %d connections without a request", p.name, n)
		}
	}
	for _, p := range w.service("shop").pods {
		p.stop()
	}
	for range 3 {
		if got := w.ask(t, get("shop.example/cookie")).outcome(); got != "503" {
			t.Errorf("all refuse: %s", got)
		}
	}
	for _, p := range w.service("shop").pods {
		p.start(t)
	}
	if reached := w.reaches(t, 30); len(reached) != 3 {
		t.Errorf("once they take connections again, requests reach %v", reached)
	}
}
