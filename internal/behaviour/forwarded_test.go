package behaviour

import (
	"fmt"
	"strings"
	"testing"
)

// forwarded is what a pod gets to know of the client.
func forwarded(a answer) string {
	join := func(name string) string { return strings.Join(a.seen(name), "|") }
	return fmt.Sprintf("for=%s proto=%s port=%s forwarded=%s", join("X-Forwarded-For"), join("X-Forwarded-Proto"), join("X-Forwarded-Port"), join("Forwarded"))
}

const twoPorts = `
  - {name: http, port: 80, protocol: HTTP}
  - {name: other, port: 81, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
`

func TestWhoTheClientIsIsSaidByUs(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(twoPorts)+certificate("cert", "x.example")+
		route("plain", "rules:\n- backendRefs: [{name: one, port: 80}]")+
		route("more", `
rules:
- matches: [{path: {value: /session}}]
  backendRefs: [{name: one, port: 80}]
  sessionPersistence: {type: Cookie, cookie: {}}
- matches: [{path: {value: /matched}, headers: [{name: X-Forwarded-Proto, value: spoofed}]}]
  backendRefs: [{name: one, port: 80}]`), pods("one", 1))
	spoofed := []string{
		"X-Forwarded-For: 6.6.6.6", "x-forwarded-for: 7.7.7.7", "X-Forwarded-Proto: spoofed", "X-Forwarded-Port: 666", "Forwarded: for=6.6.6.6;proto=https",
	}
	client := w.block.address(7)
	for _, path := range []string{"/", "/session", "/matched"} {
		for name, c := range map[string]struct {
			request
			want string
		}{
			"plain":          {request{}, "for=127.0.0.1 proto=http port=80 forwarded="},
			"by address":     {request{from: client}, "for=" + client.String() + " proto=http port=80 forwarded="},
			"another port":   {request{port: 81, from: client}, "for=" + client.String() + " proto=http port=81 forwarded="},
			"TLS":            {request{tls: true, from: client}, "for=" + client.String() + " proto=https port=443 forwarded="},
			"spoofed":        {request{from: client, headers: spoofed}, "for=" + client.String() + " proto=http port=80 forwarded="},
			"spoofed, TLS":   {request{from: client, headers: spoofed, tls: true}, "for=" + client.String() + " proto=https port=443 forwarded="},
			"PROXY, unasked": {request{from: client, raw: "PROXY TCP4 6.6.6.6 7.7.7.7 1 2\r\nGET / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n"}, ""},
		} {
			c.host, c.target = "x.example", path
			a := w.ask(t, c.request)
			if c.want == "" {
				if a.status != 400 {
					t.Errorf("%s: %s, want 400", name, a.outcome())
				}
				continue
			}
			if got := forwarded(a); got != c.want {
				t.Errorf("%s of %s: %s, want %s", name, path, got, c.want)
			}
		}
	}
}

func TestATrustedProxyIsBelieved(t *testing.T) {
	t.Parallel()
	proxy := func(b block) string { return b.address(7).String() }
	w := Run(t, listeners(twoPorts)+certificate("cert", "x.example")+route("plain", "rules:\n- backendRefs: [{name: one, port: 80}]"),
		pods("one", 1), func(w *World) { trusting(proxy(w.block)+"/32", "2001:db8::/32")(w) })
	trusted, other := w.block.address(7), w.block.address(8)
	said := []string{"X-Forwarded-For: 6.6.6.6, 7.7.7.7", "X-Forwarded-Proto: https", "X-Forwarded-Port: 8443", "Forwarded: for=6.6.6.6"}
	for name, c := range map[string]struct {
		request
		want string
	}{
		"what it says is kept and extended": {request{from: trusted, headers: said}, "for=6.6.6.6, 7.7.7.7|" + trusted.String() + " proto=https port=8443 forwarded=for=6.6.6.6"},
		"what it does not say is said":      {request{from: trusted}, "for=" + trusted.String() + " proto=http port=80 forwarded="},
		"over TLS":                          {request{from: trusted, headers: said, tls: true}, "for=6.6.6.6, 7.7.7.7|" + trusted.String() + " proto=https port=8443 forwarded=for=6.6.6.6"},
		"over TLS, what it does not say":    {request{from: trusted, tls: true}, "for=" + trusted.String() + " proto=https port=443 forwarded="},
		"another client is not":             {request{from: other, headers: said}, "for=" + other.String() + " proto=http port=80 forwarded="},
		"another client is not, over TLS":   {request{from: other, headers: said, tls: true}, "for=" + other.String() + " proto=https port=443 forwarded="},
	} {
		c.host, c.target = "x.example", "/"
		if got := forwarded(w.ok(t, c.request)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
