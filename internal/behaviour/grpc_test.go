package behaviour

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// grpcRoute is a GRPCRoute of the Gateway; the rest of its spec follows.
func grpcRoute(name, spec string) string {
	return strings.Replace(route(name, spec), "kind: HTTPRoute", "kind: GRPCRoute", 1)
}

// grpcPods gives the World a Service with that many pods that speak HTTP/2 alone, as those of gRPC do.
func grpcPods(name string, count int) option {
	return func(w *World) {
		s := &service{name: name, http2: true}
		w.services = append(w.services, s)
		for range count {
			w.addPod(w.t, s)
		}
	}
}

// callers are clients of gRPC: with prior knowledge on port 80, and by ALPN on port 443.
func (w *World) callers(t testing.TB) map[string]*http.Client {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	plain := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.at(80))
	}}
	t.Cleanup(plain.CloseIdleConnections)
	return map[string]*http.Client{"http": {Transport: plain, Timeout: 10 * time.Second}, "https": w.h2(t)}
}

// call calls a method, "host/service/method", with metadata. The pods answer in JSON, which is not what matters here.
func call(t testing.TB, client *http.Client, scheme, method string, metadata ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+"://"+method, bytes.NewReader([]byte{0, 0, 0, 0, 0}))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	for _, line := range metadata {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode, header: res.Header}
	text, err := io.ReadAll(res.Body)
	if a.err = err; err == nil && res.Header.Get("Pod") != "" {
		a.err = json.Unmarshal(text, &a.echo)
	}
	return a
}

// Clients of gRPC read the status 404 as UNIMPLEMENTED, and 503 as UNAVAILABLE.
const unimplemented, unavailable = "404", "503"

const grpcListeners = `
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`

func TestCallsOfGRPCAreRouted(t *testing.T) {
	t.Parallel()
	to := func(name string) string { return "\n  backendRefs: [{name: " + name + ", port: 80}]\n" }
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+grpcRoute("calls", `
hostnames: [a.example]
rules:
- matches: [{method: {service: foo.Bar}}]`+to("service")+`
- matches: [{method: {service: foo.Bar, method: Get}}]`+to("method")+`
- matches: [{method: {service: foo.Bar, method: Get}, headers: [{name: version, value: "2"}, {name: Color, value: red}]}]`+to("headers")+`
- matches: [{method: {method: Login}}]`+to("anyservice")+`
- matches: [{method: {type: RegularExpression, service: "x[.].*", method: "G.t"}}]`+to("regex")+`
- matches: [{method: {service: foo.bar}, headers: [{name: version, value: "2"}]}, {method: {service: foo.bar.v2}}]`+to("either"))+
		grpcRoute("everything", "hostnames: ['*.every.example']\nrules:\n- name: all"+to("all"))+
		route("web", "hostnames: [web.example]\nrules:\n- "+strings.TrimSpace(to("web"))),
		grpcPods("service", 1), grpcPods("method", 1), grpcPods("headers", 1), grpcPods("anyservice", 1), grpcPods("regex", 1), grpcPods("either", 1),
		grpcPods("all", 1), pods("web", 1))
	for scheme, client := range w.callers(t) {
		for _, c := range []struct {
			method   string
			metadata []string
			want     string
		}{
			{"a.example/foo.Bar/Put", nil, "service"},
			{"a.example/foo.Bar/Get", nil, "method"},
			{"a.example/foo.Bar/get", nil, "service"},
			{"a.example/foo.bar/Get", nil, unimplemented},
			{"a.example/foo.Barber/Get", nil, unimplemented},
			{"a.example/foo.Bar/Get", []string{"version: 2", "color: red"}, "headers"},
			{"a.example/foo.Bar/Get", []string{"version: 2"}, "method"},
			{"a.example/foo.Bar/Get", []string{"version: 2", "color: blue"}, "method"},
			{"a.example/any.Thing/Login", nil, "anyservice"},
			{"a.example/any.Thing/Logout", nil, unimplemented},
			{"a.example/x.Y/Get", nil, "regex"},
			{"a.example/x.Y/Gets", nil, unimplemented},
			{"a.example/foo.bar/Get", []string{"version: 2"}, "either"},
			{"a.example/foo.bar.v2/Get", nil, "either"},
			{"b.every.example/what.Ever/Is", nil, "all"},
			{"web.example/foo.Bar/Get", nil, "web"},
			{"nobody.example/foo.Bar/Get", nil, unimplemented},
		} {
			a := call(t, client, scheme, c.method, c.metadata...)
			if a.outcome() != c.want {
				t.Errorf("%s %s %q: %s, want %s", scheme, c.method, c.metadata, a.outcome(), c.want)
			}
			if want := map[bool]string{true: "HTTP/1.1", false: "HTTP/2.0"}[c.want == "web"]; a.status == 200 && a.echo.Protocol != want {
				t.Errorf("%s %s: the pod is spoken to in %s, want %s", scheme, c.method, a.echo.Protocol, want)
			}
		}
	}
}

// TestPrecedenceOfCalls has matches of several rules and routes, of which one is the right one.
func TestPrecedenceOfCalls(t *testing.T) {
	t.Parallel()
	rule := func(match, to string) string {
		return "- matches: [" + match + "]\n  backendRefs: [{name: " + to + ", port: 80}]\n"
	}
	old := func(text string) string {
		return strings.Replace(text, "metadata: {", `metadata: {creationTimestamp: "2026-01-01T00:00:00Z", `, 1)
	}
	young := func(text string) string {
		return strings.Replace(text, "metadata: {", `metadata: {creationTimestamp: "2026-02-02T00:00:00Z", `, 1)
	}
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+
		young(grpcRoute("a-young", "hostnames: [a.example]\nrules:\n"+rule("{method: {service: tie.S, method: M}}", "young")+
			rule("{method: {service: long.Service}}", "one")+rule("{method: {service: tie.S, method: Only}}", "young")))+
		old(grpcRoute("z-old", "hostnames: [a.example]\nrules:\n"+rule("{method: {service: tie.S, method: M}}", "old")+rule("{method: {service: tie.S, method: M}}", "one")+
			rule("{method: {service: tie.S}}", "one")+rule("{method: {service: tie.S, method: M}, headers: [{name: x, value: z}]}", "headers")))+
		grpcRoute("wide", "hostnames: ['*.example']\nrules:\n"+rule("{method: {service: tie.S, method: Longer}, headers: [{name: x, value: z}]}", "wide")+
			rule("{method: {service: wide.S, method: M}}", "wide"))+
		old(grpcRoute("b", "hostnames: [named.example]\nrules:\n"+rule("{}", "one")))+old(grpcRoute("a", "hostnames: [named.example]\nrules:\n"+rule("{}", "young"))),
		grpcPods("young", 1), grpcPods("old", 1), grpcPods("one", 1), grpcPods("headers", 1), grpcPods("wide", 1))
	for scheme, client := range w.callers(t) {
		for _, c := range []struct{ method, metadata, want string }{
			{"a.example/tie.S/M", "", "old"},           // the older route, and of its rules the first
			{"a.example/tie.S/M", "x: z", "headers"},   // more headers
			{"a.example/tie.S/Only", "", "young"},      // characters of the method before the age
			{"a.example/tie.S/Other", "", "one"},       // the service alone
			{"a.example/tie.S/Longer", "x: z", "one"},  // characters of the hostname before all else
			{"a.example/wide.S/M", "", "wide"},         // where nothing at the narrower hostname matches
			{"a.example/long.Service/M", "", "one"},    // of the younger route alone
			{"named.example/what.Ever/M", "", "young"}, // of one age the first by name
		} {
			var metadata []string
			if c.metadata != "" {
				metadata = []string{c.metadata}
			}
			if got := call(t, client, scheme, c.method, metadata...).outcome(); got != c.want {
				t.Errorf("%s %s %q: %s, want %s", scheme, c.method, c.metadata, got, c.want)
			}
		}
	}
}

func TestCallsWithoutABackendAreUnavailable(t *testing.T) {
	t.Parallel()
	rule := func(service, refs string) string {
		return "- matches: [{method: {service: " + service + "}}]\n  backendRefs: [" + refs + "]\n"
	}
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+grpcRoute("calls", "rules:\n"+
		rule("gone", "{name: gone, port: 80}")+rule("kind", "{kind: Bucket, name: one, port: 80}")+rule("away", "{name: one, namespace: elsewhere, port: 80}")+
		rule("none", "")+rule("empty", "{name: empty, port: 80}")+rule("half", "{name: one, port: 80}, {name: gone, port: 80}")+
		"- matches: [{method: {service: extension}}]\n  filters: [{type: ExtensionRef, extensionRef: {group: a.example, kind: B, name: c}}]\n"+
		"  backendRefs: [{name: one, port: 80}]\n"), grpcPods("one", 1), grpcPods("empty", 0))
	for scheme, client := range w.callers(t) {
		for _, service := range []string{"gone", "kind", "away", "none", "empty", "extension"} {
			if got := call(t, client, scheme, "a.example/"+service+"/M").outcome(); got != unavailable {
				t.Errorf("%s %s: %s, want %s", scheme, service, got, unavailable)
			}
		}
		counts := map[string]int{}
		for range 100 {
			counts[call(t, client, scheme, "a.example/half/M").outcome()]++
		}
		if !within(counts[unavailable], 100, 0.5) || counts[unavailable]+counts["one"] != 100 {
			t.Errorf("%s, one of two backends is invalid: %v", scheme, counts)
		}
	}
	if got := w.condition(t, "GRPCRoute default/calls", "ResolvedRefs"); got.Status != "False" || !strings.Contains(got.Message, "gone") {
		t.Errorf("ResolvedRefs is %+v", got)
	}
}

func TestFiltersOfGRPCRoutes(t *testing.T) {
	t.Parallel()
	set := func(kind, value string) string {
		return fmt.Sprintf("{type: %sHeaderModifier, %sHeaderModifier: {set: [{name: x-%s, value: %s}]}}", kind, strings.ToLower(kind[:1])+kind[1:], value, value)
	}
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+grpcRoute("calls", `
rules:
- filters:
  - `+set("Request", "rule")+`
  - `+set("Response", "answer")+`
  - {type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}
  backendRefs:
  - {name: one, port: 80, filters: [`+set("Request", "one")+`]}
  - {name: two, port: 80}`), grpcPods("one", 1), grpcPods("two", 1), grpcPods("copy", 2))
	asked := int64(0)
	for scheme, client := range w.callers(t) {
		seen := map[string]bool{}
		for range 30 {
			a := call(t, client, scheme, "a.example/s.S/M")
			asked++
			name := a.outcome()
			seen[name] = true
			if name != "one" && name != "two" || a.echo.Header.Get("X-Rule") != "rule" || a.header.Get("X-Answer") != "answer" {
				t.Errorf("%s: %s, %v, %v", scheme, name, a.echo.Header, a.header)
			}
			if only := a.echo.Header.Get("X-One") != ""; only != (name == "one") {
				t.Errorf("%s: %s got the header of one: %t", scheme, name, only)
			}
		}
		if len(seen) != 2 {
			t.Errorf("%s: answered by %v", scheme, seen)
		}
	}
	copies := func() int64 { return w.pod("copy-1").requests.Load() + w.pod("copy-2").requests.Load() }
	w.until(t, func() bool { return copies() == asked }, "every call is copied once")
}

func TestSessionsOfGRPCRoutes(t *testing.T) {
	t.Parallel()
	rule := func(service, refs, session string) string {
		return "- matches: [{method: {service: " + service + "}}]\n  backendRefs: [" + refs + "]\n  sessionPersistence: " + session + "\n"
	}
	const one = "{name: one, port: 80}"
	w := Run(t, listeners(grpcListeners)+certificate("a", "*.example")+grpcRoute("calls", "rules:\n"+
		rule("cookie", one, "{cookie: {}}")+rule("header", one, "{type: Header, header: {name: x-session}}")+
		rule("split", "{name: one, port: 80, weight: 70}, {name: two, port: 80, weight: 30}", "{cookie: {name: s}}")), grpcPods("one", 4), grpcPods("two", 3))
	if got := w.condition(t, "GRPCRoute default/calls", "Accepted"); got.Status != "True" {
		t.Errorf("Accepted is %+v", got)
	}
	for scheme, client := range w.callers(t) {
		for service, given := range map[string]func(answer) string{
			"cookie": func(a answer) string {
				line := a.cookieLine(t)
				if strings.Contains(line, "Expires") || strings.Contains(line, "Max-Age") {
					t.Errorf("%s: a cookie for the client's session is %s", scheme, line)
				}
				pair, _, _ := strings.Cut(line, ";")
				return "Cookie: " + pair
			},
			"header": func(a answer) string { return "X-Session: " + a.header.Get("X-Session") },
		} {
			for range 4 {
				first := call(t, client, scheme, "a.example/"+service+"/M")
				token := given(first)
				for range 10 {
					if a := call(t, client, scheme, "a.example/"+service+"/Other", token); a.echo.Pod != first.echo.Pod || a.outcome() != "one" {
						t.Errorf("%s, %s: %s of %s after %s", scheme, service, a.outcome(), a.echo.Pod, first.echo.Pod)
					}
				}
			}
		}
		// A split decides first, with every call, and in each backend the client has its endpoint.
		cookies, home, counts := map[string]string{}, map[string]string{}, map[string]int{}
		for range 200 {
			line := "Cookie: "
			for name, value := range cookies {
				line += name + "=" + value + "; "
			}
			a := call(t, client, scheme, "a.example/split/M", strings.TrimSuffix(line, "; "))
			counts[a.outcome()]++
			for _, cookie := range a.given() {
				cookies[cookie.Name] = cookie.Value
			}
			if last := home[a.outcome()]; last != "" && last != a.echo.Pod {
				t.Errorf("%s: in %s from %s to %s", scheme, a.outcome(), last, a.echo.Pod)
			}
			home[a.outcome()] = a.echo.Pod
		}
		if !within(counts["two"], 200, 0.3) || counts["one"]+counts["two"] != 200 {
			t.Errorf("%s: %v of 200, want 70 to 30", scheme, counts)
		}
	}
}
