package graph

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func gatewayWith(name, spec string) string {
	return fmt.Sprintf("\n---\nkind: Gateway\nmetadata: {name: %s, namespace: default}\nspec:\n  gatewayClassName: limpet\n  %s\n",
		name, strings.TrimLeft(spec, "\n "))
}

const httpListener = "listeners: [{name: http, port: 80, protocol: HTTP}]"

func TestGateways(t *testing.T) {
	t.Parallel()
	const (
		refused  = "ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid"
		manyAddr = "{value: 10.0.0.1}, {value: 10.0.0.2}, {value: 10.0.0.3}, {value: 10.0.0.4}, {value: 10.0.0.5}, {value: 10.0.0.6}"
	)
	for _, test := range []struct {
		name, spec, want string
		messages         []string
	}{
		{"a Gateway with one HTTP listener is accepted", httpListener, gatewayOK, nil},
		{"a Gateway without listeners is invalid", "listeners: []", "Accepted=False/Invalid " + refused, []string{"spec.listeners"}},
		{"a Gateway with 65 listeners is invalid", "listeners: [" + strings.Repeat("{name: x, port: 80, protocol: HTTP}, ", 65) + "]",
			"Accepted=False/Invalid " + refused, []string{"from 1 to 64"}},
		{"two listeners with one name are invalid",
			"listeners: [{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}]",
			"Accepted=False/Invalid " + refused, []string{`spec.listeners[1]: another listener is named "a"`}},
		{"parameters that do not exist are refused",
			httpListener + "\n  infrastructure: {parametersRef: {group: limpet.dev, kind: LimpetParameters, name: p}}",
			"Accepted=False/InvalidParameters " + refused, []string{"LimpetParameters default/p, which does not exist"}},
		{"labels and annotations of infrastructure need nothing",
			httpListener + "\n  infrastructure: {labels: {a: b}, annotations: {a: b}}", gatewayOK, nil},
		{"an address that is not of type IPAddress is not supported",
			httpListener + "\n  addresses: [{type: Hostname, value: a.example.com}]",
			"Accepted=False/UnsupportedAddress " + refused, []string{`spec.addresses[0].type: "Hostname"`}},
		{"an address with a routability is not supported", httpListener + "\n  addresses: [{value: 10.0.0.1, routability: Cluster}]",
			"Accepted=False/UnsupportedAddress " + refused, []string{"routability"}},
		{"a value that is no IP address is invalid", httpListener + "\n  addresses: [{value: 10.0.0.300}]",
			"Accepted=False/Invalid " + refused, []string{`"10.0.0.300" is not an IP address`}},
		{"an address with a zone is invalid", httpListener + "\n  addresses: [{value: fe80::1%eth0}]",
			"Accepted=False/Invalid " + refused, nil},
		{"one address twice is invalid", httpListener + "\n  addresses: [{value: 10.0.0.1}, {value: 10.0.0.1}]",
			"Accepted=False/Invalid " + refused, []string{"twice"}},
		{"17 addresses are invalid", httpListener + "\n  addresses: [" + manyAddr + ", " + manyAddr + ", " + manyAddr + "]",
			"Accepted=False/Invalid " + refused, []string{"16"}},
		{"a default scope is reported as ignored", httpListener + "\n  defaultScope: All",
			gatewayOK + " limpet.dev/Ignored=True/NotBuilt", []string{"spec.defaultScope"}},
		{"a client certificate for backends that does not exist is not resolved, and hurts nothing else",
			httpListener + "\n  tls: {backend: {clientCertificateRef: {name: missing}}}",
			"Accepted=True/Accepted ResolvedRefs=False/InvalidClientCertificateRef", []string{"Secret default/missing does not exist"}},
		{"a client certificate for backends from another namespace needs a grant",
			httpListener + "\n  tls: {backend: {clientCertificateRef: {name: missing, namespace: other}}}",
			"Accepted=True/Accepted ResolvedRefs=False/RefNotPermitted", nil},
		{"two entries for one port of the frontend's TLS are invalid",
			httpListener + "\n  tls: {frontend: {default: {}, perPort: [{port: 443, tls: {}}, {port: 443, tls: {}}]}}",
			"Accepted=False/Invalid " + refused, []string{"spec.tls.frontend.perPort[1]"}},
		{"with some listeners not valid it is accepted for the others",
			"listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: UDP}]",
			"Accepted=True/ListenersNotValid ResolvedRefs=True/ResolvedRefs", []string{`"b" (UnsupportedProtocol); accepted: "a"`}},
		{"with no listener valid it is not accepted", "listeners: [{name: b, port: 81, protocol: UDP}]",
			"Accepted=False/ListenersNotValid " + refused, nil},
		{"a listener whose references are not resolved shows in the Gateway's",
			"listeners: [{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}]",
			"Accepted=True/Accepted ResolvedRefs=False/ListenersNotResolved", []string{`"a"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			node := build(t, class+gatewayWith("gw", test.spec)).gateway(t, "default/gw")
			expect(t, node.Conditions, test.want, test.messages...)
			if valid := !strings.Contains(test.want, "Programmed=False"); node.Valid != valid {
				t.Errorf("valid: %v", node.Valid)
			}
			if !node.Valid {
				for _, listener := range node.Listeners {
					if listener.Valid || !strings.Contains(show(listener.Conditions), "Programmed=False") {
						t.Errorf("listener %s: %s", listener.Name, show(listener.Conditions))
					}
				}
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, addresses, want string }{
		{"none is the default", "[]", "127.0.0.1"},
		{"those given are taken as they are", "[{type: IPAddress, value: 10.0.0.1}, {value: '2001:db8::1'}]", "10.0.0.1 2001:db8::1"},
		{"one without a value is the default", "[{type: IPAddress}, {value: 10.0.0.1}]", "127.0.0.1 10.0.0.1"},
		{"two spellings are one address", "[{value: '::1'}, {value: '0:0:0:0:0:0:0:1'}, {value: '::ffff:10.0.0.1'}, {value: 10.0.0.1}]",
			"::1 10.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := build(t, class+gatewayWith("gw", httpListener+"\n  addresses: "+test.addresses)).Gateways[0]
			if got := names(node.Addresses, netip.Addr.String); got != test.want || !node.Valid {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheOlderGatewayHasTheAddress(t *testing.T) {
	t.Parallel()
	const lost = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=False/AddressNotUsable"
	aged := func(name, created, spec string) string {
		text := gatewayWith(name, spec)
		return strings.Replace(text, "namespace: default", "namespace: default, creationTimestamp: '"+created+"'", 1)
	}
	on := func(address string) string { return httpListener + "\n  addresses: [{value: '" + address + "'}]" }
	for _, test := range []struct{ name, documents, served, loser string }{
		{"without creation times the first by name has it", gatewayWith("b", httpListener) + gatewayWith("a", httpListener), "a", "b"},
		{"the one created first has it", aged("a", "2026-02-02T00:00:00Z", httpListener) + aged("b", "2026-01-01T00:00:00Z", httpListener),
			"b", "a"},
		{"another address does not matter", gatewayWith("a", httpListener) + gatewayWith("b", on("10.0.0.1")), "b", ""},
		{"another port does not matter", gatewayWith("a", httpListener) +
			gatewayWith("b", "listeners: [{name: http, port: 81, protocol: HTTP}]"), "b", ""},
		{"0.0.0.0 overlaps every IPv4 address", gatewayWith("a", on("10.0.0.1")) + gatewayWith("b", on("0.0.0.0")), "a", "b"},
		{"0.0.0.0 overlaps no IPv6 address", gatewayWith("a", on("2001:db8::1")) + gatewayWith("b", on("0.0.0.0")), "b", ""},
		{":: overlaps every address", gatewayWith("a", on("::")) + gatewayWith("b", on("10.0.0.1")), "a", "b"},
		{"a Gateway that is refused holds no address", gatewayWith("a", httpListener+"\n  addresses: [{value: 127.0.0.1}, {type: Hostname}]") +
			gatewayWith("b", httpListener), "b", ""},
		{"one that lost its address holds no other", gatewayWith("a", on("10.0.0.1")) +
			gatewayWith("b", httpListener+"\n  addresses: [{value: 10.0.0.1}, {value: 10.0.0.2}]") + gatewayWith("c", on("10.0.0.2")), "a c", "b"},
		{"a listener without certificate keeps its address", gatewayWith("a",
			"listeners: [{name: s, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}, {name: h, port: 80, protocol: HTTP}]") +
			gatewayWith("b", "listeners: [{name: http, port: 443, protocol: HTTP}]"), "a", "b"},
		{"a listener that is not accepted holds no address", gatewayWith("a",
			"listeners: [{name: s, port: 443, protocol: UDP}, {name: h, port: 80, protocol: HTTP}]") +
			gatewayWith("b", "listeners: [{name: http, port: 443, protocol: HTTP}]"), "b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, class+test.documents)
			served := strings.Fields(test.served)
			for _, name := range served {
				if !g.gateway(t, "default/"+name).Valid {
					t.Errorf("%s is not valid", name)
				}
			}
			if test.loser == "" {
				return
			}
			loser := g.gateway(t, "default/"+test.loser)
			expect(t, loser.Conditions, lost, "in use by the older Gateway default/"+served[0])
			expect(t, loser.Listeners[0].Conditions, listenerOK+" Programmed=False/Pending", "default/"+served[0])
			if loser.Valid || loser.Listeners[0].Valid {
				t.Error("the loser is served")
			}
		})
	}
}

func TestGatewaysAreListedOldestFirst(t *testing.T) {
	documents := class
	for name, created := range map[string]string{"a": "2026-03-01T00:00:00Z", "b": "2026-01-01T00:00:00Z", "c": "2026-01-01T00:00:00Z"} {
		documents += strings.Replace(gatewayWith(name, httpListener), "namespace: default",
			"namespace: default, creationTimestamp: '"+created+"'", 1)
	}
	documents += gatewayWith("z", httpListener)
	if got := names(build(t, documents).Gateways, func(g *Gateway) string { return g.Source.Name }); got != "z b c a" {
		t.Error(got)
	}
}
