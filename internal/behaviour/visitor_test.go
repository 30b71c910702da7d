package behaviour

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// visitor is a client that keeps what it is given: cookies in a jar, as browsers do, and the session header.
type visitor struct {
	world *World
	host  string
	tls   bool
	// header is the name of the session header, "" for one who has cookies only; token is what it was given.
	header, token string
	jar           *cookiejar.Jar
}

func (w *World) visitor(host string) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	return &visitor{world: w, host: host, jar: jar}
}

// headerVisitor sends back what it is given in a header.
func (w *World) headerVisitor(host, header string) *visitor {
	v := w.visitor(host)
	v.header = header
	return v
}

func (v *visitor) url(path string) *url.URL {
	scheme := "http"
	if v.tls {
		scheme = "https"
	}
	path, _, _ = strings.Cut(path, "?")
	return &url.URL{Scheme: scheme, Host: v.host, Path: path}
}

// get asks for a path, and keeps what is given.
func (v *visitor) get(t testing.TB, path string, headers ...string) answer {
	t.Helper()
	r := get(v.host+path, headers...)
	r.tls = v.tls
	if line := v.cookies(path); line != "" {
		r.headers = append(r.headers, "Cookie: "+line)
	}
	if v.token != "" {
		r.headers = append(r.headers, v.header+": "+v.token)
	}
	a := v.world.ask(t, r)
	if a.err != nil {
		return a
	}
	v.jar.SetCookies(v.url(path), (&http.Response{Header: a.header}).Cookies())
	if v.header != "" && a.header.Get(v.header) != "" {
		v.token = a.header.Get(v.header)
	}
	return a
}

// cookies is what the jar sends for a path.
func (v *visitor) cookies(path string) string {
	var pairs []string
	for _, cookie := range v.jar.Cookies(v.url(path)) {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	return strings.Join(pairs, "; ")
}

// ok asks for a path that a pod must answer, and returns the pod's name.
func (v *visitor) ok(t testing.TB, path string) string {
	t.Helper()
	a := v.get(t, path)
	if a.err != nil || a.status != http.StatusOK || a.echo.Pod == "" {
		t.Fatalf("%s%s: %s, want an answer from a pod", v.host, path, a.outcome())
	}
	return a.echo.Pod
}

// crowd is visitors with the pod that each has a session with.
type crowd map[*visitor]string

// crowd lets that many visitors arrive.
func (w *World) crowd(t testing.TB, count int, host, path string) crowd {
	t.Helper()
	c := crowd{}
	for range count {
		v := w.visitor(host)
		c[v] = v.ok(t, path)
	}
	return c
}

// moved asks for everybody, and returns how many were answered by another pod than last time, by the pod they came from.
func (c crowd) moved(t testing.TB, path string) map[string]int {
	t.Helper()
	moved := map[string]int{}
	for v, last := range c {
		now := v.ok(t, path)
		if now != last {
			moved[last]++
		}
		c[v] = now
	}
	return moved
}

// on is how many visitors each pod has.
func (c crowd) on() map[string]int {
	on := map[string]int{}
	for _, pod := range c {
		on[pod]++
	}
	return on
}

// given are the cookies that an answer sets, and cookieLine the line that sets one.
func (a answer) given() []*http.Cookie { return (&http.Response{Header: a.header}).Cookies() }

func (a answer) cookieLine(t testing.TB) string {
	t.Helper()
	lines := a.header.Values("Set-Cookie")
	if len(lines) != 1 {
		t.Fatalf("%d Set-Cookie lines, want one: %q", len(lines), lines)
	}
	return lines[0]
}
