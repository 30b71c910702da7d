package behaviour

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sticky is a rule's session by cookie with these fields.
func sticky(path, backend, session string) string {
	return fmt.Sprintf("- matches: [{path: {value: %s}}]\n  backendRefs: [{name: %s, port: 80}]\n  sessionPersistence: %s\n", path, backend, session)
}

func TestACookieKeepsItsEndpoint(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{type: Cookie, cookie: {}}")), pods("one", 4))
	c := w.crowd(t, 20, "x.example", "/")
	for pod, count := range c.on() {
		if count != 5 {
			t.Errorf("%d of 20 sessions are on %s, want 5", count, pod)
		}
	}
	for range 5 {
		if moved := c.moved(t, "/"); len(moved) > 0 {
			t.Fatalf("moved: %v", moved)
		}
	}
	v := w.visitor("x.example")
	if a := v.get(t, "/first"); a.keeps() {
		t.Error("B30: the first answer gives no cookie")
	}
	if a := v.get(t, "/second"); !a.keeps() {
		t.Errorf("a session that is kept is given again: %q", a.header.Values("Set-Cookie"))
	}
}

// TestB31ACookieHasTheAttributesThatItsListenerAllows also is B27, B28, B29, B30 and B32.
func TestB31ACookieHasTheAttributesThatItsListenerAllows(t *testing.T) {
	t.Parallel()
	const value = `=1a\.[a-z2-7]{8}\.[a-z2-7]{13}\.\d{10}\.\d{10}\.[A-Za-z0-9_-]{22}; `
	cases := []struct{ name, session, want string }{
		{"nothing", `{cookie: {}}`, `limpet-[a-z2-7]{12}` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"type", `{type: Cookie, cookie: {}}`, `limpet-[a-z2-7]{12}` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"name", `{cookie: {name: shop}}`, `shop` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"odd-name", `{cookie: {name: "A!#$%&'*+-.^_|~1"}}`, regexp.QuoteMeta("A!#$%&'*+-.^_|~1") + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"path", `{cookie: {name: p, path: /shop}}`, `p` + value + `Path=/shop; HttpOnly; SameSite=Lax`},
		{"odd-path", `{cookie: {name: o, path: "/ab'\"%[env(HOME)]$HOME#\\"}}`, `o` + value + `Path=` + regexp.QuoteMeta(`/ab'"%[env(HOME)]$HOME#\`) + `; HttpOnly; SameSite=Lax`},
		{"absolute", `{absoluteTimeout: 1h, cookie: {name: a}}`, `a` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"session", `{absoluteTimeout: 1h, cookie: {name: s, lifetimeType: Session}}`, `s` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"permanent", `{absoluteTimeout: 1h30m, cookie: {name: l, lifetimeType: Permanent}}`, `l` + value + `Max-Age=5400; Path=/; HttpOnly; SameSite=Lax`},
		{"long", `{absoluteTimeout: 8760h, cookie: {name: year, lifetimeType: Permanent, path: /y}}`, `year` + value + `Max-Age=31536000; Path=/y; HttpOnly; SameSite=Lax`},
		{"old", `{}`, `limpet-[a-z2-7]{12}` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"old-name", `{type: Cookie, sessionName: old}`, `old` + value + `Path=/; HttpOnly; SameSite=Lax`},
		{"old-permanent", `{sessionName: op, absoluteTimeout: 1h, cookieConfig: {lifetimeType: Permanent}}`, `op` + value + `Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`},
	}
	var rules strings.Builder
	for _, c := range cases {
		rules.WriteString(sticky("/"+c.name, "one", c.session))
	}
	manifests := listeners(twoPorts) + certificate("cert", "x.example") + route("all", "rules:\n"+rules.String()) +
		route("regex", "rules:\n- matches: [{path: {type: RegularExpression, value: \"/re/[a-z]+\"}}]\n  backendRefs: [{name: one, port: 80}]\n  sessionPersistence: {cookie: {name: re}}")
	check := func(t *testing.T, w *World) {
		t.Helper()
		for _, c := range cases {
			want := c.want
			for _, secure := range []bool{false, true} {
				r := get("x.example/" + c.name)
				if r.tls = secure; secure {
					want += "; Secure"
				}
				if got := w.ok(t, r).cookieLine(t); !regexp.MustCompile("^" + want + "$").MatchString(got) {
					t.Errorf("%s, TLS %t: %s, want %s", c.name, secure, got, want)
				}
			}
		}
		if got := w.ok(t, get("x.example/re/x")).cookieLine(t); !strings.HasSuffix(got, "; Path=/; HttpOnly; SameSite=Lax") {
			t.Errorf("a regular expression for the path: %s", got)
		}
	}
	w := Run(t, manifests, pods("one", 2))
	check(t, w)
	t.Run("with names that come later", func(t *testing.T) {
		w.Apply(t, listeners(twoPorts)+certificate("cert", "x.example"))
		w.Apply(t, manifests)
		check(t, w)
	})
	for name, session := range map[string]string{
		"both shapes":                     `{sessionName: sid, cookie: {name: sid}}`,
		"cookieConfig for a header":       `{type: Header, sessionName: x, cookieConfig: {}}`,
		"permanent, in the old shape":     `{cookieConfig: {lifetimeType: Permanent}}`,
		"permanent without a timeout":     `{cookie: {lifetimeType: Permanent}}`,
		"a lifetime that is none":         `{cookie: {lifetimeType: Forever}}`,
		"a type that is none":             `{type: Url, cookie: {}}`,
		"a name that is none":             `{sessionName: "a b"}`,
		"a cookie for a header":           `{type: Header, cookie: {}, header: {name: x}}`,
		"a header for a cookie":           `{type: Cookie, cookie: {}, header: {name: x}}`,
		"a timeout below a second":        `{absoluteTimeout: 500ms, cookie: {}}`,
		"a header with another meaning":   `{type: Header, header: {name: Authorization}}`,
		"a path that does not begin with": `{cookie: {path: shop}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w.Apply(t, gateway+route("bad", "rules:\n"+sticky("/", "one", session))+route("good", "hostnames: [good.example]\nrules:\n- backendRefs: [{name: one, port: 80}]"))
			if got := w.ask(t, get("x.example/")).outcome(); got != "500" {
				t.Errorf("%s, want 500", got)
			}
			if got := w.condition(t, "HTTPRoute default/bad", "Accepted"); got.Status != "False" || !strings.Contains(got.Message, "sessionPersistence") {
				t.Errorf("the condition is %s: %s", got.Reason, got.Message)
			}
			if got := w.ask(t, get("good.example/")).outcome(); got != "one" {
				t.Errorf("the good route: %s", got)
			}
		})
	}
}

func TestB27OneCookieServesAllPaths(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{cookie: {}}")), pods("one", 3))
	v := w.visitor("x.example")
	first := v.ok(t, "/foo/x")
	for _, path := range []string{"/bar/y", "/", "/favicon.ico", "/foo/x"} {
		if got := v.ok(t, path); got != first {
			t.Errorf("%s: %s, want %s", path, got, first)
		}
		if cookies := strings.Count(v.cookies(path), "="); cookies != 1 {
			t.Errorf("%d cookies for %s, want one", cookies, path)
		}
	}
}

func TestB28ACookieWithAPathIsSentThere(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/shop", "one", "{cookie: {name: c, path: /shop/cart}}")), pods("one", 3))
	v := w.visitor("x.example")
	first := v.ok(t, "/shop/cart/a")
	if inside, outside := v.cookies("/shop/cart/b"), v.cookies("/shop"); inside == "" || outside != "" {
		t.Errorf("the browser sends %q there and %q elsewhere", inside, outside)
	}
	for range 5 {
		if got := v.ok(t, "/shop/cart/b"); got != first {
			t.Errorf("%s, want %s", got, first)
		}
	}
}

func TestGeneratedNamesAreStableAndUniqueForEachScope(t *testing.T) {
	t.Parallel()
	manifests := gateway +
		route("a", "hostnames: [a.example]\nrules:\n"+sticky("/x", "one", "{cookie: {}}")+sticky("/y", "one", "{cookie: {}}")+sticky("/z", "two", "{cookie: {}}")) +
		route("b", "hostnames: [b.example]\nrules:\n"+sticky("/x", "one", "{cookie: {}}")+"- matches: [{path: {value: /split}}]\n  backendRefs: [{name: one, port: 80}, {name: two, port: 80}]\n  sessionPersistence: {cookie: {}}\n")
	names := func(w *World) map[string]string {
		found := map[string]string{}
		for _, url := range []string{"a.example/x", "a.example/y", "a.example/z", "b.example/x"} {
			found[url] = w.ok(t, get(url)).given()[0].Name
		}
		for range 20 {
			a := w.ok(t, get("b.example/split"))
			found["b.example/split "+a.echo.Service] = a.given()[0].Name
		}
		return found
	}
	w := Run(t, manifests, pods("one", 1), pods("two", 1))
	first := names(w)
	seen := map[string]string{}
	for url, name := range first {
		if other, twice := seen[name]; twice {
			t.Errorf("%s and %s have one cookie, %s", url, other, name)
		}
		seen[name] = url
	}
	if len(first) != 6 {
		t.Errorf("%d names: %v", len(first), first)
	}
	other := Run(t, manifests, pods("two", 2), pods("one", 3))
	w.restart(t)
	for what, again := range map[string]map[string]string{"after a restart": names(w), "in another Limpet": names(other)} {
		if fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("%s: %v, want %v", what, again, first)
		}
	}
}

func TestB26RulesDoNotShareSessions(t *testing.T) {
	t.Parallel()
	// The rules have one Service, and their cookies one name: a token of the one is worth nothing in the other.
	w := Run(t, gateway+route("all", "rules:\n"+
		sticky("/a", "one", "{cookie: {name: a}}")+sticky("/b", "one", "{cookie: {name: b}}")+"- matches: [{path: {value: /c}}]\n  backendRefs: [{name: one, port: 80}]\n"+
		sticky("/same1", "one", "{cookie: {name: same}}")+sticky("/same2", "one", "{cookie: {name: same}}")+
		sticky("/head", "one", "{type: Header, header: {name: X-Session}}"))+
		route("other", "hostnames: [other.example]\nrules:\n"+sticky("/same1", "one", "{cookie: {name: same}}")), pods("one", 5))
	for _, name := range []string{"a", "b"} {
		a := w.ok(t, get("x.example/"+name))
		if got := a.given()[0].Name; got != name {
			t.Errorf("/%s gives the cookie %s", name, got)
		}
	}
	if a := w.ok(t, get("x.example/c")); !a.keeps() {
		t.Errorf("a rule without sessions gives %q", a.header.Values("Set-Cookie"))
	}
	k := w.ok(t, get("x.example/same1")).token(t, "same")
	if a := w.ok(t, get("x.example/same1", "Cookie: same="+k.String())); !a.keeps() {
		t.Errorf("the rule's own token is given again")
	}
	for _, url := range []string{"x.example/same2", "other.example/same1"} {
		if a := w.ok(t, get(url, "Cookie: same="+k.String())); a.keeps() {
			t.Errorf("%s takes the token of another rule", url)
		}
	}
	if a := w.ok(t, get("x.example/a", "Cookie: a="+k.String())); a.keeps() {
		t.Error("a token under another rule's name is taken")
	}
	if a := w.ok(t, get("x.example/head", "X-Session: "+k.String())); a.header.Get("X-Session") == "" {
		t.Error("a cookie's token is taken in a header")
	}
	if w.Reloads(t) != 0 {
		t.Errorf("%d reloads", w.Reloads(t))
	}
}

func TestCookiesReachThePodAsTheyWereSent(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{cookie: {name: c}}")), pods("one", 3))
	first := w.ok(t, get("x.example/"))
	k := first.token(t, "c").String()
	for name, lines := range map[string][]string{
		"alone":                         {"c=" + k},
		"among others":                  {"a=b; c=" + k + "; d=e"},
		"at the end":                    {"a=b; c=" + k},
		"without blanks":                {"a=b;c=" + k + ";d=e"},
		"in the first of two fields":    {"c=" + k, "a=b; d=e"},
		"in the last of two fields":     {"a=b; d=e", "c=" + k},
		"in the middle of three":        {"a=b", "x=y; c=" + k + "; z=1", "d=e"},
		"beside names that contain its": {"cc=1; xc=2; c=" + k + "; c2=3; C=4"},
		"beside values that look alike": {"a=c=; b=\"c=x\"; c=" + k},
		"beside odd ones":               {"=x; ; a; b=; c=" + k + "; %[env(HOME)]='\"\\"},
	} {
		var headers []string
		for _, line := range lines {
			headers = append(headers, "Cookie: "+line)
		}
		for range 3 {
			a := w.ok(t, get("x.example/", headers...))
			if a.echo.Pod != first.echo.Pod || !a.keeps() {
				t.Errorf("%s: %s, want %s; given %q", name, a.echo.Pod, first.echo.Pod, a.header.Values("Set-Cookie"))
				break
			}
			if got, want := strings.Join(a.seen("Cookie"), "|"), strings.Join(lines, "|"); got != want {
				t.Errorf("%s: the pod sees %q, want %q", name, got, want)
			}
		}
	}
	// What the application sets stays, beside ours.
	a := w.ok(t, get("x.example/", "X-Reply: Set-Cookie: app=1; Path=/", "X-Reply: Set-Cookie: other=2"))
	if lines := a.header.Values("Set-Cookie"); len(lines) != 3 || lines[0] != "app=1; Path=/" || lines[1] != "other=2" {
		t.Errorf("Set-Cookie: %q", lines)
	}
	a = w.ok(t, get("x.example/", "X-Reply: Set-Cookie: app=1; Path=/", "Cookie: c="+k))
	if lines := a.header.Values("Set-Cookie"); len(lines) != 1 || lines[0] != "app=1; Path=/" {
		t.Errorf("Set-Cookie: %q", lines)
	}
}

func TestFiltersThatChangeCookiesLeaveSessionsAlone(t *testing.T) {
	t.Parallel()
	filter := func(path, change string) string {
		return strings.Replace(sticky(path, "one", "{cookie: {name: c}}"), "  backendRefs:", "  filters: [{type: RequestHeaderModifier, requestHeaderModifier: "+change+"}]\n  backendRefs:", 1)
	}
	w := Run(t, gateway+route("all", "rules:\n"+filter("/removed", "{remove: [Cookie]}")+filter("/set", "{set: [{name: cookie, value: c=other}]}")+filter("/added", "{add: [{name: Cookie, value: c=other}]}")), pods("one", 4))
	for path, want := range map[string]string{"/removed": "", "/set": "c=other", "/added": "c=TOKEN|c=other"} {
		first := w.ok(t, get("x.example"+path))
		token := first.token(t, "c").String()
		for range 3 {
			a := w.ok(t, get("x.example"+path, "Cookie: c="+token))
			if a.echo.Pod != first.echo.Pod || !a.keeps() {
				t.Errorf("%s: %s, want %s", path, a.echo.Pod, first.echo.Pod)
			}
			if got := strings.ReplaceAll(strings.Join(a.seen("Cookie"), "|"), token, "TOKEN"); got != want {
				t.Errorf("%s: the pod sees %q, want %q", path, got, want)
			}
		}
	}
}

func TestOnlyCacheableAnswersWithATokenBecomePrivate(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/", "one", "{cookie: {name: c}}")+
		sticky("/head", "one", "{type: Header, header: {name: X-Session}}")+
		"- matches: [{path: {value: /plain}}]\n  backendRefs: [{name: one, port: 80}]\n"), pods("one", 2))
	k := w.ok(t, get("x.example/")).token(t, "c")
	for _, c := range []struct{ reply, given, kept string }{
		{"Cache-Control: max-age=60", "private", "max-age=60"},
		{"Cache-Control: public, max-age=60", "private", "public, max-age=60"},
		{"Cache-Control: PUBLIC", "private", "PUBLIC"},
		{"Cache-Control: s-maxage=5", "private", "s-maxage=5"},
		{"Expires: Thu, 01 Dec 2039 16:00:00 GMT", "private", ""},
		{"Cache-Control: no-store", "no-store", "no-store"},
		{"Cache-Control: no-cache", "no-cache", "no-cache"},
		{"Cache-Control: private", "private", "private"},
		{"X-Nothing: x", "", ""},
	} {
		if a := w.ok(t, get("x.example/", "X-Reply: "+c.reply)); a.header.Get("Cache-Control") != c.given || a.keeps() {
			t.Errorf("%s with a token: Cache-Control %q, want %q", c.reply, a.header.Get("Cache-Control"), c.given)
		}
		if a := w.ok(t, get("x.example/head", "X-Reply: "+c.reply)); a.header.Get("Cache-Control") != c.given {
			t.Errorf("%s with a token in a header: Cache-Control %q, want %q", c.reply, a.header.Get("Cache-Control"), c.given)
		}
		if a := w.ok(t, get("x.example/", "X-Reply: "+c.reply, "Cookie: c="+k.String())); a.header.Get("Cache-Control") != c.kept || !a.keeps() {
			t.Errorf("%s without a token: Cache-Control %q, want %q", c.reply, a.header.Get("Cache-Control"), c.kept)
		}
		if a := w.ok(t, get("x.example/plain", "X-Reply: "+c.reply)); a.header.Get("Cache-Control") != c.kept {
			t.Errorf("%s without sessions: Cache-Control %q, want %q", c.reply, a.header.Get("Cache-Control"), c.kept)
		}
	}
}

func TestAnswersOfTheGatewayItselfOpenNoSession(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+sticky("/none", "none", "{cookie: {name: c}}")+sticky("/missing", "missing", "{cookie: {name: c}}")), pods("none", 0))
	for _, path := range []string{"/", "/none", "/missing"} {
		if a := w.ask(t, get("x.example"+path)); !a.keeps() {
			t.Errorf("%s: %d with %q", path, a.status, a.header.Values("Set-Cookie"))
		}
	}
}

// TestASessionEndsToTheSecond: an absolute timeout counts from the first answer, whatever is asked in between.
func TestASessionEndsToTheSecond(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", "rules:\n"+
		sticky("/session", "one", "{absoluteTimeout: 3s, cookie: {name: s}}")+
		sticky("/permanent", "one", "{absoluteTimeout: 3s, cookie: {name: p, lifetimeType: Permanent}}")+
		sticky("/header", "one", "{type: Header, absoluteTimeout: 3s, header: {name: X-Session}}")), pods("one", 3))
	for _, path := range []string{"/session", "/permanent", "/header"} {
		t.Run(path[1:], func(t *testing.T) {
			t.Parallel()
			a := w.ok(t, get("x.example"+path))
			text := a.header.Get("X-Session")
			if text == "" {
				text = a.given()[0].Value
			}
			name := path[1:2]
			line := "Cookie: " + name + "=" + text
			if path == "/header" {
				line = "X-Session: " + text
			}
			end := parseToken(t, text).expires(3 * time.Second)
			kept, ended := 0, 0
			for {
				before := time.Now()
				a := w.ok(t, get("x.example"+path, line))
				after := time.Now()
				same := a.keeps() && a.header.Get("X-Session") == ""
				// HAProxy's clock is a few milliseconds late.
				const late = 50 * time.Millisecond
				switch {
				case after.Before(end):
					if kept++; !same {
						t.Fatalf("%s before its end, the session is not kept", end.Sub(after))
					}
				case before.After(end.Add(late)):
					if ended++; same {
						t.Fatalf("%s after its end, the session is kept", before.Sub(end))
					}
				}
				if before.After(end.Add(500 * time.Millisecond)) {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if kept < 10 || ended < 3 {
				t.Errorf("kept %d times, ended %d times", kept, ended)
			}
		})
	}
}
