package translate

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

func clientCertificate(secret, chain string) *graph.Certificate {
	return &graph.Certificate{Secret: types.NamespacedName{Namespace: "default", Name: secret}, Chain: chain, Key: "key of " + secret}
}

// withBackendTLS makes a Service one that is spoken to in TLS.
func (w *world) withBackendTLS(name string, tls *graph.BackendTLS) {
	made := *w.Backend(service(name))
	made.TLS = tls
	w.made[service(name)] = &made
	for i, route := range w.routes {
		edited := *route
		edited.TLSBackends = []graph.BackendKey{service(name)}
		w.routes[i] = &edited
	}
}

func backendNames(config model.Config) string {
	var all string
	for _, entry := range config.Backends.Sorted() {
		all += entry.Key + "\n"
	}
	return all
}

func TestABackendSaysWhomItTrustsAndWhatItShows(t *testing.T) {
	t.Parallel()
	ca := &graph.Authority{Source: "ConfigMap default/ca", PEM: "pem"}
	w := oneGateway(on(""))
	w.gateways[0].ClientCertificate = clientCertificate("client", "one")
	w.route("r", "a.com", to("a"), to("b", prefix("/b")))
	w.withBackendTLS("a", &graph.BackendTLS{Hostname: "a.internal", Authority: ca,
		SubjectAltNames: []graph.SubjectAltName{{DNS: "*.a.internal"}, {URI: "spiffe://a/b"}}})
	translator := testTranslator()
	config := w.config(translator)
	if got, want := backendNames(config), "Service/default/a/80 for Gateway default/gw\nService/default/b/80\n"; got != want {
		t.Fatalf("got %swant %s", got, want)
	}
	backend, _ := config.Backends.Get("Service/default/a/80 for Gateway default/gw")
	client := types.NamespacedName{Namespace: "default", Name: "client"}
	want := &model.BackendTLS{ServerName: "a.internal", Authority: authorityID(ca), Certificate: certificateID(client),
		SubjectAltNames: []model.SubjectAltName{{DNS: "*.a.internal"}, {URI: "spiffe://a/b"}}}
	if diff := difference(want, backend.TLS); diff != "" {
		t.Error(diff)
	}
	if held, found := config.Authorities.Get(authorityID(ca)); !found || held.PEM != "pem" || held.Owner != "ConfigMap default/ca" {
		t.Errorf("%+v", held)
	}
	if held, found := config.Certificates.Get(certificateID(client)); !found || held.PEM != "one\nkey of client\n" {
		t.Errorf("%+v", held)
	}

	t.Run("a new bundle changes the bundle alone", func(t *testing.T) {
		w.withBackendTLS("a", &graph.BackendTLS{Hostname: "a.internal", Authority: &graph.Authority{Source: ca.Source, PEM: "new"},
			SubjectAltNames: []graph.SubjectAltName{{DNS: "*.a.internal"}, {URI: "spiffe://a/b"}}})
		next := w.config(translator)
		if held, _ := next.Authorities.Get(authorityID(ca)); held.PEM != "new" || !next.Backends.Same(config.Backends) {
			t.Errorf("%+v", held)
		}
	})
	t.Run("a new client certificate changes the certificate alone", func(t *testing.T) {
		renewed := *w.gateways[0]
		renewed.ClientCertificate = clientCertificate("client", "two")
		w.gateways = []*graph.Gateway{&renewed}
		next := w.config(translator)
		if held, _ := next.Certificates.Get(certificateID(client)); held.PEM != "two\nkey of client\n" || !next.Backends.Same(config.Backends) {
			t.Errorf("%+v", held)
		}
	})
	t.Run("nothing is held of what is gone", func(t *testing.T) {
		w.routes = nil
		next := w.config(translator)
		if next.Authorities.Len()+next.Certificates.Len()+next.Backends.Len() != 0 {
			t.Errorf("%v %v %v", next.Authorities.Sorted(), next.Certificates.Sorted(), next.Backends.Sorted())
		}
	})
}

// twoGateways are default/one, which shows backends a certificate, and default/two, which shows none.
func twoGateways() *world {
	w := oneGateway(on(""))
	one, two := gateway("one", onPort(81, "")), gateway("two", onPort(82, ""))
	one.ClientCertificate = clientCertificate("client", "chain")
	w.gateways = []*graph.Gateway{one, two}
	return w
}

func at(gateway string, port uint16, path string) func(model.Config) string {
	return func(config model.Config) string {
		host, _ := config.Hosts.Get(model.HostKey(portOf(gateway, port), "a.com"))
		found, _ := config.Paths.Get(model.PrefixKey(host.VirtualHost, path))
		rule, _ := config.Rules.Get(found.Candidates[0].Target.Rule)
		return rule.Split[0].Backend
	}
}

func TestEachGatewayShowsBackendsItsOwnCertificate(t *testing.T) {
	t.Parallel()
	w := twoGateways()
	w.route("r", "a.com", to("a"), sticky(to("a b", prefix("/s")), cookie("c")), to("b", prefix("/b")))
	w.withBackendTLS("a", &graph.BackendTLS{Hostname: "a"})
	translator := testTranslator()
	config := w.config(translator)
	for _, test := range []struct {
		ask  func(model.Config) string
		want string
	}{
		{at("one", 81, ""), "Service/default/a/80 for Gateway default/one"},
		{at("one", 81, "/s"), "Service/default/a/80 for Gateway default/one"},
		{at("one", 81, "/b"), "Service/default/b/80"},
		{at("two", 82, ""), "Service/default/a/80"},
		{at("two", 82, "/s"), "Service/default/a/80"},
		{at("two", 82, "/b"), "Service/default/b/80"},
	} {
		if got := test.ask(config); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	scopes := map[string]bool{}
	for _, entry := range config.Rules.Sorted() {
		if session := entry.Value.Split[0].Session; session != nil {
			scopes[session.Scope] = true
		}
	}
	if config.Rules.Len() != 6 || len(scopes) != 1 {
		t.Errorf("%d rules with %d scopes: a session must hold at both Gateways", config.Rules.Len(), len(scopes))
	}

	t.Run("without the certificate nothing differs", func(t *testing.T) {
		bare := *w.gateways[0]
		bare.ClientCertificate = nil
		w.gateways = []*graph.Gateway{&bare, w.gateways[1]}
		next := w.config(translator)
		if got := backendNames(next); got != "Service/default/a/80\nService/default/b/80\n" || next.Certificates.Len() != 0 {
			t.Error(got)
		}
	})
}

func TestABackendInPlainTextIsOneForAllGateways(t *testing.T) {
	t.Parallel()
	w := twoGateways()
	w.route("r", "a.com", to("a"))
	config := w.config(testTranslator())
	if got := backendNames(config); got != "Service/default/a/80\n" || config.Certificates.Len() != 0 {
		t.Error(got)
	}
}

func TestABackendsOwnCertificateGoesBeforeTheGateways(t *testing.T) {
	t.Parallel()
	w := twoGateways()
	w.route("r", "a.com", to("a"))
	own := clientCertificate("own", "chain")
	w.withBackendTLS("a", &graph.BackendTLS{Hostname: "a", Certificate: own})
	for _, entry := range w.config(testTranslator()).Backends.Sorted() {
		if entry.Value.TLS.Certificate != certificateID(own.Secret) {
			t.Errorf("%s shows %s", entry.Key, entry.Value.TLS.Certificate)
		}
	}
}
