package graph

import "testing"

func TestPortsOfSlicesThatCannotBeUsedAreReported(t *testing.T) {
	t.Parallel()
	const service = "---\nkind: Service\nmetadata: {name: s, namespace: default}\nspec: {ports: [{name: web, port: 80}, {name: dns, port: 53, protocol: UDP}]}\n"
	for _, test := range []struct{ name, ports, want string }{
		{"a number that is none", "{name: web, port: 70000}", "EndpointSlice e: 70000 is no port"},
		{"UDP where the Service has TCP", "{name: web, port: 80, protocol: UDP}", `EndpointSlice e: port "web" is UDP, but the Service's is TCP`},
		{"no number", "{name: web}", `EndpointSlice e: port "web" has no number`},
		{"UDP where the Service has UDP", "{name: web, port: 80}, {name: dns, port: 53, protocol: UDP}", ""},
		{"a port that the Service does not have", "{name: web, port: 80}, {name: other, port: 70000}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, gateway+service+sliceOf("e", "IPv4", test.ports, "{addresses: [10.0.0.1]}")+routeTo("backendRefs: [{name: s, port: 80}]"))
			if test.want == "" {
				expect(t, g.Routes[0].Parents[0].Conditions, routeOK)
				return
			}
			expect(t, g.Routes[0].Parents[0].Conditions, routeOK+" limpet.dev/Ignored=True/NotBuilt", test.want)
		})
	}
}
