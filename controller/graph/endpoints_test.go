package graph

import (
	"fmt"
	"strings"
	"testing"
)

// sliceOf is an EndpointSlice of the Service s, whose endpoints are flow mappings.
func sliceOf(name, family, ports string, endpoints ...string) string {
	return fmt.Sprintf("---\nkind: EndpointSlice\nmetadata: {name: %s, namespace: default, labels: {kubernetes.io/service-name: s}}\n"+
		"addressType: %s\nports: [%s]\nendpoints: [%s]\n", name, family, ports, strings.Join(endpoints, ", "))
}

func showEndpoints(backend *Backend) string {
	if backend == nil {
		return "none"
	}
	return names(backend.Endpoints, func(e Endpoint) string {
		text := e.Address.String()
		if e.PodUID != "" || e.Pod.Name != "" {
			text = strings.TrimPrefix(fmt.Sprintf("%s/%s=", e.PodUID, e.Pod.Name), "/") + text
		}
		if e.Draining {
			text += "(draining)"
		}
		return text
	})
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	const (
		ready       = "conditions: {ready: true, serving: true, terminating: false}"
		notReady    = "conditions: {ready: false, serving: false}"
		failing     = "conditions: {ready: false, serving: true}"
		terminating = "conditions: {ready: false, serving: true, terminating: true}"
		gone        = "conditions: {ready: false, serving: false, terminating: true}"
		unready     = "conditions: {ready: true, serving: true, terminating: true}"
	)
	at := func(address, conditions string) string {
		return "{addresses: ['" + address + "'], " + conditions + "}"
	}
	pod := func(uid, address, conditions string) string {
		return "{addresses: ['" + address + "'], targetRef: {kind: Pod, name: p" + uid + ", uid: " + uid + "}, " + conditions + "}"
	}
	podByName := func(name, address string) string {
		return "{addresses: ['" + address + "'], targetRef: {kind: Pod, name: " + name + "}}"
	}
	for _, test := range []struct{ name, ports, slices, want string }{
		{"the slice's port counts, not the Service's", "{port: 80, targetPort: 1}", sliceOf("a", "IPv4", "{port: 8080}", at("10.0.0.1", ready)), "10.0.0.1:8080"},
		{"ports are found by name", "{name: x, port: 80}",
			sliceOf("a", "IPv4", "{name: y, port: 1}, {name: x, port: 2}", at("10.0.0.1", ready)), "10.0.0.1:2"},
		{"a port of another name is none", "{name: x, port: 80}", sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", ready)), ""},
		{"a UDP port of that name is none", "{port: 80}", sliceOf("a", "IPv4", "{port: 1, protocol: UDP}", at("10.0.0.1", ready)), ""},
		{"a port without number is none", "{port: 80}", sliceOf("a", "IPv4", "{}", at("10.0.0.1", ready)), ""},
		{"slices may differ in the target port", "{name: x, port: 80, targetPort: web}",
			sliceOf("a", "IPv4", "{name: x, port: 1}", at("10.0.0.1", ready)) + sliceOf("b", "IPv4", "{name: x, port: 2}", at("10.0.0.2", ready)),
			"10.0.0.1:1 10.0.0.2:2"},
		{"no slice is no endpoint", "{port: 80}", "", ""},
		{"without conditions an endpoint is ready", "{port: 80}", sliceOf("a", "IPv4", "{port: 1}", "{addresses: [10.0.0.1]}", at("10.0.0.2", failing)),
			"10.0.0.1:1 10.0.0.2:1(draining)"},
		{"not ready without more said still serves", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", ready), at("10.0.0.2", "conditions: {ready: false}")), "10.0.0.1:1 10.0.0.2:1(draining)"},
		{"what does not serve is left out", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", ready), at("10.0.0.2", notReady), at("10.0.0.3", gone)), "10.0.0.1:1"},
		{"what terminates but serves drains", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", ready), at("10.0.0.2", terminating)), "10.0.0.1:1 10.0.0.2:1(draining)"},
		{"what is published as ready though it terminates is ready", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", unready), at("10.0.0.2", failing)), "10.0.0.1:1 10.0.0.2:1(draining)"},
		{"when none is ready those that serve take new sessions", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", terminating), at("10.0.0.2", failing), at("10.0.0.3", gone)), "10.0.0.1:1 10.0.0.2:1"},
		{"a dual-stack pod is there once, by IPv4", "{port: 80}",
			sliceOf("a", "IPv6", "{port: 1}", pod("u", "2001:db8::1", ready)) + sliceOf("b", "IPv4", "{port: 1}", pod("u", "10.0.0.1", ready)), "u/pu=10.0.0.1:1"},
		{"the readiest entry of a pod wins", "{port: 80}",
			sliceOf("a", "IPv6", "{port: 1}", pod("u", "2001:db8::1", ready)) + sliceOf("b", "IPv4", "{port: 1}", pod("u", "10.0.0.1", failing)),
			"u/pu=[2001:db8::1]:1"},
		{"pods without uid are told apart by name", "{port: 80}",
			sliceOf("a", "IPv6", "{port: 1}", podByName("p", "2001:db8::1"), podByName("q", "2001:db8::2")) +
				sliceOf("b", "IPv4", "{port: 1}", podByName("p", "10.0.0.1")), "p=10.0.0.1:1 q=[2001:db8::2]:1"},
		{"one address twice is one endpoint", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.1", failing)) + sliceOf("b", "IPv4", "{port: 1}", at("10.0.0.1", ready)), "10.0.0.1:1"},
		{"an address that a new pod took over is the new pod's", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", pod("old", "10.0.0.1", terminating), pod("new", "10.0.0.1", ready)), "new/pnew=10.0.0.1:1"},
		{"only the first address counts", "{port: 80}", sliceOf("a", "IPv4", "{port: 1}", "{addresses: [10.0.0.1, 10.0.0.2]}"), "10.0.0.1:1"},
		{"an endpoint without address is none", "{port: 80}", sliceOf("a", "IPv4", "{port: 1}", "{addresses: []}"), ""},
		{"an address that is none is left out", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", at("10.0.0.300", ready), at("0.0.0.0", ready), at("224.0.0.1", ready), at("fe80::1%eth0", ready)), ""},
		{"DNS names are refused", "{port: 80}", sliceOf("a", "FQDN", "{port: 1}", at("10.0.0.1", ready)), ""},
		{"the order is that of identity", "{port: 80}",
			sliceOf("a", "IPv4", "{port: 1}", pod("c", "10.0.0.1", ready), pod("a", "10.0.0.3", ready), pod("b", "10.0.0.2", ready), at("10.0.0.4", ready)),
			"10.0.0.4:1 a/pa=10.0.0.3:1 b/pb=10.0.0.2:1 c/pc=10.0.0.1:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, "kind: Service\nmetadata: {name: s, namespace: default}\nspec: {ports: ["+test.ports+"]}\n"+test.slices)
			backend := g.Backend(BackendKey{"Service", "default", "s", 80})
			if got := showEndpoints(backend); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if backend.Key != (BackendKey{"Service", "default", "s", 80}) {
				t.Errorf("%+v", backend.Key)
			}
		})
	}
}

func TestWhatIsNoBackend(t *testing.T) {
	g := build(t, gateway+services+sliceOf("a", "IPv4", "{port: 1}", "{addresses: [10.0.0.1]}"))
	for _, key := range []BackendKey{
		{"Service", "default", "s", 80}, {"Service", "default", "gone", 80}, {"Service", "default", "shop", 99},
		{"Service", "default", "shop", 53}, {"Service", "default", "out", 80}, {"Service", "other", "shop", 80},
	} {
		if got := showEndpoints(g.Backend(key)); got != "none" {
			t.Errorf("%+v: %s", key, got)
		}
	}
}

func TestASliceBelongsToTheServiceOfItsOwnNamespace(t *testing.T) {
	g := build(t, "kind: Service\nmetadata: {name: s, namespace: other}\nspec: {ports: [{port: 80}]}\n"+
		sliceOf("a", "IPv4", "{port: 1}", "{addresses: [10.0.0.1]}"))
	if got := showEndpoints(g.Backend(BackendKey{"Service", "other", "s", 80})); got != "" {
		t.Error(got)
	}
}
