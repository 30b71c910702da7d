package graph

import (
	"fmt"
	"strings"
	"testing"
)

const incompatible = "Accepted=False/IncompatibleFilters ResolvedRefs=True/ResolvedRefs"

func TestFilters(t *testing.T) {
	t.Parallel()
	const modify = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}"
	const redirect = "{type: RequestRedirect, requestRedirect: {statusCode: 301}}"
	runRouteCases(t, []routeCase{
		{"RequestHeaderModifier is served", "filters: [" + modify + "]", routeOK, nil},
		{"RequestRedirect is served", "filters: [" + redirect + "]", routeOK, nil},
		{"both go together", "filters: [" + modify + ", " + redirect + "]", routeOK, nil},
		{"ResponseHeaderModifier is not built", "filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}]", unsupported,
			[]string{"spec.rules[0].filters[0].type: the filter ResponseHeaderModifier is not built yet"}},
		{"URLRewrite is not built", "filters: [{type: URLRewrite, urlRewrite: {hostname: a.com}}]", unsupported, nil},
		{"CORS is not built", "filters: [{type: CORS, cors: {}}]", unsupported, nil},
		{"RequestMirror is not built", "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}}}]", unsupported, nil},
		{"a mirror that leads nowhere shows in ResolvedRefs",
			"filters: [{type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}]",
			"Accepted=False/UnsupportedValue ResolvedRefs=False/BackendNotFound", []string{"filters[0].requestMirror.backendRef: Service default/gone"}},
		{"ExternalAuth is not built",
			"filters: [{type: ExternalAuth, externalAuth: {protocol: HTTP, http: {}, backendRef: {name: shop, port: 80}}}]", unsupported, nil},
		{"an extension is not known", "filters: [{type: ExtensionRef, extensionRef: {group: a.com, kind: B, name: c}}]",
			"Accepted=False/UnsupportedValue ResolvedRefs=False/InvalidKind", nil},
		{"an unknown type is not known", "filters: [{type: Sparkle}]", unsupported, []string{`"Sparkle"`}},
		{"a filter must have what its type says", "filters: [{type: RequestRedirect}]", unsupported, []string{"filters[0]"}},
		{"a filter must not have another one's", "filters: [{type: RequestRedirect, requestRedirect: {}, cors: {}}]", unsupported, nil},
		{"a type with another one's field", "filters: [{type: RequestHeaderModifier, requestRedirect: {}}]", unsupported, nil},
		{"a modifier must not be repeated", "filters: [" + modify + ", " + modify + "]", incompatible, []string{"must not be repeated"}},
		{"a redirect must not be repeated", "filters: [" + redirect + ", " + redirect + "]", incompatible, nil},
		{"redirect and rewrite exclude each other", "filters: [" + redirect + ", {type: URLRewrite, urlRewrite: {hostname: a.com}}]", incompatible,
			[]string{"RequestRedirect and URLRewrite"}},
		{"17 filters", "filters: [" + strings.Repeat(modify+", ", 17) + "]", unsupported, []string{"more than 16"}},
		{"a redirect has no backends", "{filters: [" + redirect + "], backendRefs: [{name: shop, port: 80}]}", unsupported,
			[]string{"together with backendRefs"}},
		{"a redirect of one backendRef is not built", "backendRefs: [{name: shop, port: 80, filters: [" + redirect + "]}]", unsupported,
			[]string{"spec.rules[0].backendRefs[0].filters"}},
		{"another filter of a backendRef is not built either", "backendRefs: [{name: shop, port: 80, filters: [{type: CORS, cors: {}}]}]",
			unsupported, []string{"spec.rules[0].backendRefs[0].filters[0].type"}},
	})
}

func TestHeaderChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, change, want string }{
		{"set, add and remove", "{set: [{name: A, value: b}], add: [{name: C, value: d}], remove: [E]}", "[{A b}] [{C d}] [E]"},
		{"of equivalent names the first counts", "{set: [{name: A, value: b}, {name: a, value: c}], remove: [E, e]}", "[{A b}] [] [E]"},
		{"values that mean something elsewhere", `{set: [{name: Content-Security-Policy, value: "frame-ancestors 'self' https://x; a"},
      {name: a, value: '{"a":"b"} a\ #x % ${HOME}'}]}`,
			`[{Content-Security-Policy frame-ancestors 'self' https://x; a} {a {"a":"b"} a\ #x % ${HOME}}] [] []`},
		{"Host set to a name", "{set: [{name: host, value: a.example.com}]}", "[{host a.example.com}] [] []"},
		{"Host set to a name in capitals with a port", "{set: [{name: Host, value: 'A.example.com:8080'}]}", "[{Host A.example.com:8080}] [] []"},
		{"Host set to an address", "{set: [{name: Host, value: 10.0.0.1}]}", "[{Host 10.0.0.1}] [] []"},
		{"Host set to an IPv6 address", "{set: [{name: Host, value: '[::1]:80'}]}", "[{Host [::1]:80}] [] []"},
		{"Host set to something else", "{set: [{name: Host, value: 'a/b'}]}", ""},
		{"Host set to a name with a bad port", "{set: [{name: Host, value: 'a:99999'}]}", ""},
		{"Host added", "{add: [{name: Host, value: a}]}", ""},
		{"Host removed", "{remove: [host]}", ""},
		{"two actions for one header", "{set: [{name: a, value: b}], remove: [A]}", ""},
		{"set and add for one header", "{set: [{name: a, value: b}], add: [{name: A, value: c}]}", ""},
		{"Connection", "{set: [{name: Connection, value: close}]}", ""},
		{"Transfer-Encoding", "{add: [{name: transfer-encoding, value: chunked}]}", ""},
		{"Content-Length", "{remove: [Content-Length]}", ""},
		{"Upgrade", "{remove: [Upgrade]}", ""},
		{"TE", "{set: [{name: TE, value: trailers}]}", ""},
		{"a name that is no token", "{set: [{name: 'a:', value: b}]}", ""},
		{"a removed name that is no token", "{remove: ['a b']}", ""},
		{"a newline in a removed name", `{remove: ["a\nb"]}`, ""},
		{"a newline in a value", `{set: [{name: a, value: "b\n    http-request deny"}]}`, ""},
		{"an empty value", "{set: [{name: a, value: ''}]}", ""},
		{"a value that is too long", "{set: [{name: a, value: " + strings.Repeat("a", 4097) + "}]}", ""},
		{"17 entries", "{remove: [" + strings.Repeat("a, ", 17) + "]}", ""},
	} {
		for _, where := range []string{
			"filters: [{type: RequestHeaderModifier, requestHeaderModifier: %s}]",
			"backendRefs: [{name: shop, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: %s}]}]",
		} {
			t.Run(test.name+where[:7], func(t *testing.T) {
				t.Parallel()
				g := build(t, gateway+shop+routeTo(fmt.Sprintf(where, test.change)))
				rule := g.rule(t)
				if test.want == "" {
					expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "requestHeaderModifier")
					return
				}
				change := rule.Filters.RequestHeaders
				if len(rule.Backends) > 0 {
					change = rule.Backends[0].Filters.RequestHeaders
				}
				if change == nil {
					t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
				}
				if got := fmt.Sprint(change.Set, change.Add, change.Remove); got != test.want {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, redirect, want string }{
		{"nothing given answers 302", "{}", "{   0 302}"},
		{"everything given", "{scheme: https, hostname: a.com, port: 8443, statusCode: 308}", "{ https a.com 8443 308}"},
		{"301", "{statusCode: 301}", "{   0 301}"},
		{"303", "{statusCode: 303}", "{   0 303}"},
		{"307", "{statusCode: 307}", "{   0 307}"},
		{"304 is none", "{statusCode: 304}", ""},
		{"the full path replaced", "{path: {type: ReplaceFullPath, replaceFullPath: /a/b}}", "{full=/a/b   0 302}"},
		{"the full path replaced by the empty one", "{path: {type: ReplaceFullPath, replaceFullPath: ''}}", "{full=   0 302}"},
		{"the prefix replaced", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /a}}", "{prefix=/a   0 302}"},
		{"the prefix replaced by the empty one", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: ''}}", "{prefix=   0 302}"},
		{"an unknown scheme", "{scheme: ftp}", ""},
		{"a scheme in capitals", "{scheme: HTTPS}", ""},
		{"an empty scheme", "{scheme: ''}", ""},
		{"a wildcard hostname", "{hostname: '*.a.com'}", ""},
		{"an address for a hostname", "{hostname: 10.0.0.1}", ""},
		{"a hostname with a path", "{hostname: a.com/b}", ""},
		{"an empty hostname", "{hostname: ''}", ""},
		{"port 0", "{port: 0}", ""},
		{"port 65536", "{port: 65536}", ""},
		{"an unknown type of path", "{path: {type: Rewrite}}", ""},
		{"a type without its value", "{path: {type: ReplaceFullPath}}", ""},
		{"a type with the other's value", "{path: {type: ReplaceFullPath, replacePrefixMatch: /a}}", ""},
		{"both values", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /a, replaceFullPath: /b}}", ""},
		{"a path that would become part of the host", "{path: {type: ReplaceFullPath, replaceFullPath: .evil.com}}", ""},
		{"a path that would become another host", "{path: {type: ReplaceFullPath, replaceFullPath: //evil.com}}", ""},
		{"a path with a newline", `{path: {type: ReplaceFullPath, replaceFullPath: "/a\r\nSet-Cookie: b"}}`, ""},
		{"a path with a blank", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: '/a b'}}", ""},
		{"a path with a format", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: '/%[path]'}}", ""},
		{"a path that is too long", "{path: {type: ReplaceFullPath, replaceFullPath: /" + strings.Repeat("a", 1024) + "}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+routeTo("filters: [{type: RequestRedirect, requestRedirect: "+test.redirect+"}]"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "filters[0].requestRedirect")
				return
			}
			redirect := g.rule(t).Filters.Redirect
			if redirect == nil {
				t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
			}
			path := ""
			if p := redirect.Path; p != nil {
				path = "prefix=" + valueOr(p.ReplacePrefixMatch, "")
				if p.ReplaceFullPath != nil {
					path = "full=" + *p.ReplaceFullPath
				}
			}
			got := fmt.Sprintf("{%s %s %s %d %d}", path, redirect.Scheme, redirect.Hostname, redirect.Port, redirect.Status)
			if got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAReplacedPrefixNeedsOnePrefix(t *testing.T) {
	t.Parallel()
	const filters = "filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}}]"
	runRouteCases(t, []routeCase{
		{"one prefix", "{" + filters + ", matches: [{path: {value: /a}}]}", routeOK, nil},
		{"the default", filters, routeOK, nil},
		{"a match without path", "{" + filters + ", matches: [{method: GET}]}", routeOK, nil},
		{"an exact path", "{" + filters + ", matches: [{path: {type: Exact, value: /a}}]}", unsupported, []string{"replacePrefixMatch needs exactly one match"}},
		{"two prefixes", "{" + filters + ", matches: [{path: {value: /a}}, {path: {value: /b}}]}", unsupported, nil},
	})
}
