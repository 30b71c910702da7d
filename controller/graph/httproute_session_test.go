package graph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, session, want string }{
		{"a cookie with defaults", "{cookie: {}}", "{Cookie  0s false /}"},
		{"a cookie with everything", "{type: Cookie, absoluteTimeout: 1h30m, cookie: {name: sid, path: /app, lifetimeType: Permanent}}",
			"{Cookie sid 1h30m0s true /app}"},
		{"a session cookie with a limit", "{absoluteTimeout: 5m, cookie: {lifetimeType: Session}}", "{Cookie  5m0s false /}"},
		{"a header", "{type: Header, header: {name: X-Session}}", "{Header X-Session 0s false }"},
		{"a header with a limit", "{type: Header, absoluteTimeout: 10s, header: {name: X-Session}}", "{Header X-Session 10s false }"},
		{"ten years", "{absoluteTimeout: 87600h, cookie: {}}", "{Cookie  87600h0m0s false /}"},
		{"a name with 128 characters", "{cookie: {name: " + strings.Repeat("a", 128) + "}}", "{Cookie " + strings.Repeat("a", 128) + " 0s false /}"},
		{"an unknown type", "{type: Body, cookie: {}}", ""},
		{"a cookie for type Header", "{type: Header, cookie: {}, header: {name: a}}", ""},
		{"a header for type Cookie", "{cookie: {}, header: {name: a}}", ""},
		{"Permanent without limit", "{cookie: {lifetimeType: Permanent}}", ""},
		{"an unknown lifetime", "{cookie: {lifetimeType: Eternal}}", ""},
		{"an empty cookie name", "{cookie: {name: ''}}", ""},
		{"a cookie name with a blank", "{cookie: {name: 'a b'}}", ""},
		{"a cookie name with a semicolon", "{cookie: {name: 'a;b'}}", ""},
		{"a cookie name with an equals sign", "{cookie: {name: 'a=b'}}", ""},
		{"a cookie name with a newline", `{cookie: {name: "a\nb"}}`, ""},
		{"a cookie name with 129 characters", "{cookie: {name: " + strings.Repeat("a", 129) + "}}", ""},
		{"the prefix __Host- on a plain listener", "{cookie: {name: __Host-sid}}", ""},
		{"the prefix __Secure- in another case on a plain listener", "{cookie: {name: __secure-sid}}", ""},
		{"a header needs no Secure", "{type: Header, header: {name: __Secure-sid}}", "{Header __Secure-sid 0s false }"},
		{"a path without slash", "{cookie: {path: a}}", ""},
		{"an empty path", "{cookie: {path: ''}}", ""},
		{"a path with another attribute", "{cookie: {path: '/; Domain=evil.com'}}", ""},
		{"a path with a comma", "{cookie: {path: '/a,b'}}", ""},
		{"a path with a newline", `{cookie: {path: "/a\n"}}`, ""},
		{"a path that is too long", "{cookie: {path: /" + strings.Repeat("a", 1024) + "}}", ""},
		{"no duration", "{absoluteTimeout: '1', cookie: {}}", ""},
		{"days", "{absoluteTimeout: 1d, cookie: {}}", ""},
		{"a negative duration", "{absoluteTimeout: -1h, cookie: {}}", ""},
		{"no time at all", "{absoluteTimeout: 0s, cookie: {}}", ""},
		{"less than a second", "{absoluteTimeout: 500ms, cookie: {}}", ""},
		{"no whole seconds", "{absoluteTimeout: 1s500ms, cookie: {}}", ""},
		{"more than ten years", "{absoluteTimeout: 99999h, cookie: {}}", ""},
		{"an empty header name", "{type: Header, header: {name: ''}}", ""},
		{"a header name that is no token", "{type: Header, header: {name: 'a:b'}}", ""},
		{"the header Cookie", "{type: Header, header: {name: Cookie}}", ""},
		{"the header Host", "{type: Header, header: {name: host}}", ""},
		{"the header Transfer-Encoding", "{type: Header, header: {name: Transfer-Encoding}}", ""},
		{"a header that Limpet sets itself", "{type: Header, header: {name: X-Forwarded-For}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+shop+routeTo("{backendRefs: [{name: shop, port: 80}], sessionPersistence: "+test.session+"}"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].sessionPersistence")
				return
			}
			session := g.rule(t).Session
			if session == nil {
				t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
			}
			got := fmt.Sprintf("{%s %s %s %v %s}", session.Type, session.Name, session.Absolute, session.Permanent, session.Path)
			if got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// oldShape gives the first rule of the only route the fields that v1.7 of the API does not have.
func oldShape(snapshot cluster.Snapshot, old *cluster.OldSession) cluster.Snapshot {
	session := snapshot.HTTPRoutes.All()[0].Spec.Rules[0].SessionPersistence //nolint:staticcheck // deprecated upstream
	snapshot.OldSessions = map[*gatewayv1.SessionPersistence]*cluster.OldSession{session: old}
	return snapshot
}

// B29: each field may be missing.
func TestSessionsAsOlderVersionsWroteThem(t *testing.T) {
	t.Parallel()
	text := func(value string) *string { return &value }
	limit := func(value gatewayv1.Duration) *gatewayv1.Duration { return &value }
	lifetime := func(value gatewayv1.CookieLifetimeType) *cluster.OldCookieConfig {
		return &cluster.OldCookieConfig{LifetimeType: &value}
	}
	for _, test := range []struct {
		name, session string
		old           *cluster.OldSession
		want          string
	}{
		{"nothing at all", "{}", nil, "{Cookie  0s 0s false /}"},
		{"type Cookie alone", "{type: Cookie}", nil, "{Cookie  0s 0s false /}"},
		{"type Header alone", "{type: Header}", nil, "{Header  0s 0s false }"},
		{"a limit alone", "{absoluteTimeout: 1h}", nil, "{Cookie  1h0m0s 0s false /}"},
		{"everything", "{type: Cookie, absoluteTimeout: 8h}", &cluster.OldSession{SessionName: text("sid"), IdleTimeout: limit("30m"), CookieConfig: lifetime("Permanent")},
			"{Cookie sid 8h0m0s 30m0s true /}"},
		{"a name alone", "{}", &cluster.OldSession{SessionName: text("sid")}, "{Cookie sid 0s 0s false /}"},
		{"an idle limit alone", "{}", &cluster.OldSession{IdleTimeout: limit("5m")}, "{Cookie  0s 5m0s false /}"},
		{"an empty cookieConfig", "{}", &cluster.OldSession{CookieConfig: &cluster.OldCookieConfig{}}, "{Cookie  0s 0s false /}"},
		{"a session cookie", "{}", &cluster.OldSession{CookieConfig: lifetime("Session")}, "{Cookie  0s 0s false /}"},
		{"a header", "{type: Header}", &cluster.OldSession{SessionName: text("X-Session"), IdleTimeout: limit("5m")}, "{Header X-Session 0s 5m0s false }"},
		{"Permanent without limit", "{}", &cluster.OldSession{CookieConfig: lifetime("Permanent")}, ""},
		{"an unknown lifetime", "{}", &cluster.OldSession{CookieConfig: lifetime("Eternal")}, ""},
		{"an unknown type", "{type: Body}", &cluster.OldSession{SessionName: text("a")}, ""},
		{"cookieConfig for a header", "{type: Header}", &cluster.OldSession{CookieConfig: lifetime("Session")}, ""},
		{"an empty name", "{}", &cluster.OldSession{SessionName: text("")}, ""},
		{"a name that is no token", "{}", &cluster.OldSession{SessionName: text("a;b")}, ""},
		{"a name that another header has", "{type: Header}", &cluster.OldSession{SessionName: text("Cookie")}, ""},
		{"no duration", "{}", &cluster.OldSession{IdleTimeout: limit("1d")}, ""},
		{"no time at all", "{}", &cluster.OldSession{IdleTimeout: limit("0s")}, ""},
		{"a cookie that needs Secure", "{}", &cluster.OldSession{SessionName: text("__Host-sid")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			snapshot := read(t, gateway+shop+routeTo("{backendRefs: [{name: shop, port: 80}], sessionPersistence: "+test.session+"}"))
			if test.old != nil {
				snapshot = oldShape(snapshot, test.old)
			}
			g := NewBuilder(Options{PortOffset: 8000}).Build(snapshot)
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].sessionPersistence")
				return
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
			session := g.rule(t).Session
			got := fmt.Sprintf("{%s %s %s %s %v %s}", session.Type, session.Name, session.Absolute, session.Idle, session.Permanent, session.Path)
			if got != test.want || !session.Sticky {
				t.Errorf("got %s, sticky %v", got, session.Sticky)
			}
		})
	}
}

func TestTheTwoShapesOfASessionDoNotMix(t *testing.T) {
	t.Parallel()
	name := "sid"
	for _, session := range []string{"{cookie: {}}", "{type: Header, header: {name: a}}"} {
		snapshot := read(t, gateway+shop+routeTo("{backendRefs: [{name: shop, port: 80}], sessionPersistence: "+session+"}"))
		g := NewBuilder(Options{PortOffset: 8000}).Build(oldShape(snapshot, &cluster.OldSession{SessionName: &name}))
		expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "spec.rules[0].sessionPersistence: cookie and header (Gateway API v1.7) must not stand beside sessionName")
	}
	g := build(t, gateway+shop+routeTo("{backendRefs: [{name: shop, port: 80}], sessionPersistence: {cookie: {}}}"))
	if g.rule(t).Session.Sticky {
		t.Error("a session as v1.7 has it decides the backend")
	}
}

func TestCookiesThatDemandSecure(t *testing.T) {
	t.Parallel()
	const both = `
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
  - {name: http, port: 80, protocol: HTTP}
`
	route := func(section, cookie string) string {
		return routeOf("{name: gw, sectionName: "+section+"}", "  rules: [{name: a, sessionPersistence: {cookie: "+cookie+
			"}, backendRefs: [{name: shop, port: 80}]}, {name: b, matches: [{path: {value: /b}}]}]")
	}
	for _, test := range []struct{ name, route, want string }{
		{"__Host- on a TLS listener", route("https", "{name: __Host-sid}"), routeOK},
		{"__Secure- with a path on a TLS listener", route("https", "{name: __Secure-sid, path: /a}"), routeOK},
		{"__Host- with a path", route("https", "{name: __HOST-sid, path: /a}"), routeOK + " PartiallyInvalid=True/UnsupportedValue"},
		{"__Host- on a plain listener", route("http", "{name: __Host-sid}"), routeOK + " PartiallyInvalid=True/UnsupportedValue"},
		{"another name on a plain listener", route("http", "{name: _Host-sid}"), routeOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, class+gatewayWith("gw", "listeners:"+both)+shop+secretYAML("default", "cert")+"\n"+test.route)
			node := g.route(t, "default/route")
			expect(t, node.Parents[0].Conditions, test.want)
			if node.Rules[0].Dropped != (test.want != routeOK) || node.Rules[1].Dropped {
				t.Errorf("%+v", node.Rules)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0h": 0, "0s": 0, "0h0m0s": 0, "1h": time.Hour, "30m": 30 * time.Minute, "10s": 10 * time.Second, "500ms": 500 * time.Millisecond,
		"2h30m": 150 * time.Minute, "150m": 150 * time.Minute, "7230s": 7230 * time.Second, "1h30m10s": 5410 * time.Second,
		"10s30m1h": 5410 * time.Second, "100ms200ms300ms": 600 * time.Millisecond, "00060m": time.Hour, "5m5s": 305 * time.Second,
	} {
		if got, valid := parseDuration(text); !valid || got != want {
			t.Errorf("%q: got %s %v, want %s", text, got, valid, want)
		}
	}
	for _, text := range []string{"", "1", "1m1", "1d", "1h30m10s20ms50h", "999999h", "1.5h", "-15m", "h", "1 h", "1hs", "1H", "m1"} {
		if got, valid := parseDuration(text); valid {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
}
