package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const incompatible = "Accepted=False/IncompatibleFilters ResolvedRefs=True/ResolvedRefs"

func TestFilters(t *testing.T) {
	t.Parallel()
	const modify = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}"
	const redirect = "{type: RequestRedirect, requestRedirect: {statusCode: 301}}"
	const rewrite = "{type: URLRewrite, urlRewrite: {hostname: a.com}}"
	const mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}}}"
	runRouteCases(t, []routeCase{
		{"RequestHeaderModifier is served", "filters: [" + modify + "]", routeOK, nil},
		{"RequestRedirect is served", "filters: [" + redirect + "]", routeOK, nil},
		{"both go together", "filters: [" + modify + ", " + redirect + "]", routeOK, nil},
		{"ResponseHeaderModifier is served", "filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}]", routeOK, nil},
		{"URLRewrite is served", "{filters: [" + rewrite + "], backendRefs: [{name: shop, port: 80}]}", routeOK, nil},
		{"CORS is served", "filters: [{type: CORS, cors: {}}]", routeOK, nil},
		{"RequestMirror is served, more than once", "filters: [" + mirror + ", " + mirror + "]", routeOK, nil},
		{"a rule is served without a mirror that leads nowhere",
			"{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}], backendRefs: [{name: shop, port: 80}]}",
			"Accepted=True/Accepted ResolvedRefs=False/BackendNotFound", []string{"filters[0].requestMirror.backendRef: Service default/gone"}},
		{"a mirror into another namespace needs a grant",
			"filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, namespace: other, port: 80}}}]",
			"Accepted=True/Accepted ResolvedRefs=False/RefNotPermitted", nil},
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
		{"a backendRef may redirect", "backendRefs: [{name: shop, port: 80, filters: [" + redirect + "]}]", routeOK, nil},
		{"a backendRef's redirect and the rule's rewrite exclude each other",
			"{filters: [" + rewrite + "], backendRefs: [{name: shop, port: 80, filters: [" + redirect + "]}]}", incompatible,
			[]string{"spec.rules[0].backendRefs[0].filters: RequestRedirect and the rule's URLRewrite"}},
		{"a backendRef may have every other filter", "backendRefs: [{name: shop, port: 80, filters: [" + modify + ", " + rewrite + ", " + mirror +
			", {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [a]}}, {type: CORS, cors: {}}]}]", routeOK, nil},
		{"but none that is not built", "backendRefs: [{name: shop, port: 80, filters: [{type: ExternalAuth, externalAuth: {protocol: HTTP, http: {}, backendRef: {name: shop, port: 80}}}]}]",
			unsupported, []string{"spec.rules[0].backendRefs[0].filters[0].type: the filter ExternalAuth is not built"}},
		{"CORS must not be repeated", "filters: [{type: CORS, cors: {}}, {type: CORS, cors: {}}]", incompatible, nil},
		{"URLRewrite must not be repeated", "filters: [" + rewrite + ", " + rewrite + "]", incompatible, nil},
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
		isHost := strings.Contains(strings.ToLower(test.change), "name: host") || strings.Contains(test.change, "remove: [host]")
		for _, filter := range []string{"request", "response"} {
			if isHost && filter == "response" {
				continue // Host has a meaning in requests only.
			}
			for _, where := range []string{"filters: [%s]", "backendRefs: [{name: shop, port: 80, filters: [%s]}]"} {
				t.Run(filter+" "+test.name+where[:7], func(t *testing.T) {
					t.Parallel()
					kind := strings.ToUpper(filter[:1]) + filter[1:] + "HeaderModifier"
					entry := fmt.Sprintf("{type: %s, %sHeaderModifier: %s}", kind, filter, test.change)
					g := build(t, gateway+shop+routeTo(fmt.Sprintf(where, entry)))
					if test.want == "" {
						expect(t, g.Routes[0].Parents[0].Conditions, unsupported, filter+"HeaderModifier")
						return
					}
					if got := headerChangeOf(t, g, filter); got != test.want {
						t.Errorf("got %s", got)
					}
				})
			}
		}
	}
}

// headerChangeOf is what the rule, or else its first backendRef, changes.
func headerChangeOf(t *testing.T, g *Graph, filter string) string {
	t.Helper()
	rule := g.rule(t)
	filters := rule.Filters
	if len(rule.Backends) > 0 {
		filters = rule.Backends[0].Filters
	}
	change := filters.RequestHeaders
	if filter == "response" {
		change = filters.ResponseHeaders
	}
	if change == nil {
		t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
	}
	return fmt.Sprint(change.Set, change.Add, change.Remove)
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
	const path = "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}"
	for _, filter := range []string{"{type: RequestRedirect, requestRedirect: " + path + "}", "{type: URLRewrite, urlRewrite: " + path + "}"} {
		for _, filters := range []string{"filters: [" + filter + "]", "backendRefs: [{name: shop, port: 80, filters: [" + filter + "]}]"} {
			runRouteCases(t, []routeCase{
				{"one prefix", "{" + filters + ", matches: [{path: {value: /a}}]}", routeOK, nil},
				{"the default", filters, routeOK, nil},
				{"a match without path", "{" + filters + ", matches: [{method: GET}]}", routeOK, nil},
				{"an exact path", "{" + filters + ", matches: [{path: {type: Exact, value: /a}}]}", unsupported, []string{"replacePrefixMatch needs exactly one match"}},
				{"two prefixes", "{" + filters + ", matches: [{path: {value: /a}}, {path: {value: /b}}]}", unsupported, nil},
			})
		}
	}
}

func TestRewrites(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, rewrite, want string }{
		{"nothing given changes nothing", "{}", "{}"},
		{"a hostname", "{hostname: a.com}", "{a.com}"},
		{"the full path", "{path: {type: ReplaceFullPath, replaceFullPath: /a}}", "{full=/a}"},
		{"the prefix and the hostname", "{hostname: a.com, path: {type: ReplacePrefixMatch, replacePrefixMatch: ''}}", "{a.com prefix=}"},
		{"a wildcard hostname", "{hostname: '*.a.com'}", ""},
		{"an empty hostname", "{hostname: ''}", ""},
		{"an address for a hostname", "{hostname: 10.0.0.1}", ""},
		{"a path without a slash", "{path: {type: ReplaceFullPath, replaceFullPath: a}}", ""},
		{"a path with a newline", `{path: {type: ReplaceFullPath, replaceFullPath: "/a\r\nx: y"}}`, ""},
		{"a path with a query", "{path: {type: ReplaceFullPath, replaceFullPath: '/a?b'}}", ""},
		{"a type without its value", "{path: {type: ReplacePrefixMatch}}", ""},
		{"an unknown type of path", "{path: {type: Rewrite}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+routeTo("filters: [{type: URLRewrite, urlRewrite: "+test.rewrite+"}]"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "filters[0].urlRewrite")
				return
			}
			rewrite := g.rule(t).Filters.Rewrite
			if rewrite == nil {
				t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
			}
			parts := strings.Fields(rewrite.Hostname)
			if p := rewrite.Path; p != nil && p.ReplaceFullPath != nil {
				parts = append(parts, "full="+*p.ReplaceFullPath)
			} else if p != nil {
				parts = append(parts, "prefix="+*p.ReplacePrefixMatch)
			}
			if got := "{" + strings.Join(parts, " ") + "}"; got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestMirrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, share, want string }{
		{"all requests by default", "", "100/100"},
		{"a percentage", "percent: 20", "20/100"},
		{"no percent", "percent: 0", "0/100"},
		{"a hundred percent", "percent: 100", "100/100"},
		{"a fraction", "fraction: {numerator: 1, denominator: 3}", "1/3"},
		{"a fraction of a hundred by default", "fraction: {numerator: 35}", "35/100"},
		{"a percentage below 0", "percent: -1", ""},
		{"a percentage above 100", "percent: 101", ""},
		{"both", "percent: 1, fraction: {numerator: 1}", ""},
		{"a numerator below 0", "fraction: {numerator: -1}", ""},
		{"a denominator below 1", "fraction: {numerator: 0, denominator: 0}", ""},
		{"more than all", "fraction: {numerator: 3, denominator: 2}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+shop+routeTo(
				"filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}, "+test.share+"}}]"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "filters[0].requestMirror")
				return
			}
			want := []Mirror{{Backend: BackendKey{"Service", "default", "shop", 80}}}
			fmt.Sscanf(test.want, "%d/%d", &want[0].Numerator, &want[0].Denominator)
			if got := g.rule(t).Filters.Mirrors; !slices.Equal(got, want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAMirrorThatLeadsNowhereIsLeftOutAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	const mirrors = `
    filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}, percent: 5}}`
	builder := NewBuilder(Options{PortOffset: 8000})
	rule := builder.Build(read(t, gateway+shop+routeTo(mirrors))).rule(t)
	if len(rule.Filters.Mirrors) != 1 || rule.Filters.Mirrors[0].Numerator != 5 {
		t.Errorf("%+v", rule.Filters.Mirrors)
	}
	gone := strings.ReplaceAll(shop, "shop", "gone")
	if rule := builder.Build(read(t, gateway+shop+gone+routeTo(mirrors))).rule(t); len(rule.Filters.Mirrors) != 2 {
		t.Errorf("a mirror whose Service came is still left out: %+v", rule.Filters.Mirrors)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, cors, want string }{
		{"nothing given allows nothing", "{}", "origins=[] methods=[] headers=[] expose=[] age=5s credentials=false"},
		{"everything given", "{allowOrigins: [https://a.com], allowMethods: [GET, PUT], allowHeaders: [X-A, x-b], exposeHeaders: [X-C], maxAge: 60, " +
			"allowCredentials: true}", "origins=[https://a.com] methods=[GET PUT] headers=[X-A x-b] expose=[X-C] age=1m0s credentials=true"},
		{"everything allowed", "{allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], exposeHeaders: ['*']}",
			"origins=[*] methods=[*] headers=[*] expose=[*] age=5s credentials=false"},
		{"origins as browsers write them", "{allowOrigins: [https://A.com:443, 'http://b:80', 'http://b', 'https://c:8443', 'http://d:0443']}",
			"origins=[https://a.com http://b https://c:8443 http://d:443] methods=[] headers=[] expose=[] age=5s credentials=false"},
		{"wildcards in origins", "{allowOrigins: ['https://*.a.com', 'http://*', 'http://*:8080', 'https://10.0.0.1']}",
			"origins=[https://*.a.com http://* http://*:8080 https://10.0.0.1] methods=[] headers=[] expose=[] age=5s credentials=false"},
		{"of equal names of headers the first counts", "{allowHeaders: [A, a, B], exposeHeaders: [c, C]}",
			"origins=[] methods=[] headers=[A B] expose=[c] age=5s credentials=false"},
		{"'*' beside an origin", "{allowOrigins: ['*', 'https://a.com']}", ""},
		{"'*' beside a method", "{allowMethods: ['*', GET]}", ""},
		{"'*' beside a header", "{allowHeaders: ['*', a]}", ""},
		{"an origin without a scheme", "{allowOrigins: [a.com]}", ""},
		{"an origin with another scheme", "{allowOrigins: ['ftp://a.com']}", ""},
		{"an origin with a path", "{allowOrigins: ['https://a.com/']}", ""},
		{"an origin with a user", "{allowOrigins: ['https://b@a.com']}", ""},
		{"an origin with a wildcard inside", "{allowOrigins: ['https://a.*.com']}", ""},
		{"an origin with a part of a label wild", "{allowOrigins: ['https://*a.com']}", ""},
		{"an origin without a host", "{allowOrigins: ['https://']}", ""},
		{"an origin with a newline", `{allowOrigins: ["https://a.com\n"]}`, ""},
		{"port 0", "{allowOrigins: ['https://a.com:0']}", ""},
		{"port 65536", "{allowOrigins: ['https://a.com:65536']}", ""},
		{"an empty port", "{allowOrigins: ['https://a.com:']}", ""},
		{"null", "{allowOrigins: ['null']}", ""},
		{"an origin that is too long", "{allowOrigins: ['https://" + strings.Repeat("a", 250) + "']}", ""},
		{"65 origins", "{allowOrigins: [" + strings.Repeat("'http://a', ", 65) + "]}", ""},
		{"origins that are too long in all", "{allowOrigins: [" + numbered(40, "'http://"+strings.Repeat("a", 150)+"%d'") + "]}", ""},
		{"a method in small letters", "{allowMethods: [get]}", ""},
		{"an unknown method", "{allowMethods: [SEARCH]}", ""},
		{"10 methods", "{allowMethods: [" + strings.Repeat("GET, ", 10) + "]}", ""},
		{"a header that is no token", "{allowHeaders: ['a b']}", ""},
		{"an exposed header that is no token", `{exposeHeaders: ["a\r\nb"]}`, ""},
		{"65 headers", "{allowHeaders: [" + numbered(65, "a%d") + "]}", ""},
		{"headers that are too long in all", "{exposeHeaders: [" + numbered(20, strings.Repeat("a", 250)+"%d") + "]}", ""},
		{"an age below 0", "{maxAge: -1}", ""},
	} {
		for _, where := range []string{"filters: [%s]", "backendRefs: [{name: shop, port: 80, filters: [%s]}]"} {
			t.Run(test.name+where[:7], func(t *testing.T) {
				t.Parallel()
				g := build(t, gateway+shop+routeTo(fmt.Sprintf(where, "{type: CORS, cors: "+test.cors+"}")))
				if test.want == "" {
					expect(t, g.Routes[0].Parents[0].Conditions, unsupported, "filters[0].cors")
					return
				}
				rule := g.rule(t)
				cors := rule.Filters.CORS
				if len(rule.Backends) > 0 {
					cors = rule.Backends[0].Filters.CORS
				}
				if cors == nil {
					t.Fatal(allMessages(g.Routes[0].Parents[0].Conditions))
				}
				got := fmt.Sprintf("origins=%v methods=%v headers=%v expose=%v age=%v credentials=%v",
					cors.Origins, cors.Methods, cors.Headers, cors.Expose, cors.MaxAge, cors.Credentials)
				if got != test.want {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

// numbered is a list of n entries with their numbers in them.
func numbered(n int, format string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(entries, ", ")
}
