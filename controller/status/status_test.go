package status

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// class is the GatewayClass that is ours.
const class = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: limpet}
spec: {controllerName: limpet.dev/gateway-controller}
---
`

const base = class + `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: limpet
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: other, port: 81, protocol: HTTP}
---
apiVersion: v1
kind: Service
metadata: {name: svc}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: grpc}
spec: {parentRefs: [{name: gw}]}
---
`

func route(name, extra string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s}
spec:
  parentRefs: [{name: gw, sectionName: http}%s]
  rules: [{backendRefs: [{name: svc, port: 80}]}]
---
`, name, extra)
}

// stage builds graphs of texts, one after another.
type stage struct {
	t       *testing.T
	path    string
	files   *cluster.Files
	builder *graph.Builder
}

func newStage(t *testing.T) *stage {
	path := filepath.Join(t.TempDir(), "a.yaml")
	return &stage{t, path, cluster.NewFiles(cluster.FilesOptions{Paths: []string{path}}), graph.NewBuilder(graph.Options{})}
}

func (s *stage) build(text string) *graph.Graph {
	s.t.Helper()

	if err := os.WriteFile(s.path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	snapshot, problems := s.files.Load()
	if len(problems) > 0 {
		s.t.Fatal(problems)
	}
	return s.builder.Build(snapshot)
}

// short is all conditions in one line each.
func short(updates []*Update) string {
	var lines []string
	for _, update := range updates {
		for _, section := range update.Sections() {
			for _, c := range section.Conditions {
				lines = append(lines, fmt.Sprintf("%s|%s|%s=%s %s|%s", update.Object, section.Name, c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func wantLines(t *testing.T, updates []*Update, want ...string) {
	t.Helper()

	text := short(updates)
	for _, line := range want {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestAGatewayIsProgrammedOnlyWhenHAProxyServesIt(t *testing.T) {
	t.Parallel()

	s := newStage(t)
	g := s.build(base + route("r", ""))
	before := Compute(graph.DefaultControllerName, g, Result{})
	wantLines(t, before,
		"GatewayClass limpet||Accepted=True Accepted",
		"Gateway default/gw||Accepted=True Accepted",
		"Gateway default/gw||Programmed=False Pending|HAProxy does not serve this generation yet.",
		"Gateway default/gw|listener http|Programmed=False Pending",
		"HTTPRoute default/r|parent default/gw http|Accepted=True Accepted",
		"UDPRoute default/grpc|parent default/gw|Accepted=False NotAllowedByListeners",
	)
	after := Compute(graph.DefaultControllerName, g, Result{Running: g})
	wantLines(t, after,
		"Gateway default/gw||Programmed=True Programmed",
		"Gateway default/gw|listener http|Programmed=True Programmed",
		"Gateway default/gw|listener other|Programmed=True Programmed",
	)
	gateway := after[1].Status.Gateway
	if fmt.Sprint(gateway.Listeners[0].AttachedRoutes, gateway.Listeners[1].AttachedRoutes) != "1 0" {
		t.Errorf("attached: %+v", gateway.Listeners)
	}
	if kinds := gateway.Listeners[0].SupportedKinds; len(kinds) != 2 || kinds[0].Kind != "HTTPRoute" || kinds[1].Kind != "GRPCRoute" {
		t.Errorf("kinds: %+v", gateway.Listeners[0].SupportedKinds)
	}
	if len(gateway.Addresses) != 1 || gateway.Addresses[0].Value != "127.0.0.1" || *gateway.Addresses[0].Type != "IPAddress" {
		t.Errorf("addresses: %+v", gateway.Addresses)
	}
	parent := after[2].Status.Route.Parents[0]
	if parent.ControllerName != "limpet.dev/gateway-controller" || *parent.ParentRef.SectionName != "http" || parent.ParentRef.Kind != nil {
		t.Errorf("parent: %+v", parent)
	}
}

func TestAFailedApplyLeavesAloneWhatIsServedAlready(t *testing.T) {
	t.Parallel()

	s := newStage(t)
	first := s.build(base + route("r", ""))
	second := s.build(base + route("r", "") + strings.ReplaceAll(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: new}
spec: {gatewayClassName: limpet, listeners: [{name: http, port: 82, protocol: HTTP}]}
`, "\t", "  "))
	updates := Compute(graph.DefaultControllerName, second, Result{Running: first, Problem: "its socket does not answer"})
	wantLines(t, updates,
		"Gateway default/gw||Programmed=True Programmed",
		"Gateway default/new||Accepted=True Accepted",
		"Gateway default/new||Programmed=False Pending|HAProxy does not serve this generation yet: its socket does not answer",
		"Gateway default/new|listener http|Programmed=False Pending",
		"HTTPRoute default/r|parent default/gw http|Accepted=True Accepted",
	)
}

func TestWhatIsLeftOutIsSaidOfItsOwnerAlone(t *testing.T) {
	t.Parallel()

	s := newStage(t)
	g := s.build(base + route("bad", `, {name: gw, sectionName: nosuch}`) + route("good", ""))
	updates := Compute(graph.DefaultControllerName, g, Result{Running: g, LeftOut: map[model.Owner]string{"HTTPRoute default/bad": "a line is too long"}})
	wantLines(t, updates,
		"HTTPRoute default/bad|parent default/gw http|Accepted=True Accepted",
		"HTTPRoute default/bad|parent default/gw http|PartiallyInvalid=True UnsupportedValue|Dropped Rule: a line is too long",
		"HTTPRoute default/bad|parent default/gw nosuch|Accepted=False NoMatchingParent",
		"Gateway default/gw||Programmed=True Programmed",
	)
	if text := short(updates); strings.Count(text, "PartiallyInvalid") != 1 {
		t.Error(text)
	}

	updates = Compute(graph.DefaultControllerName, g, Result{Running: g, LeftOut: map[model.Owner]string{"Gateway default/gw": "cannot bind"}})
	wantLines(t, updates,
		"Gateway default/gw||Accepted=True Accepted",
		"Gateway default/gw||Programmed=False Invalid|HAProxy refuses it: cannot bind",
		"Gateway default/gw|listener other|Programmed=False Invalid|HAProxy refuses it: cannot bind",
		"HTTPRoute default/good|parent default/gw http|Accepted=True Accepted",
	)

	updates = Compute(graph.DefaultControllerName, g, Result{Running: g, LeftOut: map[model.Owner]string{"Service default/svc": "no slot"}})
	wantLines(t, updates, "HTTPRoute default/good|parent default/gw http|PartiallyInvalid=True UnsupportedValue|Dropped Rule: Service default/svc: no slot")
}

func TestAPortThatCannotBeBoundIsSaidOfItsListeners(t *testing.T) {
	t.Parallel()

	const words = "127.0.0.1:80 is in use by another process"
	s := newStage(t)
	g := s.build(base)
	result := Result{Running: g, LeftOut: map[model.Owner]string{"Port default/gw 127.0.0.1:80": words}}
	wantLines(t, Compute(graph.DefaultControllerName, g, result),
		"Gateway default/gw||Accepted=True Accepted",
		"Gateway default/gw||Programmed=True Programmed|HAProxy serves the Gateway in part. Listener http: "+words+".",
		"Gateway default/gw|listener http|Programmed=False Invalid|"+words,
		"Gateway default/gw|listener other|Programmed=True Programmed",
	)
	wantAddresses(t, g, result, "[127.0.0.1]")
	if at := Listening(g.Gateways[0].Listeners[0], result.LeftOut); len(at) != 0 {
		t.Errorf("listening at %v", at)
	}

	result.LeftOut["Port default/gw 127.0.0.1:81"] = "127.0.0.1:81 too"
	wantLines(t, Compute(graph.DefaultControllerName, g, result),
		"Gateway default/gw||Programmed=False AddressNotUsable|"+words+"; 127.0.0.1:81 too",
		"Gateway default/gw|listener other|Programmed=False Invalid|127.0.0.1:81 too",
	)
	wantAddresses(t, g, result, "[]")

	// One of two addresses: what is asked for and cannot be had is said of the Gateway.
	g = s.build(withAddresses("{value: 127.0.0.1}, {value: 192.0.2.1}"))
	result = Result{Running: g, LeftOut: map[model.Owner]string{"Port default/gw 192.0.2.1:80": "no such address", "Port default/gw 192.0.2.1:81": "no such address"}}
	wantLines(t, Compute(graph.DefaultControllerName, g, result),
		"Gateway default/gw||Programmed=False AddressNotUsable|no such address",
		"Gateway default/gw|listener http|Programmed=False Invalid|no such address",
	)
	wantAddresses(t, g, result, "[127.0.0.1]")
	if at := Listening(g.Gateways[0].Listeners[0], result.LeftOut); fmt.Sprint(at) != "[127.0.0.1:80]" {
		t.Errorf("listening at %v", at)
	}

	// Nothing is bound before anything is applied, and what was stays while the next does not apply.
	wantAddresses(t, g, Result{}, "[]")
	later := s.build(withAddresses("{value: 127.0.0.1}, {value: 127.0.0.2}"))
	wantAddresses(t, later, Result{Running: g, Problem: "x"}, "[127.0.0.1]")
}

func withAddresses(addresses string) string {
	return strings.Replace(base, "gatewayClassName: limpet", "gatewayClassName: limpet\n  addresses: ["+addresses+"]", 1)
}

func wantAddresses(t *testing.T, g *graph.Graph, r Result, want string) {
	t.Helper()
	for _, update := range Compute(graph.DefaultControllerName, g, r) {
		if update.Status.Gateway == nil {
			continue
		}
		got := []string{}
		for _, address := range update.Status.Gateway.Addresses {
			got = append(got, address.Value)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("addresses %v, want %s", got, want)
		}
	}
}

func TestAListenerThatIsNotValidIsNeverProgrammed(t *testing.T) {
	t.Parallel()

	s := newStage(t)
	g := s.build(strings.Replace(base, "protocol: HTTP}\n---", "protocol: HTTPS}\n---", 1))
	wantLines(t, Compute(graph.DefaultControllerName, g, Result{Running: g}),
		"Gateway default/gw||Accepted=True ListenersNotValid",
		"Gateway default/gw||Programmed=True Programmed",
		"Gateway default/gw|listener http|Programmed=True Programmed",
		"Gateway default/gw|listener other|Programmed=False ",
	)
}

func TestWhatDidNotChangeIsTheSameUpdate(t *testing.T) {
	t.Parallel()

	s, c := newStage(t), NewComputer(graph.DefaultControllerName)
	g := s.build(base + route("a", "") + route("b", ""))
	first := byObject(c.Compute(g, Result{Running: g}))
	g = s.build(base + route("a", "") + strings.Replace(route("b", ""), "rules:", "hostnames: [b.example.com]\n  rules:", 1))
	second := byObject(c.Compute(g, Result{Running: g}))
	for object, update := range first {
		if same := second[object] == update; same != (object.Name != "b") {
			t.Errorf("%s: same is %v", object, same)
		}
	}
	if fresh := byObject(Compute(graph.DefaultControllerName, g, Result{Running: g})); len(fresh) != len(second) {
		t.Errorf("%d and %d updates", len(fresh), len(second))
	} else {
		for object, update := range fresh {
			if !Equal(update, second[object]) {
				t.Errorf("%s: a fresh Computer says otherwise", object)
			}
		}
	}
	bad := byObject(c.Compute(g, Result{Running: g, LeftOut: map[model.Owner]string{"HTTPRoute default/a": "x"}}))
	good := byObject(c.Compute(g, Result{Running: g}))
	for object, update := range second {
		if (bad[object] == update) != (object.Name != "a") || !Equal(good[object], update) {
			t.Errorf("%s: what is left out leaks", object)
		}
	}
}

func TestACertificateExpiresWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()

	s, c := newStage(t), NewComputer(graph.DefaultControllerName)
	g := s.build(base)
	over := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	g.Gateways[0].Listeners[1].Certificates = []*graph.Certificate{{Secret: types.NamespacedName{Namespace: "a", Name: "b"}, NotAfter: over}}
	for _, now := range []time.Time{{}, over.Add(-time.Second), over} {
		wantLines(t, c.Compute(g, Result{Running: g, Now: now}), "Gateway default/gw|listener other|Programmed=True Programmed|HAProxy serves the listener.")
	}
	updates := c.Compute(g, Result{Running: g, Now: over.Add(time.Second)})
	wantLines(t, updates,
		"Gateway default/gw|listener other|Programmed=True Programmed|HAProxy serves the listener. The certificate in Secret a/b expired on 2026-02-03: it is served all the same, replace it.",
		"Gateway default/gw|listener http|Programmed=True Programmed|HAProxy serves the listener.")
	if later := c.Compute(g, Result{Running: g, Now: over.Add(time.Hour)}); later[1] != updates[1] {
		t.Error("time alone makes another Update")
	}
}

func byObject(updates []*Update) map[Object]*Update {
	all := map[Object]*Update{}
	for _, update := range updates {
		all[update.Object] = update
	}
	return all
}

func TestATimeChangesOnlyWithTheStatus(t *testing.T) {
	t.Parallel()

	clock := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "status.yaml")
	store := NewStore(StoreOptions{File: path, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return clock }})
	s := newStage(t)
	write := func(g *graph.Graph, r Result) {
		t.Helper()
		if err := store.Write(t.Context(), Compute(graph.DefaultControllerName, g, r)); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Hour)
	}
	g := s.build(base + route("r", ""))
	write(g, Result{})
	if !strings.Contains(log.String(), `level=INFO msg=status object="HTTPRoute default/r" of="parent default/gw http" condition=Accepted change="- → True" reason=Accepted`) ||
		!strings.Contains(log.String(), `level=WARN msg=status object="Gateway default/gw" condition=Programmed change="- → False" reason=Pending`) {
		t.Errorf("log:\n%s", log.String())
	}

	log.Reset()
	write(g, Result{Running: g})
	gateway := readStatus(t, path)["Gateway default/gw"]
	if got := fmt.Sprint(gateway["Accepted"].LastTransitionTime.Hour(), gateway["Programmed"].LastTransitionTime.Hour()); got != "3 4" {
		t.Errorf("hours: %s", got)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 || !strings.Contains(log.String(), `change="False → True" reason=Programmed`) {
		t.Errorf("log:\n%s", log.String())
	}

	log.Reset()
	before := stat(t, path)
	write(g, Result{Running: g})
	if after := stat(t, path); !os.SameFile(before, after) || log.Len() > 0 {
		t.Errorf("written again although nothing changed\n%s", log.String())
	}

	g = s.build(base)
	write(g, Result{Running: g})
	all := readStatus(t, path)
	if _, there := all["HTTPRoute default/r"]; there || len(all) != 3 || !strings.Contains(log.String(), `object="HTTPRoute default/r"`) {
		t.Errorf("%v\n%s", all, log.String())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAStatusFileThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "missing")
	store := NewStore(StoreOptions{File: filepath.Join(dir, "status.yaml")})
	g := newStage(t).build(base)
	updates := Compute(graph.DefaultControllerName, g, Result{Running: g})
	if err := store.Write(t.Context(), updates); err == nil {
		t.Error("no error")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := store.Write(t.Context(), updates); err != nil {
		t.Error(err)
	}
	if len(readStatus(t, filepath.Join(dir, "status.yaml"))) != 3 {
		t.Error("not written")
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()

	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// readStatus reads a status file: the own conditions of each object.
func readStatus(t *testing.T, path string) map[string]map[string]metav1.Condition {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		APIVersion, Kind string
		Items            []struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Status   struct{ Conditions []metav1.Condition }
		}
	}
	if err := yaml.UnmarshalStrict(text, &list, yaml.DisallowUnknownFields); err != nil && !strings.Contains(err.Error(), "unknown field") {
		t.Fatal(err)
	}
	all := map[string]map[string]metav1.Condition{}
	for _, item := range list.Items {
		object := Object{Kind: item.Kind, Namespace: item.Metadata.Namespace, Name: item.Metadata.Name}
		all[object.String()] = map[string]metav1.Condition{}
		for _, c := range item.Status.Conditions {
			all[object.String()][c.Type] = c
		}
	}
	return all
}

func TestTheListOfNothingIsAList(t *testing.T) {
	t.Parallel()

	if text, err := Marshal(nil); err != nil || string(text) != "apiVersion: v1\nkind: List\nitems: []\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func BenchmarkOneOf5000RoutesChanged(b *testing.B) {
	text := base
	for i := range 5000 {
		text += route(fmt.Sprintf("r%d", i), "")
	}
	path := filepath.Join(b.TempDir(), "a.yaml")
	files := cluster.NewFiles(cluster.FilesOptions{Paths: []string{path}})
	builder := graph.NewBuilder(graph.Options{})
	var graphs []*graph.Graph
	for i := range 2 {
		changed := strings.Replace(text, "metadata: {name: r2500}", fmt.Sprintf("metadata: {name: r2500, labels: {v: v%d}}", i), 1)
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			b.Fatal(err)
		}
		snapshot, problems := files.Load()
		if len(problems) > 0 {
			b.Fatal(problems)
		}
		graphs = append(graphs, builder.Build(snapshot))
	}
	c, store := NewComputer(graph.DefaultControllerName), NewStore(StoreOptions{})
	for i := 0; b.Loop(); i++ {
		g := graphs[i%2]
		if err := store.Write(b.Context(), c.Compute(g, Result{Running: g})); err != nil {
			b.Fatal(err)
		}
	}
}
