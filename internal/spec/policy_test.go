package spec

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/status"
)

// policy is a BackendTLSPolicy of the Service shop; the rest of its validation follows.
func policy(validation string) string {
	return `---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: p, generation: 1}
spec: {targetRefs: [{group: '', kind: Service, name: shop}], validation: {hostname: s.example, ` + validation + `}}
`
}

const systemCAs = "wellKnownCACertificates: System"

// toShop is a route of the Gateways to the Service shop.
func toShop(gateways ...string) string {
	refs := ""
	for _, name := range gateways {
		refs += "{name: " + name + "}, "
	}
	return route("r", "parentRefs: ["+refs+"]\nrules: [{backendRefs: [{name: shop, port: 80}]}]")
}

// ancestors are the entries in the policy's status, as "gateway Type=Status/Reason ...", in order.
func ancestors(t testing.TB, updates []*status.Update) []string {
	t.Helper()
	var all []string
	for _, update := range updates {
		if update.Kind != "BackendTLSPolicy" {
			continue
		}
		for _, ancestor := range update.Status.Policy.Ancestors {
			if ancestor.ControllerName != graph.DefaultControllerName {
				t.Errorf("an entry has the controllerName %q", ancestor.ControllerName)
			}
			if ancestor.AncestorRef.Kind == nil || *ancestor.AncestorRef.Kind != gatewayv1.Kind("Gateway") {
				t.Errorf("an ancestor is %+v", ancestor.AncestorRef)
			}
			all = append(all, string(ancestor.AncestorRef.Name)+" "+show(ancestor.Conditions))
		}
	}
	return all
}

func TestAPolicyHasOneEntryForEachGatewayOfOurs(t *testing.T) {
	t.Parallel()
	base := class + gateway("a", http80) + gateway("b", "{name: http, port: 81, protocol: HTTP}") + service("default", "shop") + policy(systemCAs) +
		strings.ReplaceAll(strings.ReplaceAll("---"+class+gateway("foreign", http80), "limpet.dev/", "example.com/"), "limpet", "other")
	const ok = " Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
	builder, computer := graph.NewBuilder(graph.Options{}), status.NewComputer(graph.DefaultControllerName)
	for _, step := range []struct {
		gateways []string
		want     []string
	}{
		{[]string{"a", "b", "foreign"}, []string{"a" + ok, "b" + ok}},
		{[]string{"b"}, []string{"b" + ok}},
		{[]string{"foreign"}, nil},
		{[]string{"b", "a"}, []string{"a" + ok, "b" + ok}},
	} {
		g := builder.Build(load(t, base+toShop(step.gateways...)))
		if got := ancestors(t, computer.Compute(g, status.Result{Running: g})); !slices.Equal(got, step.want) {
			t.Errorf("a route of %q: the ancestors are %q, want %q", step.gateways, got, step.want)
		}
	}
}

// TestAPolicyHoldsForMoreGatewaysThanItsStatusHas has one Gateway more than the status has room for.
func TestAPolicyHoldsForMoreGatewaysThanItsStatusHas(t *testing.T) {
	t.Parallel()
	manifests, names := class+service("default", "shop")+policy(systemCAs), []string{}
	for i := range 17 {
		names = append(names, fmt.Sprintf("gw%02d", i))
		manifests += gateway(names[i], fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", 8000+i))
	}
	g := build(t, manifests+toShop(names...))
	if got := ancestors(t, statuses(g)); len(got) != 16 || !strings.HasPrefix(got[15], "gw15 ") {
		t.Errorf("%d ancestors, the last is %s", len(got), got[len(got)-1])
	}
	config := newTranslator().Config(g)
	if len(config.Frame.Ports) != 17 || config.Backends.Len() == 0 {
		t.Errorf("%d ports, %d backends", len(config.Frame.Ports), config.Backends.Len())
	}
	for _, entry := range config.Backends.Sorted() {
		if entry.Value.TLS == nil {
			t.Errorf("%s is spoken to in plain text", entry.Key)
		}
	}
}

func TestACertificateThatIsNoCAsHasAReasonOfOurOwn(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(secret(t, "leaf", "s.example"), "tls.crt: ")
	leaf, err := base64.StdEncoding.DecodeString(text[:strings.Index(text, ",")])
	if err != nil {
		t.Fatal(err)
	}
	g := build(t, class+gateway("gw", http80)+service("default", "shop")+toShop("gw")+
		policy("caCertificateRefs: [{group: '', kind: ConfigMap, name: leaf}]")+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: leaf}\ndata: {ca.crt: "+fmt.Sprintf("%q", leaf)+"}\n")
	want := []string{"gw Accepted=False/NoValidCACertificate ResolvedRefs=False/UnusableCertificate"}
	if got := ancestors(t, statuses(g)); !slices.Equal(got, want) {
		t.Errorf("the ancestors are %q, want %q", got, want)
	}
}

func TestAnXBackendHasOneEntryForEachGatewayOfOurs(t *testing.T) {
	t.Parallel()
	base := class + gateway("a", http80) + gateway("b", "{name: http, port: 81, protocol: HTTP}") + `---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackend
metadata: {name: x, generation: 1}
spec: {type: EndpointSelector, port: {number: 8080}, endpointSelector: {matchLabels: {app: x}}}
`
	builder, computer := graph.NewBuilder(graph.Options{}), status.NewComputer(graph.DefaultControllerName)
	for _, step := range []struct{ gateways, want []string }{{[]string{"a", "b"}, []string{"a", "b"}}, {[]string{"b"}, []string{"b"}}, {nil, nil}} {
		manifests := base
		if len(step.gateways) > 0 {
			manifests += strings.Replace(toShop(step.gateways...), "{name: shop, port: 80}", "{group: gateway.networking.x-k8s.io, kind: XBackend, name: x}", 1)
		}
		var got []string
		for _, update := range computer.Compute(builder.Build(load(t, manifests)), status.Result{}) {
			if update.Kind != "XBackend" {
				continue
			}
			for _, ancestor := range update.Status.Policy.Ancestors {
				if ancestor.ControllerName != graph.DefaultControllerName {
					t.Errorf("an entry has the controllerName %q", ancestor.ControllerName)
				}
				got = append(got, string(ancestor.AncestorRef.Name))
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("a route of %q: the ancestors are %q, want %q", step.gateways, got, step.want)
		}
	}
}
