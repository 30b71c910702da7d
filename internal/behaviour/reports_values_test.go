package behaviour

// Field reports, section C: values that reach HAProxy.

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestB15AResponseHeadersValueIsLiteral: what would mean something in a file, on a socket or to Lua arrives at the client as
// it was written, of a rule and of a backendRef, after a fresh start too.
func TestB15AResponseHeadersValueIsLiteral(t *testing.T) {
	t.Parallel()
	values := []string{
		`frame-ancestors 'self' https://x`, `{"a":"b"}`, `a "b" c`, `a\`, `#x`, `%`, `${HOME}`, `%[env(HOME)]`, `%ci`, `$HOME`, `a;b`, `; http-request deny`, `\n`, `%0a`,
		`%%`, `'`, `"`, "`id`", `a=b=c;`, `]`, `[[x]]`, `{{ .X }}`, `map(y)`, `\1 \2`, `x,y`, `<< payload`, `-`, strings.Repeat(`"'\%#;`, 600),
	}
	rules := "rules:"
	for i, value := range values {
		change := "[{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Set, value: " + yamlText(value) + "}], add: [{name: X-Add, value: " + yamlText(value) + "}]}}]"
		if i%2 == 0 {
			rules += fmt.Sprintf("\n- matches: [{path: {value: /%d}}]\n  filters: %s\n  backendRefs: [{name: one, port: 80}]", i, change)
		} else {
			rules += fmt.Sprintf("\n- matches: [{path: {value: /%d}}]\n  backendRefs: [{name: one, port: 80, filters: %s}]", i, change)
		}
	}
	var manifests strings.Builder
	manifests.WriteString(gateway)
	// A route has sixteen rules at most.
	for i, rule := range strings.Split(rules, "\n- ")[1:] {
		manifests.WriteString(route(fmt.Sprintf("r%d", i), "rules:\n- "+rule))
	}
	w := Run(t, manifests.String(), pods("one", 1))
	check := func(when string) {
		t.Helper()
		for i, value := range values {
			a := w.ok(t, get(fmt.Sprintf("x.example/%d", i), "X-Reply: X-Set: old", "X-Reply: X-Add: old"))
			if got := strings.Join(a.header.Values("X-Set"), "|"); got != value {
				t.Errorf("%s: %.60q is set as %.60q", when, value, got)
			}
			if got := strings.Join(a.header.Values("X-Add"), "|"); got != "old|"+value {
				t.Errorf("%s: %.60q is added as %.60q", when, value, got)
			}
		}
	}
	check("at first")
	w.restart(t)
	check("after a start")
}

// everything is one object of each kind, with every field that a person without rights over the installation can write.
const everything = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: bad, labels: {a: b}, annotations: {limpet.dev/a: b}}
spec:
  gatewayClassName: limpet
  addresses: [{type: IPAddress, value: ADDRESS}]
  infrastructure: {labels: {a: b}, annotations: {c: d}}
  listeners:
  - {name: http, port: 90, protocol: HTTP, hostname: "*.bad.example", allowedRoutes: {namespaces: {from: Same}, kinds: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]}}
  - {name: https, port: 490, protocol: HTTPS, hostname: b.bad.example, tls: {mode: Terminate, certificateRefs: [{kind: Secret, name: bad, namespace: default}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bad, annotations: {a: b}}
spec:
  parentRefs: [{name: bad, sectionName: http}, {kind: Gateway, name: gw, namespace: default, port: 80}]
  hostnames: [a.bad.example, "*.b.bad.example"]
  rules:
  - name: rule
    matches:
    - {path: {type: Exact, value: /exact}, method: GET}
    - {path: {type: PathPrefix, value: /prefix}, headers: [{type: Exact, name: X-A, value: a}, {type: RegularExpression, name: X-B, value: "b+"}]}
    - {path: {type: RegularExpression, value: "/re/[a-z]+"}, queryParams: [{type: Exact, name: q, value: a}, {type: RegularExpression, name: r, value: "b+"}]}
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: a}], add: [{name: X-Add, value: a}], remove: [X-Remove]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Set, value: a}], add: [{name: X-Add, value: a}], remove: [X-Remove]}}
    backendRefs:
    - {kind: Service, name: bad, namespace: default, port: 80, weight: 1, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Ref, value: a}]}}]}
    sessionPersistence: {type: Cookie, absoluteTimeout: 1h, cookie: {name: bad, path: /p, lifetimeType: Permanent}}
  - matches: [{path: {value: /header}}]
    backendRefs: [{name: bad, port: 80}]
    timeouts: {request: 10s, backendRequest: 5s}
    retry: {codes: [500], attempts: 2, backoff: 100ms}
    sessionPersistence: {type: Header, header: {name: X-Session}}
  - matches: [{path: {value: /moved}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, hostname: new.bad.example, port: 8443, path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}, statusCode: 301}}]
  - matches: [{path: {value: /rewritten}}]
    filters: [{type: URLRewrite, urlRewrite: {hostname: new.bad.example, path: {type: ReplaceFullPath, replaceFullPath: /x}}}]
    backendRefs: [{name: bad, port: 80}]
  - matches: [{path: {value: /other}}]
    filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: bad, port: 80}, percent: 10}}
    - {type: CORS, cors: {allowOrigins: ["https://x.example"], allowMethods: [GET], allowHeaders: [X-A], exposeHeaders: [X-B], maxAge: 5, allowCredentials: true}}
    - {type: ExtensionRef, extensionRef: {group: x.example, kind: Thing, name: thing}}
    backendRefs: [{name: bad, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: bad, annotations: {limpet.dev/a: b}}
spec: {type: ClusterIP, ports: [{name: http, port: 80, targetPort: http, protocol: TCP, appProtocol: http}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: bad, labels: {kubernetes.io/service-name: bad}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [ENDPOINT], conditions: {ready: true, serving: true, terminating: false}, nodeName: n, targetRef: {kind: Pod, name: p, uid: u}}]
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: bad}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: other}], to: [{group: "", kind: Service, name: bad}]}
`

// injected would be a line of its own if a value could end one.
const injected = "limpet-injected deny"

// hostile are values that somebody may write in place of any other: such as would end a line, a word or an argument, and
// such as are of another type.
var hostile = []any{
	"x\n" + injected, "x\r\n" + injected + ": 1", "x\r" + injected, "x\x00" + injected, "x;" + injected, "x\"\n" + injected, "x'\n" + injected, "x\\\n" + injected,
	"x\u2028" + injected, "x\u0085" + injected, `x" ` + injected, `x' ` + injected, `x\`, "%[env(HOME)]", "${HOME}", "#", "<<", "--", "", " ", "*", "-1", "unlimited", strings.Repeat("x", 70_000),
	-1, 0, 1 << 40, 1.5, true, nil, []any{}, map[string]any{}, []any{"x\n" + injected}, map[string]any{"x\n" + injected: "x"},
}

// place is a field of a decoded object.
type place struct {
	path string
	set  func(value any)
	was  any
}

// places are all fields of an object that hold a value, and those that hold fields.
func places(of any, path string) []place {
	var all []place
	add := func(key string, value any, set func(any)) {
		all = append(all, place{path + "." + key, set, value})
		all = append(all, places(value, path+"."+key)...)
	}
	switch of := of.(type) {
	case map[string]any:
		for key, value := range of {
			add(key, value, func(v any) { of[key] = v })
		}
	case []any:
		for i, value := range of {
			add(strconv.Itoa(i), value, func(v any) { of[i] = v })
		}
	}
	return all
}

// decoded are the objects of manifests.
func decoded(t testing.TB, manifests string) []any {
	t.Helper()
	var all []any
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func encoded(t testing.TB, objects []any) string {
	t.Helper()
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n" + string(text))
	}
	return b.String()
}

// TestB17B19NothingThatAnybodyWritesIsMoreThanAValue: each field of each kind of object gets values that nobody should
// write. Whatever becomes of that object, a neighbour is served, one that comes meanwhile is too, no line of any file
// begins with what was written, and HAProxy has no more than Limpet rendered.
func TestB17B19NothingThatAnybodyWritesIsMoreThanAValue(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway, pods("one", 2), problems())
	text := strings.NewReplacer("ADDRESS", w.address().String(), "ENDPOINT", w.pod("one-1").at.Addr().String()).Replace(everything)
	text += certificate("bad", "b.bad.example")
	objects := decoded(t, strings.TrimSpace(text))
	good := gateway + route("good", "hostnames: [good.example]\nrules:\n"+sticky("/", "one", "{cookie: {name: good}}"))
	w.write(t, "bad.yaml", encoded(t, objects))
	w.Apply(t, good)
	if got := w.ask(t, request{host: "a.bad.example", target: "/moved/y", port: 90}).outcome(); got != "301 https://new.bad.example:8443/x/y" {
		t.Fatalf("what is to be spoilt is not served: %s", got)
	}
	c := w.crowd(t, 2, "good.example", "/")

	fields := places(objects, "")
	type attempt struct {
		place
		value any
	}
	var attempts []attempt
	for _, field := range fields {
		for _, value := range hostile {
			attempts = append(attempts, attempt{field, value})
		}
	}
	rand.Shuffle(len(attempts), func(i, j int) { attempts[i], attempts[j] = attempts[j], attempts[i] })
	tried := attempts[:scaled(60, 2000)]
	for i, a := range tried {
		what := fmt.Sprintf("%s is %.60q", a.path, fmt.Sprint(a.value))
		a.set(a.value)
		w.write(t, "bad.yaml", encoded(t, objects))
		a.set(a.was)
		host := fmt.Sprintf("fresh%d.example", i)
		w.Apply(t, good+route("fresh", "hostnames: ["+host+"]\nrules:\n- backendRefs: [{name: one, port: 80}]"))
		if got := w.ask(t, get(host+"/")).outcome(); got != "one" {
			t.Errorf("%s: a route that is added is not served: %s", what, got)
		}
		if moved := c.moved(t, "/"); len(moved) > 0 {
			t.Errorf("%s: moved: %v", what, moved)
		}
		w.noLineBegins(t, injected, what)
	}
	_, set := w.limpet.rendered()
	for name, size := range w.sizes(t) {
		if entries := set.Maps[name].Len(); size != entries {
			t.Errorf("%s: HAProxy has %d entries, %d are rendered", name, size, entries)
		}
	}
	w.restart(t)
	if moved := c.moved(t, "/"); len(moved) > 0 {
		t.Errorf("after a start: moved: %v", moved)
	}
	t.Logf("%d of %d tried", len(tried), len(attempts))
}

// noLineBegins looks at every file that Limpet wrote.
func (w *World) noLineBegins(t testing.TB, with, what string) {
	t.Helper()
	err := filepath.WalkDir(w.limpet.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // generations come and go
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // generations come and go
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\r", "\n"), "\n") {
			if strings.HasPrefix(strings.TrimLeft(line, " \t'\"\\"), with) && filepath.Base(path) != "haproxy.log" {
				t.Errorf("%s: a line of %s is %q", what, filepath.Base(path), line)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// scaled is how many of something are tried: few by default, as many as were reported where LIMPET_TORTURE is set, as
// "make torture" does.
func scaled(few, reported int) int {
	if os.Getenv("LIMPET_TORTURE") != "" {
		return reported
	}
	return few
}
