package behaviour

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// guide returns the manifests in a guide, which are to be served as they stand there.
func guide(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		all.WriteString("---\n" + block[1])
	}
	return all.String()
}

// serviceIn is a Service in another namespace with the pod's endpoint.
func (w *World) serviceIn(namespace, name string) string {
	at := w.pod(name + "-1").at
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: %[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{port: %[3]d}]
endpoints: [{addresses: [%[4]s]}]
`, name, namespace, at.Port(), at.Addr())
}

func TestTheGuideToTLSIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	ca, backends := newAuthority(), newAuthority()
	chain, key := ca.pair("edge.example")
	w := Run(t, class, pods("web", 1), pods("shop", 1), speaking("secure", "https", false, backends.server("s.internal")))
	w.Apply(t, class+guide(t, "tls.md")+certificate("example-com", "*.example.com")+inside("shop", certificate("shop-example-org", "shop.example.org"))+
		bundle("partners-ca", ca)+secret("edge-client", chain, key)+w.serviceIn("shop", "shop")+
		bundle("ca", backends)+backendTLS("secure", "hostname: s.internal, "+trustCA)+
		routeOf("web", "parentRefs: [{name: edge}]\nrules:\n- backendRefs: [{name: web, port: 80}]\n"+
			"- matches: [{path: {value: /secure}}]\n  backendRefs: [{name: secure, port: 80}]"))
	secure := func(url string) request {
		r := get(url)
		r.tls = true
		return r
	}
	partner := secure("partners.example.com/")
	partner.port, partner.client = 8443, &shower{}
	for _, c := range []struct {
		name string
		request
		want, shown string
	}{
		{"the Gateway's listener", secure("a.example.com/"), "web", "*.example.com"},
		{"the ListenerSet's", secure("shop.example.org/"), "shop", "shop.example.org"},
		{"a partner with a certificate", func() request { r := partner; r.client = ca.client(); return r }(), "web", "*.example.com"},
	} {
		if a := w.ask(t, c.request); a.outcome() != c.want || a.shown() != c.shown {
			t.Errorf("%s: %s with the certificate of %s, want %s with %s", c.name, a.outcome(), a.shown(), c.want, c.shown)
		}
	}
	if a := w.ask(t, partner); a.err == nil || partner.client.asked.Load() == 0 {
		t.Errorf("a partner without a certificate: %s", a.outcome())
	}
	if seen := w.ok(t, secure("a.example.com/secure")).echo; seen.Service != "secure" || seen.Client != "edge.example" {
		t.Errorf("a backend that asks for a certificate sees %q: %+v", seen.Client, seen)
	}
	for _, object := range []string{"Gateway default/edge", "ListenerSet shop/shop"} {
		if got := w.condition(t, object, "Programmed"); got.Status != "True" {
			t.Errorf("%s: %+v", object, got)
		}
	}
}

func TestTheGuideToBackendsIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	ca := newAuthority()
	w := Run(t, gateway, speaking("shop", "https", false, ca.server("shop.internal")), speaking("cart", "", false, ca.server("cart.internal")),
		pods("unrelated", 1))
	w.applyPods(t, gateway+guide(t, "backends.md")+bundle("shop-ca", ca))
	w.check(t, []row{{"a Service in TLS", get("a.com/"), "shop"}, {"an XBackend in TLS", get("a.com/cart"), "cart"}})
	if a := w.ok(t, get("a.com/cart")); !strings.HasPrefix(a.header.Get("Set-Cookie"), "cart=") {
		t.Errorf("the cookie is %q", a.header.Get("Set-Cookie"))
	}
	for _, object := range []string{"BackendTLSPolicy default/shop", "XBackend default/cart"} {
		if got := w.condition(t, object, "Accepted"); got.Status != "True" {
			t.Errorf("%s: %+v", object, got)
		}
	}
}

func TestTheGuideToConnectionsIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := Run(t, class+guide(t, "layer4.md")+certificate("www", "www.example.com")+certificate("db", "db.example.com"), pods("web", 1),
		connecting("db", 1, nil), connecting("own", 1, newAuthority().server("own")), connecting("queue", 1, nil), connecting("canary", 1, nil))
	if a := w.ask(t, request{host: "www.example.com", target: "/", tls: true}); a.outcome() != "web" || a.shown() != "www.example.com" {
		t.Errorf("HTTPS: %s with the certificate of %s", a.outcome(), a.shown())
	}
	for sni, want := range map[string]string{
		"db.example.com": "db-1 plain", "a.own.example.com": "own-1 TLS for a.own.example.com", "x.b.own.example.com": "own-1 TLS for x.b.own.example.com",
		"c.own.example.com": "closed",
	} {
		if got := w.greeted(t, connection{port: 443, sni: sni}); got != want {
			t.Errorf("%s: %s, want %s", sni, got, want)
		}
	}
	if seen := w.share(t, 200, connection{port: 5672}); seen["queue-1"]+seen["canary-1"] != 200 || seen["canary-1"] < 5 || seen["canary-1"] > 40 {
		t.Errorf("TCP: %v, want one tenth at the canary", seen)
	}
}
