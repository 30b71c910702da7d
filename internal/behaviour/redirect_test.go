package behaviour

import (
	"fmt"
	"strings"
	"testing"
)

// redirects is a route with a rule for each of these: a path prefix, and the redirect that it leads to.
func redirects(rules ...[2]string) string {
	var b strings.Builder
	b.WriteString("rules:")
	for _, rule := range rules {
		fmt.Fprintf(&b, "\n- matches: [{path: {value: %s}}]\n  filters: [{type: RequestRedirect, requestRedirect: %s}]", rule[0], rule[1])
	}
	return b.String()
}

func TestARequestRedirectReplacesWhatItNamesAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(`
  - {name: http, port: 80, protocol: HTTP}
  - {name: other, port: 81, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
  - {name: more, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
`)+certificate("cert", "x.example")+route("all", redirects(
		[2]string{"/nothing", `{}`},
		[2]string{"/https", `{scheme: https}`},
		[2]string{"/http", `{scheme: http}`},
		[2]string{"/host", `{hostname: other.example}`},
		[2]string{"/port", `{port: 8443}`},
		[2]string{"/80", `{port: 80}`},
		[2]string{"/443", `{port: 443}`},
		[2]string{"/https80", `{scheme: https, port: 80}`},
		[2]string{"/https443", `{scheme: https, port: 443}`},
		[2]string{"/all", `{scheme: https, hostname: other.example, port: 444, path: {type: ReplaceFullPath, replaceFullPath: /new/path}, statusCode: 301}`},
	)))
	for _, c := range []struct{ path, want string }{
		{"/nothing?q=1", "302 http://x.example/nothing?q=1"},
		{"/https/a?q=1&r=%20/", "302 https://x.example/https/a?q=1&r=%20/"},
		{"/http", "302 http://x.example/http"},
		{"/host/a", "302 http://other.example/host/a"},
		{"/port", "302 http://x.example:8443/port"},
		{"/80", "302 http://x.example/80"},
		{"/443", "302 http://x.example:443/443"},
		{"/https80", "302 https://x.example:80/https80"},
		{"/https443", "302 https://x.example/https443"},
		{"/all/x?q", "301 https://other.example:444/new/path?q"},
		{"/host?", "302 http://other.example/host"},
		{"/host/%2F;a//b/../c?%0d%0aX", "302 http://other.example/host/%2F;a//b/../c?%0d%0aX"},
	} {
		if got := w.ask(t, get("x.example"+c.path)).outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
	onPort := func(port int, path string) request {
		return request{host: "x.example", target: path, port: port, tls: port > 400}
	}
	w.check(t, []row{
		{"neither scheme nor port: the listener's port", onPort(81, "/host"), "302 http://other.example:81/host"},
		{"a scheme: its own port", onPort(81, "/https"), "302 https://x.example/https"},
		{"the same scheme: its own port too", onPort(81, "/http"), "302 http://x.example/http"},
		{"a port that is the scheme's own", onPort(81, "/80"), "302 http://x.example/80"},
		{"on TLS, nothing", onPort(443, "/nothing"), "302 https://x.example/nothing"},
		{"on TLS, the host", onPort(443, "/host"), "302 https://other.example/host"},
		{"on TLS, HTTP", onPort(443, "/http"), "302 http://x.example/http"},
		{"on TLS, a port that is the other scheme's", onPort(443, "/80"), "302 https://x.example:80/80"},
		{"on TLS, another port", onPort(444, "/host"), "302 https://other.example:444/host"},
		{"on TLS, another port and a scheme", onPort(444, "/https"), "302 https://x.example/https"},
		{"the port in Host does not count", get("x.example:1234/host"), "302 http://other.example/host"},
		{"the port in Host is not kept", get("X.example:1234/nothing"), "302 http://x.example/nothing"},
		{"an IPv6 address", get("[::1]:80/port"), "302 http://[::1]:8443/port"},
	})
}

func TestB12ARedirectReplacesAPrefixBySegments(t *testing.T) {
	t.Parallel()
	var rules [][2]string
	prefix := func(at, replacement string) {
		rules = append(rules, [2]string{at, `{path: {type: ReplacePrefixMatch, replacePrefixMatch: "` + replacement + `"}}`})
	}
	prefix("/a/foo", "/xyz")
	prefix("/b/foo", "/xyz/")
	prefix("/c/foo/", "/xyz")
	prefix("/d/foo/", "/xyz/")
	prefix("/e/foo", "")
	prefix("/f/foo", "/")
	prefix("/", "/root")
	prefix("/same", "/same")
	full := [2]string{"/full", `{path: {type: ReplaceFullPath, replaceFullPath: ""}}`}
	w := Run(t, gateway+route("all", redirects(append(rules, full)...)))
	for _, c := range []struct{ path, want string }{
		{"/a/foo/bar", "/xyz/bar"}, {"/a/foo", "/xyz"}, {"/a/foo/", "/xyz/"}, {"/a/foo/bar/", "/xyz/bar/"},
		{"/b/foo/bar", "/xyz/bar"}, {"/b/foo", "/xyz/"}, {"/b/foo/", "/xyz/"},
		{"/c/foo/bar", "/xyz/bar"}, {"/c/foo", "/xyz"}, {"/c/foo/", "/xyz/"},
		{"/d/foo/bar", "/xyz/bar"},
		{"/e/foo/bar", "/bar"}, {"/e/foo", "/"}, {"/e/foo/", "/"},
		{"/f/foo/bar", "/bar"}, {"/f/foo", "/"}, {"/f/foo/", "/"}, {"/f/foo//x", "//x"},
		{"/a/foo/b%2Fc?q=1", "/xyz/b%2Fc?q=1"},
		{"/anything", "/root/anything"}, {"/", "/root/"},
		{"/same/x", "/same/x"},
		{"/full/x?q", "/?q"},
	} {
		if got, want := w.ask(t, get("x.example"+c.path)).outcome(), "302 http://x.example"+c.want; got != want {
			t.Errorf("%s: %s, want %s", c.path, got, want)
		}
	}
}

func TestARedirectHasTheStatusThatIsAskedFor(t *testing.T) {
	t.Parallel()
	var rules [][2]string
	for _, code := range []string{"301", "302", "303", "307", "308"} {
		rules = append(rules, [2]string{"/" + code, `{hostname: y.example, statusCode: ` + code + `}`})
	}
	rules = append(rules, [2]string{"/304", `{hostname: y.example, statusCode: 304}`})
	w := Run(t, gateway+route("all", redirects(rules...)))
	for _, method := range []string{"GET", "HEAD", "POST"} {
		for _, code := range []string{"301", "302", "303", "307", "308"} {
			r := get("x.example/" + code)
			r.method, r.body = method, "body"
			a := w.ask(t, r)
			if got, want := a.outcome(), code+" http://y.example/"+code; got != want {
				t.Errorf("%s: %s, want %s", method, got, want)
			}
			if a.body != "" {
				t.Errorf("%s %s: a body of %d bytes", method, code, len(a.body))
			}
		}
	}
	if got := w.ask(t, get("x.example/304")).outcome(); got != "500" {
		t.Errorf("a code that is none for redirects: %s, want 500", got)
	}
}

func TestARedirectGoesWithConditionsAndHeaders(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("all", `
rules:
- matches: [{headers: [{name: X-Old, value: "1"}]}, {path: {value: /old}}]
  filters:
  - {type: RequestRedirect, requestRedirect: {hostname: new.example}}
  - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}
- backendRefs: [{name: one, port: 80}]`), pods("one", 1))
	w.check(t, []row{
		{"the condition holds", get("x.example/", "X-Old: 1"), "302 http://new.example/"},
		{"the other match", get("x.example/old/x"), "302 http://new.example/old/x"},
		{"neither", get("x.example/"), "one"},
	})
}
