package spec

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/controller/translate/translatetest"
)

// The tests of this file and those beside it show sentences that no other package's tests show. They go from manifests
// to what is decided; what HAProxy makes of it is for internal/behaviour.

const class = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: limpet}
spec: {controllerName: limpet.dev/gateway-controller}
`

// gateway is a Gateway of our class with the given listeners, each a flow mapping.
func gateway(name string, listeners ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s}
spec: {gatewayClassName: limpet, listeners: [%s]}
`, name, strings.Join(listeners, ", "))
}

const http80 = "{name: http, port: 80, protocol: HTTP}"

// route is an HTTPRoute; its spec comes without indentation.
func route(name, spec string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s}
spec:
  %s
`, name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// service is a Service with one endpoint.
func service(namespace, name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
`, namespace, name)
}

// load reads manifests as "limpet serve -f" does. Problems with single objects are for the caller to expect or not.
func load(t testing.TB, manifests string) cluster.Snapshot {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, problems := cluster.NewFiles(cluster.FilesOptions{Paths: []string{file}}).Load()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return snapshot
}

func build(t testing.TB, manifests string) *graph.Graph {
	t.Helper()
	return graph.NewBuilder(graph.Options{}).Build(load(t, manifests))
}

// statuses are what the objects get when HAProxy serves all that the Graph says.
func statuses(g *graph.Graph) []*status.Update {
	return status.Compute(graph.DefaultControllerName, g, status.Result{Running: g})
}

// statusOf finds the status of one object.
func statusOf(t testing.TB, updates []*status.Update, kind, name string) status.Status {
	t.Helper()
	for _, update := range updates {
		if update.Kind == kind && update.Name == name {
			return update.Status
		}
	}
	t.Fatalf("%s %s has no status", kind, name)
	return status.Status{}
}

// show writes conditions as "Type=Status/Reason".
func show(conditions []metav1.Condition) string {
	texts := make([]string, len(conditions))
	for i, c := range conditions {
		texts[i] = fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return strings.Join(texts, " ")
}

// parents are the conditions of a route's parents, one string for each.
func parents(t testing.TB, manifests, name string) []string {
	t.Helper()
	var all []string
	for _, parent := range statusOf(t, statuses(build(t, manifests)), "HTTPRoute", name).Route.Parents {
		all = append(all, show(parent.Conditions))
	}
	return all
}

func condition(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func translated(t testing.TB, manifests string) model.Config {
	t.Helper()
	return translate.New(translate.Options{NamesKey: []byte("names")}).Config(build(t, manifests))
}

// ask says in a word what a request to the first port gets: a status, or the name of the Service.
func ask(t testing.TB, config model.Config, target string, headers ...string) string {
	t.Helper()
	u, err := url.Parse("http://" + target)
	if err != nil {
		t.Fatal(err)
	}
	request := translatetest.Request{
		Port: config.Frame.Ports[0].ID, Host: u.Host, Path: u.Path, Headers: map[string]string{}, Query: map[string]string{},
	}
	for name := range u.Query() {
		request.Query[name] = u.Query().Get(name)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Headers[name] = value
	}
	answer := translatetest.Ask(config, request)
	switch {
	case answer.NoHost || answer.NoMatch:
		return "404"
	case len(answer.Split) != 1:
		return fmt.Sprintf("%d shares", len(answer.Split))
	case answer.Split[0].Status != 200:
		return fmt.Sprint(answer.Split[0].Status)
	}
	return strings.Split(answer.Split[0].Backend, "/")[2]
}

const (
	routeOK   = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
	noValue   = "Accepted=False/UnsupportedValue ResolvedRefs=True/ResolvedRefs"
	accepted  = string(gatewayv1.GatewayConditionAccepted)
	programme = string(gatewayv1.GatewayConditionProgrammed)
)
