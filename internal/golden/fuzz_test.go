package golden

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/internal/keys"
)

// through takes any bytes beside base.yaml through the pipeline.
func through(t testing.TB, text []byte) outcome {
	t.Helper()
	snapshot, _ := cluster.NewFiles(cluster.FilesOptions{Paths: []string{"testdata/base.yaml", "-"}, Stdin: bytes.NewReader(text)}).Load()
	graphOptions, translateOptions := graph.Options{PortOffset: 8000}, translate.Options{NamesKey: secret}
	preview, err := controller.NewPreview(snapshot, graphOptions, translateOptions,
		controller.Settings("/run/limpet", []keys.SignKey{{ID: "a", Secret: secret}}))
	if err != nil {
		t.Fatal(err)
	}
	return outcome{preview, translate.New(translateOptions).Config(graph.NewBuilder(graphOptions).Build(snapshot))}
}

// FuzzObjects: whatever the files hold, nothing panics, and what comes out has the form that it always has.
func FuzzObjects(f *testing.F) {
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, in := range cases {
		text, err := os.ReadFile(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(everything))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			t.Skip("more than anybody reads")
		}
		through(t, text).check(t)
	})
}

// FuzzValues puts any text in the place of each text in turn.
func FuzzValues(f *testing.F) {
	for i, value := range hostile {
		f.Add(value, uint16(i*7))
	}
	f.Fuzz(func(t *testing.T, value string, place uint16) {
		if len(value) > 1<<14 {
			t.Skip("longer than any value")
		}
		through(t, []byte(with(value, int(place)%places))).check(t)
	})
}

// TestHostileValuesInEveryPlace is FuzzValues for the values that are known, some in each place.
func TestHostileValuesInEveryPlace(t *testing.T) {
	t.Parallel()
	want := through(t, []byte(with("", -1)))
	want.check(t)
	neighbour, _ := want.preview.Set.Maps["paths.map"].Get("vabamfvzhjqgb/neighbour/")
	if neighbour.Value == "" {
		t.Fatalf("the neighbour's path is not there: %v", want.files())
	}
	for place := range places {
		for i := range 3 {
			value := hostile[(place*3+i)%len(hostile)]
			got := through(t, []byte(with(value, place)))
			got.check(t)
			if now, _ := got.preview.Set.Maps["paths.map"].Get("vabamfvzhjqgb/neighbour/"); now != neighbour {
				t.Fatalf("%q in place %d: the neighbour's path leads to %q, not %q", value, place, now.Value, neighbour.Value)
			}
		}
	}
}

// places is how many texts there are in everything.
var places = strings.Count(everything, "@") / 2

// with is everything with a text in one of its places.
func with(value string, place int) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for i, part := range strings.Split(everything, "@") {
		if i == 0 {
			b.WriteString(part)
			continue
		}
		// A place is written @text@, so every second one begins it.
		if i%2 == 0 {
			b.WriteString(part)
			continue
		}
		if place == i/2 {
			b.Write(quoted)
		} else {
			b.WriteString(`"` + part + `"`)
		}
	}
	return b.String()
}

var hostile = []string{
	"", " ", "a b", "\n", "a\nb", "a\n    http-request deny", "\r\n", "\x00", "\x01", "a\x01", "\x7f", "\t", "\u2028", "\u0085", "é", "\xff", "'", "''", `"`, "`", `\`, `\n`, `a\`,
	"#", "a#b", ";", "a;b", "a; add map maps/paths.map x y", "{", "}", "{}", "%", "%[env(HOME)]", "${HOME}", "$HOME", "%%", "-f", "--", "<<", "*", "*.", "*.*.x", "..", "../..", "/..", "/../x", "//", "/./",
	"|", "a|b", "=", "~", "=~", ",", "a,b", ":", "a:b", "1", "0", "-1", "true", "null", "1a", "s1", "r1", "g1", "500", "draw;x", "str(x)", "(", ")", "(?", "[", "(a+)+b", "(?i)x", `\x{ffff}`, "(*LIMIT_MATCH=1)", "a{1000}",
	strings.Repeat("x", 253), strings.Repeat("x", 4096), strings.Repeat("x", 4097), strings.Repeat("'\\\"%", 1000), strings.Repeat("a.", 100) + "b", "/" + strings.Repeat("a/", 400), strings.Repeat("é", 2000),
	"xn--nxasmq6b", "UPPER.example", "x.example:80", "127.0.0.1", "::1", "__Host-a", "Set-Cookie", "Host", "transfer-encoding", "1h", "99999h", "1ms",
}

// everything has a text in every place that takes one, and a neighbour that must not notice.
const everything = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: neighbour, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: gw, sectionName: http}]
  rules: [{matches: [{path: {value: /neighbour}}], backendRefs: [{name: a, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: @r@, namespace: @default@, labels: {a: @b@}, annotations: {a: @b@}}
spec:
  parentRefs: [{name: gw}, {name: @other@, namespace: @default@, sectionName: @http@}, {kind: @ListenerSet@, name: @set@}]
  hostnames: [@x.example@, @*.y.example@]
  rules:
  - name: @rule@
    matches:
    - path: {type: Exact, value: @/exact@}
      headers: [{name: @X-A@, value: @v@}, {name: X-B, type: RegularExpression, value: @v+@}]
      queryParams: [{name: @q@, value: @v@}, {name: p, type: RegularExpression, value: @v+@}]
      method: @GET@
    - path: {value: @/prefix@}
    - path: {type: RegularExpression, value: @/regex/.*@}
    - path: {type: @PathPrefix@, value: /p}
      headers: [{name: a, type: @Exact@, value: b}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier: {set: [{name: @X-Set@, value: @v@}], add: [{name: @X-Add@, value: @v@}], remove: [@X-Remove@]}
    backendRefs:
    - {name: @a@, port: 80}
    - name: b
      port: 80
      namespace: @default@
      filters: [{type: @RequestHeaderModifier@, requestHeaderModifier: {add: [{name: X-Ref, value: @v@}]}}]
    sessionPersistence: {type: @Cookie@, absoluteTimeout: @1h@, cookie: {name: @c@, path: @/@, lifetimeType: @Permanent@}}
  - matches: [{path: {value: /header}}]
    backendRefs: [{name: a, port: 80}]
    sessionPersistence: {type: Header, header: {name: @X-Session@}}
  - matches: [{path: {value: @/full@}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: @https@, hostname: @z.example@, path: {type: @ReplaceFullPath@, replaceFullPath: @/new@}}}]
  - matches: [{path: {value: @/moved@}}]
    filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: @/new@}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: default, creationTimestamp: "2026-02-01T00:00:00Z"}
spec:
  gatewayClassName: limpet
  addresses: [{type: @IPAddress@, value: @127.0.0.2@}]
  allowedListeners: {namespaces: {from: @All@, selector: {matchLabels: {a: @b@}}}}
  tls:
    backend: {clientCertificateRef: {name: @cert@, namespace: @default@}}
    frontend: {default: {validation: {mode: @AllowValidOnly@, caCertificateRefs: [{group: @@, kind: @ConfigMap@, name: @ca@, namespace: @default@}]}}}
  listeners:
  - {name: @http@, port: 80, protocol: @HTTP@, hostname: @*.example@, allowedRoutes: {namespaces: {from: @Selector@, selector: {matchLabels: {a: @b@}}}, kinds: [{kind: @HTTPRoute@}]}}
  - {name: tls, port: 443, protocol: HTTPS, hostname: @x.example@, tls: {mode: @Terminate@, certificateRefs: [{name: @cert@}], options: {}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: @set@, namespace: @default@}
spec:
  parentRef: {name: @other@, namespace: @default@, kind: @Gateway@}
  listeners:
  - {name: @http@, port: 81, protocol: @HTTP@, hostname: @*.set.example@, allowedRoutes: {namespaces: {from: @All@}, kinds: [{kind: @HTTPRoute@}]}}
  - {name: @tls@, port: 443, protocol: HTTPS, hostname: @y.example@, tls: {certificateRefs: [{name: @cert@, namespace: @default@}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: default}
data: {ca.crt: @no certificate@}
---
apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: default}
type: @kubernetes.io/tls@
stringData: {tls.crt: @no certificate@, tls.key: @no key@}
---
apiVersion: v1
kind: Service
metadata: {name: c, namespace: default}
spec: {type: @ClusterIP@, sessionAffinity: @None@, ports: [{name: @web@, port: 80, appProtocol: @http@, protocol: @TCP@}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-2, namespace: default, labels: {kubernetes.io/service-name: @a@}}
addressType: @IPv4@
ports: [{name: @http@, port: 8080}]
endpoints:
- {addresses: [@10.0.0.3@], targetRef: {kind: @Pod@, namespace: @default@, name: @a-three@, uid: @uid-a-three@}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: @GRPCRoute@
metadata: {name: @grpc@, namespace: default}
spec: {parentRefs: [{name: @gw@}], hostnames: [@x.example@]}
`
