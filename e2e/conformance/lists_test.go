//go:build linux

package conformance

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// Why a test of the suite is not run here.
const (
	udpRoutes = "HAProxy does not forward UDP"
	foreign   = "`serve` is alone with the objects: preserving what others wrote to a status is up to whom writes to an API server"
	meshes    = "Limpet is no mesh"
	services  = "`serve` makes no Service for a Gateway"
)

// outOfScope are the tests that are not run, and why.
var outOfScope = map[string]string{
	"BackendTLSPolicyPreserveForeignStatus": foreign,
	"GatewayPreserveForeignConditions":      foreign,
	"HTTPRoutePreserveForeignStatus":        foreign,
	"GatewayInfrastructureMetadata":         services,
}

// pending are the tests that are run and known to fail, and what is missing.
var pending = map[string]string{}

func init() {
	for _, test := range upstream() {
		for _, feature := range test.Features {
			switch feature {
			case features.SupportMesh:
				outOfScope[test.ShortName] = meshes
			case features.SupportUDPRoute:
				outOfScope[test.ShortName] = udpRoutes
			}
		}
	}
}

// upstream are all tests of the suite.
func upstream() []suite.ConformanceTest { return tests.ConformanceTests }

// inScope are the names of all tests that are run, in the suite's order.
func inScope() []string {
	var names []string
	for _, test := range all() {
		if _, left := outOfScope[test.ShortName]; !left {
			names = append(names, test.ShortName)
		}
	}
	return names
}

// asked are those of them that -run asks for, and that are of a kind.
func asked(t *testing.T, kind func(name string) bool) []string {
	t.Helper()
	return slices.DeleteFunc(inScope(), func(name string) bool { return !kind(name) || !matches(t, name) })
}

func isPending(name string) bool {
	_, is := pending[name]
	return is
}

// TestLists fails when a list names a test that is not in the suite any more.
func TestLists(t *testing.T) {
	known := map[string]bool{}
	for _, test := range all() {
		known[test.ShortName] = true
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(outOfScope)), slices.Collect(maps.Keys(pending))) {
		if !known[name] {
			t.Errorf("there is no test %s: take it off the list", name)
		}
		if _, left := outOfScope[name]; left && isPending(name) {
			t.Errorf("%s is on two lists", name)
		}
	}
}
