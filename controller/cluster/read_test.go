package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEveryKindIsReadFromYAMLAndJSON(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{
		"a.yaml": `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: GatewayClass
metadata: {name: limpet, namespace: ignored}
spec: {controllerName: limpet.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: limpet, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
# Nothing but a comment.
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: ReferenceGrant
metadata: {name: old, namespace: shop}
spec: {from: [], to: []}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
data: {a: eA==, b: eA==}
stringData: {b: "y"}
`,
		"nested/b.yml": `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: svc, namespace: shop}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSliceList
  items:
  - metadata: {name: svc-1, namespace: shop}
    addressType: IPv4
    endpoints: []
- apiVersion: v1
  kind: Namespace
  metadata: {name: shop, labels: {team: shop}}
`,
		"nested/deep/c.json": `{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
	"metadata": {"name": "r", "namespace": "shop", "annotations": {"face": "\ud83d\ude00"}}, "spec": {}}
{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "UDPRoute", "metadata": {"name": "g"}, "spec": {"any": [1, 2.5, true, null]}}`,
		"not-read.txt":       "{",
		".hidden.yaml":       "{",
		"backup.yaml~":       "{",
		"kustomization.yaml": "resources: [a.yaml]",
	})
	s, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()

	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	class, ok := s.GatewayClasses.Get("", "limpet")
	if !ok || class.APIVersion != "gateway.networking.k8s.io/v1" || class.Kind != "GatewayClass" || class.Generation != 1 {
		t.Errorf("class: %+v", class)
	}
	if gateway, ok := s.Gateways.Get("default", "gw"); !ok || gateway.Spec.Listeners[0].Port != 80 {
		t.Errorf("gateway: %+v", gateway)
	}
	if grant, ok := s.ReferenceGrants.Get("shop", "old"); !ok || grant.APIVersion != "gateway.networking.k8s.io/v1beta1" {
		t.Errorf("grant: %+v", grant)
	}
	if secret, ok := s.Secrets.Get("shop", "s"); !ok || string(secret.Data["a"])+string(secret.Data["b"]) != "xy" || secret.StringData != nil {
		t.Errorf("secret: %+v", secret)
	}
	if _, ok := s.Services.Get("shop", "svc"); !ok {
		t.Error("the service of the list is missing")
	}
	if _, ok := s.EndpointSlices.Get("shop", "svc-1"); !ok {
		t.Error("the slice of the list in the list is missing")
	}
	if route, ok := s.HTTPRoutes.Get("shop", "r"); !ok || route.Annotations["face"] != "😀" {
		t.Errorf("route: %+v", route)
	}
	if len(s.Others) != 1 || s.Others[0].GetKind() != "UDPRoute" || s.Others[0].GetNamespace() != "default" || s.Others[0].GetGeneration() != 1 {
		t.Errorf("others: %v", s.Others)
	}
}

func TestEveryNamespaceThatIsNamedExists(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("here", "a", "") + "---\n" + service("there", "b", "") + `---
apiVersion: v1
kind: Namespace
metadata: {name: there, labels: {team: a}}
`})
	s, _ := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
	for _, name := range []string{"here", "there"} {
		namespace, ok := s.Namespaces.Get("", name)
		if !ok || namespace.Labels[corev1.LabelMetadataName] != name {
			t.Errorf("%s: %+v", name, namespace)
		}
	}
	if there, _ := s.Namespaces.Get("", "there"); there.Labels["team"] != "a" {
		t.Errorf("the written label is lost: %v", there.Labels)
	}
}

func TestYAMLIsReadAsKubectlReadsIt(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": `
%YAML 1.1
---
apiVersion: v1
kind: Secret
metadata: {name: words, creationTimestamp: 2024-01-02T03:04:05Z, labels: &labels {app: "yes", tier: web}}
stringData:
  yes: "no"
  8080: "0x10"
  text: |
    --- not a document
---
apiVersion: v1
kind: Service
metadata:
  name: merged
  labels: &base {a: "1", b: "1"}
  annotations:
    <<: *base
    b: "2"
spec:
  publishNotReadyAddresses: yes
  ports: [{port: 0x50}]
...
---
apiVersion: v1
kind: Service
metadata: {name: last}
`})
	s, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	secret, _ := s.Secrets.Get("default", "words")
	if fmt.Sprintf("%s", secret.Data) != "map[8080:0x10 text:--- not a document\n yes:no]" || secret.CreationTimestamp.Year() != 2024 {
		t.Errorf("secret: %s %v", secret.Data, secret.CreationTimestamp)
	}
	merged, _ := s.Services.Get("default", "merged")
	if fmt.Sprint(merged.Annotations) != "map[a:1 b:2]" || !merged.Spec.PublishNotReadyAddresses || merged.Spec.Ports[0].Port != 80 {
		t.Errorf("service: %+v", merged)
	}
	if _, ok := s.Services.Get("default", "last"); !ok {
		t.Error("the last document is missing")
	}
}

func TestMistakesAreReportedWithFileAndLine(t *testing.T) {
	t.Parallel()

	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: r\nspec:\n"
	cases := map[string]struct{ text, want string }{
		"broken YAML": {"\n---\nkind: [\n", "a.yaml:3: error: the YAML is broken here or just before"},
		"broken YAML in the second document": {
			service("default", "a", "") + "---\nx: 'y\n", ":5: error: the YAML is broken",
		},
		"a key twice": {
			route + "  hostnames: []\n  rules: []\n  hostnames: [a.example]\n",
			`a.yaml:8: error: the key "hostnames" is here a second time, first in line 6`,
		},
		"a key twice in a later document": {
			"\n---\n" + service("default", "a", "") + "---\nkind: a\nkind: b\n", `:8: error: the key "kind" is here a second time, first in line 7`,
		},
		"an unknown field": {
			route + "  rules:\n  - name: x\n    hostname: y\n",
			"a.yaml:8: warning: HTTPRoute default/r: spec.rules[0].hostname: there is no such field: it is ignored",
		},
		"an annotation of ours that is none": {
			"\n" + strings.Replace(service("default", "a", ""), "metadata: {", "metadata: {annotations: {limpet.dev/x: b, other.example/limpet.dev/x: b}, ", 1),
			"warning: Service default/a: metadata.annotations: there is no annotation limpet.dev/x: it is ignored",
		},
		"what a session never had": {
			route + "  rules:\n  - sessionPersistence:\n      sessionName: id\n      cookieName: id\n",
			"a.yaml:9: warning: HTTPRoute default/r: spec.rules[0].sessionPersistence.cookieName: there is no such field: it is ignored",
		},
		"what cookieConfig never had": {
			route + "  rules:\n  - sessionPersistence:\n      cookieConfig: {path: /}\n",
			"spec.rules[0].sessionPersistence.cookieConfig.path: there is no such field: it is ignored",
		},
		"a number for a session's name": {
			route + "  rules:\n  - sessionPersistence:\n      sessionName: 5\n",
			"a.yaml:8: error: HTTPRoute r: spec.rules[0].sessionPersistence.sessionName: must be a string, but a number is given",
		},
		"a string for a number": {
			route + "  rules:\n  - backendRefs:\n    - name: a\n    - name: b\n      port: http\n",
			"a.yaml:10: error: HTTPRoute r: spec.rules[0].backendRefs[1].port: must be a whole number that fits, but a string is given",
		},
		"a number for a string": {
			route + "  hostnames:\n  - 8080\n", "a.yaml:7: error: HTTPRoute r: spec.hostnames[0]: must be a string, but a number is given: put it in quotes",
		},
		"a word that is a boolean": {
			route + "  hostnames: [no]\n", "a.yaml:6: error: HTTPRoute r: spec.hostnames[0]: must be a string, but a boolean is given: put it in quotes",
		},
		"a mapping for a list": {route + "  rules:\n    name: x\n", "a.yaml:7: error: HTTPRoute r: spec.rules: must be a list, but a mapping is given"},
		"base64 that is none":  {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {hunter: '(hunter2)'}\n", "a.yaml:3: error: Secret s: illegal base64"},
		"no name":              {"apiVersion: v1\nkind: Service\nmetadata: {}\n", "a.yaml:3: error: Service default/: metadata.name: the object has no name"},
		"a generated name":     {"apiVersion: v1\nkind: Service\nmetadata:\n  generateName: x-\n", "a.yaml:4: error: Service default/: metadata.generateName: only an API server"},
		"a name with a newline": {
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: \"x\\ny\"\n", `a.yaml:4: error: Service "default/x\ny": metadata.name: a lowercase RFC 1123 label`,
		},
		"a name in upper case": {route[:len(route)-len("  name: r\nspec:\n")] + "  name: R\n", "a.yaml:4: error: HTTPRoute default/R: metadata.name: a lowercase RFC 1123 subdomain"},
		"a namespace that is none": {
			"apiVersion: v1\nkind: Widget\nmetadata:\n  name: x\n  namespace: a.b\n", "a.yaml:5: error: Widget a.b/x: metadata.namespace: ",
		},
		"no kind":               {"a: b\n", "a.yaml:1: error: is no object: it must say its apiVersion and kind"},
		"a bare word":           {"hello\n", "a.yaml:1: error: is no object: there must be apiVersion"},
		"an outdated version":   {"kind: HTTPRoute\napiVersion: gateway.networking.k8s.io/v1alpha2\n", "a.yaml:2: error: there is no HTTPRoute in apiVersion gateway.networking.k8s.io/v1alpha2: write apiVersion: gateway.networking.k8s.io/v1"},
		"a wrong group":         {"kind: EndpointSlice\napiVersion: v1\n", "a.yaml:2: error: there is no EndpointSlice in apiVersion v1: write apiVersion: discovery.k8s.io/v1"},
		"not text":              {"a: b\nc: \xff\n", "a.yaml:2: error: is not UTF-8 text"},
		"escapes for terminals": {route + "  \"\\e[31m\\n\": 1\n", "a.yaml:6: warning: HTTPRoute default/r: spec.\ufffd[31m\ufffd: there is no such field"},
		"a NUL":                 {"a: b\nc: \x00\n", "a.yaml:2: error: is not UTF-8 text"},
		"an unknown tag":        {"kind: !Ref x\napiVersion: v1\nmetadata: {name: x}", "a.yaml:1: error: the tag !Ref is not known"},
		"not a number":          {"kind: X\napiVersion: v1\nmetadata: {name: x}\ny: .inf", "a.yaml:4: error: is not a finite number"},
		"a deep nest":           {"kind: X\napiVersion: v1\nmetadata: {name: x}\ny: " + strings.Repeat("[", 600) + strings.Repeat("]", 600), "a.yaml:4: error: is nested too deeply"},
		"a billion laughs":      {laughs("[*PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS]"), "error: grows too large"},
		"a billion merges":      {laughs("{<<: [*PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS, *PREVIOUS]}"), "error: grows too large"},
		"many documents":        {strings.Repeat("---\n", 100_002), "a.yaml:100001: error: there are more than 100000 documents"},
		"a huge document":       {"kind: X\n---\nkind: " + strings.Repeat("x", 9<<20), "a.yaml:2: error: the document is larger than 8 MiB"},
		"a list that is in it":  {"kind: X\napiVersion: v1\nmetadata: {name: x}\ny: &y [*y]", "a.yaml:4: error: is nested too deeply"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := folder(t, map[string]string{"a.yaml": c.text})
			_, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
			if !strings.Contains(fmt.Sprint(problems), c.want) {
				t.Fatalf("problems: %v\nwant     %s", problems, c.want)
			}
			if strings.Contains(problems[0].String(), "hunter2") {
				t.Errorf("the problem shows a secret: %v", problems[0])
			}
		})
	}
}

// laughs is a document in which each level holds the one before nine times.
func laughs(level string) string {
	text := "kind: X\napiVersion: v1\nmetadata: {name: x}\na0: &a0 {x: y}\n"
	for i := range 12 {
		text += fmt.Sprintf("a%d: &a%[1]d %s\n", i+1, strings.ReplaceAll(level, "PREVIOUS", fmt.Sprintf("a%d", i)))
	}
	return text
}

func TestBrokenYAMLIsReportedWhereItIs(t *testing.T) {
	t.Parallel()

	const before = "---\napiVersion: v1\nkind: X\nmetadata:\n  name: a\nspec:\n  rules:\n  - name: x\n    a: b\n"
	const after = "    c: d\n    e: f\n  - name: y\n    z: u\nother:\n  more: x\n"
	for _, mistake := range []string{
		"     bad: indent", "   bad: indent", "    nocolon", "\tname: tab", "    x: [a, b", "    x: {a: b", "    x: 'unclosed", `    x: "unclosed`,
		"    - item", "    x: a: b", "    x: *nope", "    x: @at", "    x: %percent", "    ? [", "}", "  key", "    x: &", "    x: !<", `    "a" b`,
	} {
		d := readDocument([]byte(before+mistake+"\n"+after), false)
		if len(d.problems) != 1 || d.problems[0].Line != 10 && d.problems[0].Line != 11 {
			t.Errorf("%q in line 10: %v", mistake, d.problems)
		}
	}
}

func TestMistakesInJSONAreReportedWithFileAndLine(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ text, want string }{
		"broken":           {"{\n\"kind\": \"X\",\n}", "a.json:3: error: the JSON is broken here: "},
		"cut off":          {"{\n\"kind\": [\n", "a.json:2: error: the JSON is broken here: unexpected"},
		"a key twice":      {"{\"kind\": \"X\",\n\"apiVersion\": \"v1\",\n\"kind\": \"X\"}", "a.json:3: error: the key \"kind\" is here a second time, first in line 1"},
		"a list":           {"\n[]", "a.json:2: error: is no object"},
		"the second value": {"{\"kind\": \"X\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"x\"}}\n\n{\n\"kind\": 1}", "a.json:3: error: is no object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := folder(t, map[string]string{"a.json": c.text})
			_, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
			if len(problems) == 0 || !strings.Contains(problems[0].String(), c.want) {
				t.Fatalf("problems: %v\nwant     %s", problems, c.want)
			}
		})
	}
}

func TestOneMistakeHidesNoOther(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": "kind: [\n---\n" + service("default", "good", "") + "---\nkind: {\n"})
	s, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
	if len(problems) != 2 {
		t.Errorf("problems: %v", problems)
	}
	if _, ok := s.Services.Get("default", "good"); !ok {
		t.Error("at the first start, what can be read is not used")
	}
}

func TestTwoObjectsOfOneNameAreReportedWithBothPlaces(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{
		"a.yaml": "\n" + service("default", "x", "{clusterIP: first}"),
		"b.yaml": service("default", "x", "{clusterIP: second}"),
	})
	s, problems := NewFiles(FilesOptions{Paths: []string{dir}}).Load()
	if len(problems) != 1 || problems[0].Severity != Error ||
		!strings.HasSuffix(problems[0].String(), "b.yaml:1: error: Service default/x: is in "+dir+"/a.yaml:2 already: that one counts, this one is ignored") {
		t.Errorf("problems: %v", problems)
	}
	if kept, _ := s.Services.Get("default", "x"); kept.Spec.ClusterIP != "first" {
		t.Errorf("kept %s", kept.Spec.ClusterIP)
	}
}

func TestPathsThatAreNoManifestsAreErrors(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	pipe, loop, far := filepath.Join(dir, "pipe.yaml"), filepath.Join(dir, "loop"), filepath.Join(dir, "gone.yaml")
	makePipe(t, pipe)
	if err := os.Symlink(dir, loop); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", far); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.yaml")
	if file, err := os.Create(big); err != nil || file.Truncate(100<<20) != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "good.yaml"), service("default", "good", ""))

	s, problems := NewFiles(FilesOptions{Paths: []string{dir, filepath.Join(dir, "missing.yaml"), "/dev/zero"}}).Load()
	text := fmt.Sprint(problems)
	for _, want := range []string{
		"pipe.yaml: error: is a pipe, not a regular file",
		"loop: error: the link leads back to a folder that it is in",
		"gone.yaml: error: there is no such file or folder",
		"big.yaml: error: is larger than 32 MiB",
		"missing.yaml: error: there is no such file or folder",
		"/dev/zero: error: is a device, not a regular file",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if _, ok := s.Services.Get("default", "good"); !ok {
		t.Error("the good file is not used")
	}
}

func TestStandardInputIsReadOnce(t *testing.T) {
	t.Parallel()

	files := NewFiles(FilesOptions{Paths: []string{"-"}, Stdin: strings.NewReader(service("default", "x", "") + "---\n{")})
	for range 2 {
		s, problems := files.Load()
		if len(s.Services.All()) != 1 || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "stdin:") {
			t.Errorf("%v, %v", s.Services.All(), problems)
		}
	}
	_, problems := NewFiles(FilesOptions{Paths: []string{"-"}, Stdin: brokenReader{}}).Load()
	if len(problems) != 1 {
		t.Errorf("problems: %v", problems)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestSessionsOfOlderVersionsAreRead(t *testing.T) {
	const text = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec:" + `
  rules:
  - sessionPersistence: {cookie: {}}
  - sessionPersistence: {sessionName: id, idleTimeout: 5m, cookieConfig: {lifetimeType: Permanent}}
  - {}
  - sessionPersistence: {idleTimeout: 1h}
`
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, problems := NewFiles(FilesOptions{Paths: []string{file}}).Load()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	rules := snapshot.HTTPRoutes.All()[0].Spec.Rules
	if len(snapshot.OldSessions) != 2 {
		t.Errorf("there are %d sessions, want 2", len(snapshot.OldSessions))
	}
	full := snapshot.OldSessions[rules[1].SessionPersistence] //nolint:staticcheck // deprecated upstream
	if full == nil || *full.SessionName != "id" || *full.IdleTimeout != "5m" || *full.CookieConfig.LifetimeType != "Permanent" {
		t.Errorf("the second rule has %+v", full)
	}
	idle := snapshot.OldSessions[rules[3].SessionPersistence] //nolint:staticcheck // deprecated upstream
	if idle == nil || idle.SessionName != nil || *idle.IdleTimeout != "1h" || idle.CookieConfig != nil {
		t.Errorf("the last rule has %+v", idle)
	}
}
