package translate

import (
	"net/netip"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

func TestAPortIsMadeForEachAddressAndListenerPortOfAValidGateway(t *testing.T) {
	t.Parallel()

	w := oneGateway(onPort(81, "x"), on("a.ex.com"), on("b.ex.com"), onPort(82, "y"))
	w.gateways[0].Listeners[3].Valid = false
	w.gateways[0].Addresses = append(w.gateways[0].Addresses, netip.MustParseAddr("::1"))
	w.gateways = append(w.gateways, gateway("invalid", onPort(99, "")))
	w.gateways[1].Valid = false
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	frame := New(Options{TrustedProxies: trusted}).translate(w.gateways, nil, w, nil).Frame

	four, six, key := w.gateways[0].Addresses[0], w.gateways[0].Addresses[1], w.gateways[0].Key()
	port := func(address netip.Addr, number uint16) model.Port {
		return model.Port{
			ID: portID(key, address.String(), number), Owner: portOwner(key, address, 8000+number),
			Address: address, Bind: 8000 + number, Public: number, TrustedProxies: trusted,
		}
	}
	want := model.Frame{Ports: []model.Port{port(four, 80), port(six, 80), port(four, 81), port(six, 81)}}
	if diff := difference(want, frame); diff != "" {
		t.Error(diff)
	}
}

func TestTLSListenersAreServersOfTheirPort(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(onPort(443, "a.ex.com"), "one", "two"), withTLS(onPort(443, ""), "one"))
	config := w.config(testTranslator())
	frame := config.Frame
	address := w.gateways[0].Addresses[0].String()
	ids := certificateIDs(w.gateways[0].Listeners[0])
	want := []model.TLSServer{
		{ID: tlsServerID(w.gateways[0].Listeners[0], address), Mode: model.HTTPS, Owner: "Listener default/gw/443-a.ex.com", Hostname: "a.ex.com", Certificates: ids},
		{ID: tlsServerID(w.gateways[0].Listeners[1], address), Mode: model.HTTPS, Owner: "Listener default/gw/443-", Certificates: ids[:1]},
	}
	if len(frame.Ports) != 1 || !frame.Ports[0].TLS() {
		t.Fatalf("ports are %+v, want one with TLS", frame.Ports)
	}
	if diff := difference(want, frame.Ports[0].Servers); diff != "" {
		t.Error(diff)
	}
	secret := w.gateways[0].Listeners[0].Certificates[1].Secret
	two := &model.Certificate{ID: ids[1], Owner: secretOwner(secret), PEM: "chain of two\nkey of two\n"}
	if got, _ := config.Certificates.Get(ids[1]); config.Certificates.Len() != 2 || difference(two, got) != "" {
		t.Errorf("certificates are %+v, want two, the second %+v", config.Certificates.Sorted(), two)
	}
}

func TestEachAddressOfAGatewayHasTLSServersOfItsOwn(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(onPort(443, ""), "one"))
	w.gateways[0].Addresses = append(w.gateways[0].Addresses, netip.MustParseAddr("::1"))
	ports := w.config(testTranslator()).Frame.Ports
	if len(ports) != 2 || ports[0].Servers[0].ID == ports[1].Servers[0].ID {
		t.Errorf("ports: %+v", ports)
	}
}

func TestAPlainListenersRoutesAreNeverServedOnATLSPort(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(on("a.ex.com"), "one"), on("b.ex.com"))
	w.route("b", "b.ex.com", to("b"))
	config := w.config(testTranslator())
	checkExchanges(t, config, []exchange{get("b.ex.com/", "404")})
	if len(config.Frame.Ports[0].Servers) != 1 {
		t.Errorf("servers are %+v, want one", config.Frame.Ports[0].Servers)
	}
}

func TestAFrameThatDidNotChangeIsTheSame(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(on("a.ex.com"), "one"))
	translator := testTranslator()
	before := w.config(translator).Frame
	w.route("a", "", to("a"))
	checkSameFrame(t, before, w.config(translator).Frame)
	w.gateways = []*graph.Gateway{gateway("gw", withTLS(on("a.ex.com"), "one"))}
	checkSameFrame(t, before, w.config(translator).Frame)
	w.gateways = []*graph.Gateway{gateway("gw", withTLS(on("a.ex.com"), "two"))}
	if after := w.config(translator).Frame; &after.Ports[0] == &before.Ports[0] || before.Ports[0].Servers[0].Certificates[0] == after.Ports[0].Servers[0].Certificates[0] {
		t.Error("a changed Frame is not a new one")
	}
}

func checkSameFrame(t *testing.T, before, after model.Frame) {
	t.Helper()
	if &before.Ports[0] != &after.Ports[0] {
		t.Error("the ports are another slice although nothing changed")
	}
}

func TestAPortSaysWhichCertificatesItsClientsMustShow(t *testing.T) {
	t.Parallel()

	w := oneGateway(withTLS(onPort(443, "a.ex.com"), "one"), withTLS(onPort(443, ""), "one"), withTLS(onPort(444, ""), "one"), on(""))
	ca := &graph.Authority{Source: "ConfigMap default/ca", PEM: "certificate\n"}
	for _, l := range w.gateways[0].Listeners[:2] {
		l.Clients = &graph.ClientValidation{Authority: ca, InsecureFallback: true}
	}
	config := w.config(testTranslator())
	var demands []*model.ClientValidation
	for _, port := range config.Frame.Ports {
		demands = append(demands, port.Clients)
	}
	id := authorityID(ca)
	if diff := difference([]*model.ClientValidation{nil, {Authority: id, InsecureFallback: true}, nil}, demands); diff != "" {
		t.Error(diff)
	}
	want := &model.Authority{ID: id, Owner: "ConfigMap default/ca", PEM: "certificate\n"}
	if got, _ := config.Authorities.Get(id); config.Authorities.Len() != 1 || difference(want, got) != "" {
		t.Errorf("authorities are %+v, want %+v", config.Authorities.Sorted(), want)
	}
}
