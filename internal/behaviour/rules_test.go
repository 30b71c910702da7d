package behaviour

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAMirrorGoesToOneEndpointAndItsAnswerToNobody(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", `
rules:
- filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {cookie: {name: c}}`), pods("shop", 2), pods("copy", 3))
	for _, p := range w.service("copy").pods {
		p.wait.Store(int64(time.Second))
	}
	const asked = 12
	v := w.visitor("shop.example")
	home := v.ok(t, "/")
	for range asked - 1 {
		a := v.get(t, "/", "X-Reply: Set-Cookie: a=b")
		if a.outcome() != "shop" || a.echo.Pod != home || len(a.header.Values("Pod")) != 1 || len(a.given()) != 1 || a.took > 700*time.Millisecond {
			t.Errorf("%s of %s after %s: %v", a.outcome(), a.echo.Pod, a.took, a.header)
		}
	}
	arrived := func() (count int64) {
		for _, p := range w.service("copy").pods {
			count += p.requests.Load()
		}
		return count
	}
	for deadline := time.Now().Add(5 * time.Second); arrived() < asked && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(200 * time.Millisecond)
	if got := arrived(); got != asked {
		t.Errorf("%d copies of %d requests", got, asked)
	}
}

// TestMirroredTrafficSurvivesReloads: bodies that pass and copies under way end in the old worker.
func TestMirroredTrafficSurvivesReloads(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", `
rules:
- filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}]
  backendRefs: [{name: shop, port: 80}]`)
	w := Run(t, manifests, pods("shop", 2), pods("copy", 2))
	for _, p := range w.service("copy").pods {
		p.wait.Store(int64(20 * time.Millisecond))
	}
	done, asked := make(chan struct{}), make(chan int)
	for i := range 4 {
		go func() {
			count := 0
			defer func() { asked <- count }()
			for {
				select {
				case <-done:
					return
				default:
				}
				r := get("shop.example/")
				if i%2 == 1 {
					r.method, r.body = "POST", strings.Repeat("x", 40_000)
				}
				if a := w.ask(t, r); a.outcome() != "shop" || len(a.echo.Body) != len(r.body) {
					t.Errorf("%s, %d bytes of %d (%v)", a.outcome(), len(a.echo.Body), len(r.body), a.err)
				}
				count++
			}
		}()
	}
	for port := 81; port < 85; port++ {
		w.settle(t, strings.Replace(manifests, "listeners: [", fmt.Sprintf("listeners: [{name: more, port: %d, protocol: HTTP}, ", port), 1))
		time.Sleep(200 * time.Millisecond)
	}
	close(done)
	total := int64(0)
	for range 4 {
		total += int64(<-asked)
	}
	arrived := func() (count int64) {
		for _, p := range w.service("copy").pods {
			count += p.requests.Load()
		}
		return count
	}
	for deadline := time.Now().Add(5 * time.Second); arrived() < total && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	t.Logf("%d requests, %d copies, %d reloads", total, arrived(), w.Reloads(t))
	if got := arrived(); got != total || w.Reloads(t) < 4 {
		t.Errorf("%d copies of %d requests, %d reloads", got, total, w.Reloads(t))
	}
}

func TestTimeoutsOfRules(t *testing.T) {
	t.Parallel()
	rules := "rules:\n"
	for path, timeouts := range map[string]string{
		"/none": "", "/request": "request: 300ms", "/attempt": "backendRequest: 300ms", "/both": "request: 10s, backendRequest: 300ms",
		"/unlimited": "request: 0s", "/attempts": "backendRequest: 0s", "/zero": "request: 0s, backendRequest: 300ms",
	} {
		rules += "- matches: [{path: {value: " + path + "}}]\n  timeouts: {" + timeouts + "}\n  backendRefs: [{name: slow, port: 80}]\n"
	}
	w := Run(t, gateway+route("slow", rules), pods("slow", 1))
	for _, c := range []struct {
		wait time.Duration
		want string
		path []string
	}{
		{50 * time.Millisecond, "slow", []string{"/none", "/request", "/attempt", "/both", "/unlimited", "/attempts", "/zero"}},
		{1500 * time.Millisecond, "504", []string{"/request", "/attempt", "/both", "/zero"}},
		{1500 * time.Millisecond, "slow", []string{"/none", "/unlimited", "/attempts"}},
	} {
		w.pod("slow-1").wait.Store(int64(c.wait))
		for _, path := range c.path {
			a := w.ask(t, get("x.example"+path))
			if late := a.took > 1300*time.Millisecond; a.outcome() != c.want || c.want == "504" && late {
				t.Errorf("%s of a pod that takes %s: %s after %s, want %s", strings.TrimPrefix(path, "/"), c.wait, a.outcome(), a.took, c.want)
			}
		}
	}
}

// TestABackendTLSPolicyHoldsForMirrorsToo: what leads to the Service does not matter.
func TestABackendTLSPolicyHoldsForMirrorsToo(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	mirrorTo := func(name string) string {
		return "- matches: [{path: {value: /" + name + "}}]\n  filters: [{type: RequestMirror, requestMirror: {backendRef: {name: " + name +
			", port: 80}}}]\n  backendRefs: [{name: shop, port: 80}]\n"
	}
	w := Run(t, gateway+bundle("ca", ca)+backendTLS("secure", "hostname: s.internal, "+trustCA)+backendTLS("wrong", "hostname: s.internal, "+trustCA)+
		route("shop", "rules:\n"+mirrorTo("secure")+mirrorTo("wrong")), pods("shop", 1),
		speaking("secure", "", false, ca.server("s.internal")), speaking("wrong", "", false, ca.server("other.internal")))
	for _, path := range []string{"/wrong", "/secure"} {
		w.ok(t, get("x.example"+path))
	}
	for deadline := time.Now().Add(5 * time.Second); w.pod("secure-1").requests.Load() == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if secure, wrong := w.pod("secure-1").requests.Load(), w.pod("wrong-1").requests.Load(); secure != 1 || wrong != 0 {
		t.Errorf("%d copies to the backend that proves who it is, %d to the other", secure, wrong)
	}
}

func TestRetriesOfRules(t *testing.T) {
	t.Parallel()
	rule := func(path, service, fields string) string {
		return "- matches: [{path: {value: " + path + "}}]\n  backendRefs: [{name: " + service + ", port: 80}]\n" + fields
	}
	w := Run(t, gateway+route("retries", "rules:\n"+
		rule("/codes", "flaky", "  retry: {codes: [500, 502, 503, 504], attempts: 2}\n")+
		rule("/zero", "flaky", "  retry: {codes: [500], attempts: 0}\n")+
		rule("/without", "flaky", "")+
		rule("/slow", "flaky", "  retry: {codes: [500], attempts: 2}\n  timeouts: {backendRequest: 200ms}\n")+
		rule("/deadline", "flaky", "  retry: {codes: [500], attempts: 9}\n  timeouts: {backendRequest: 200ms, request: 500ms}\n")+
		rule("/half", "half", "  retry: {attempts: 3}\n")), pods("flaky", 1), pods("half", 2))
	flaky := w.pod("flaky-1")
	for _, c := range []struct {
		path, replies string
		wait          time.Duration
		want          string
		least, most   int64
		atMost        time.Duration
	}{
		{"/codes", "500", 0, "500", 3, 3, time.Second},
		{"/codes", "502", 0, "502", 3, 3, time.Second},
		{"/codes", "503", 0, "503", 3, 3, time.Second},
		{"/codes", "504", 0, "504", 3, 3, time.Second},
		{"/codes", "501", 0, "501", 1, 1, time.Second},
		{"/codes", "200", 0, "flaky", 1, 1, time.Second},
		{"/zero", "500", 0, "500", 1, 1, time.Second},
		{"/without", "500", 0, "500", 1, 1, time.Second},
		{"/slow", "200", 600 * time.Millisecond, "504", 3, 3, 1500 * time.Millisecond},
		{"/deadline", "200", 600 * time.Millisecond, "504", 2, 4, 1100 * time.Millisecond},
	} {
		flaky.wait.Store(int64(c.wait))
		before := flaky.requests.Load()
		a := w.ask(t, get("x.example"+c.path, "X-Reply-Status: "+c.replies))
		if a.outcome() != c.want || a.took > c.atMost {
			t.Errorf("%s of a pod that says %s after %s: %s after %s, want %s", c.path, c.replies, c.wait, a.outcome(), a.took, c.want)
		}
		// What was given up has ended: nothing is tried behind the client's back.
		time.Sleep(300 * time.Millisecond)
		if tried := flaky.requests.Load() - before; tried < c.least || tried > c.most {
			t.Errorf("%s of a pod that says %s after %s: tried %d times, want from %d to %d", c.path, c.replies, c.wait, tried, c.least, c.most)
		}
	}
	w.pod("half-1").stop()
	if reached := w.count(t, 20, get("x.example/half"), answer.outcome); reached["half"] != 20 {
		t.Errorf("one of two pods refuses: %v", reached)
	}
}

// TestAnEndpointThatCannotProveWhoItIsIsLeftForAnother: a handshake that fails is a connection that was not made.
func TestAnEndpointThatCannotProveWhoItIsIsLeftForAnother(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(), newAuthority()
	w := Run(t, gateway+bundle("ca", ca)+backendTLS("secure", "hostname: s.internal, "+trustCA)+
		route("r", "rules:\n- backendRefs: [{name: secure, port: 80}]\n  retry: {attempts: 2}"),
		speaking("secure", "", false, ca.server("s.internal")))
	w.scale(t, "secure", 2)
	wrong := w.pod("secure-2")
	wrong.stop()
	wrong.tls = other.server("s.internal")
	wrong.start(t)
	if reached := w.count(t, 20, get("x.example/"), func(a answer) string { return a.outcome() + a.echo.Pod }); reached["securesecure-1"] != 20 {
		t.Errorf("%v", reached)
	}
}

// TestHAProxyListensOnTCPWhereGatewaysDo and nowhere else, so that no backend can be pointed at what is Limpet's own: with
// all that makes HAProxy listen for itself.
func TestHAProxyListensOnTCPWhereGatewaysDo(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+bundle("ca", ca)+
		backendTLS("named", "hostname: s.internal, "+trustCA+", subjectAltNames: [{type: Hostname, hostname: s.internal}]")+route("r", `
rules:
- timeouts: {request: 5s}
  filters: [{type: RequestMirror, requestMirror: {backendRef: {name: one, port: 80}}}]
  backendRefs: [{name: one, port: 80}, {name: named, port: 80}]
  sessionPersistence: {cookie: {}}`), pods("one", 1), speaking("named", "", false, ca.server("s.internal")))
	ours, own := 0, 0
	_, set := w.limpet.rendered()
	for _, section := range set.Sections {
		for line := range strings.Lines(section.Text) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "bind" && fields[0] != "stats" {
				continue
			}
			at := fields[1]
			if fields[0] == "stats" {
				at = fields[min(2, len(fields)-1)]
			}
			switch at = strings.Trim(at, `"'`); {
			case strings.HasPrefix(at, "unix@"), strings.HasPrefix(at, "abns@"), strings.HasPrefix(at, "/"), fields[0] == "stats" && fields[1] != "socket":
				own++
			case strings.HasPrefix(at, w.address().String()+":"):
				ours++
			default:
				t.Errorf("%s: %s", section.Name, line)
			}
		}
	}
	if ours != 2 || own < 3 {
		t.Errorf("HAProxy listens at %d addresses of Gateways and %d sockets of its own", ours, own)
	}
}

// TestFiltersHaveAnOrderOfTheirOwn whatever that of their list is.
func TestFiltersHaveAnOrderOfTheirOwn(t *testing.T) {
	t.Parallel()
	filters := []string{
		"{type: CORS, cors: {allowOrigins: ['*']}}",
		"{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: header.example}, {name: x, value: z}]}}",
		"{type: URLRewrite, urlRewrite: {hostname: rewrite.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}",
		"{type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}",
		"{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [Set-Cookie]}}",
	}
	rule := func(path string, filters []string) string {
		return "- matches: [{path: {value: " + path + "}}]\n  filters: [" + strings.Join(filters, ", ") +
			"]\n  backendRefs: [{name: shop, port: 80}]\n  sessionPersistence: {cookie: {name: c}}\n"
	}
	reversed := slices.Clone(filters)
	slices.Reverse(reversed)
	w := Run(t, gateway+route("shop", "rules:\n"+rule("/one", filters)+rule("/other", reversed)), pods("shop", 1), pods("copy", 1))
	for _, path := range []string{"/one", "/other"} {
		a := w.ok(t, get("x.example"+path+"/a", "Origin: https://a.example", "X-Reply: Set-Cookie: theirs=1"))
		if a.echo.Host != "rewrite.example" || a.echo.URI != "/new/a" || strings.Join(a.seen("X"), "") != "z" {
			t.Errorf("%s arrives as %s%s with %v", path, a.echo.Host, a.echo.URI, a.seen("X"))
		}
		if given := a.given(); len(given) != 1 || given[0].Name != "c" || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: the answer's head: %v", path, a.header)
		}
		preflight := w.ask(t, request{method: "OPTIONS", host: "x.example", target: path, headers: []string{"Origin: https://a.example", "Access-Control-Request-Method: GET"}})
		if preflight.status != 204 || preflight.header.Get("Pod") != "" {
			t.Errorf("%s: a preflight: %s", path, preflight.outcome())
		}
	}
	w.until(t, func() bool { return w.pod("copy-1").requests.Load() == 2 }, "each request is copied once, and no preflight")
}
