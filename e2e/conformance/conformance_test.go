//go:build linux

// Package conformance runs the tests of Gateway API's own conformance suite, as they are, on `limpet serve`: real HAProxy, the
// suite's manifests, requests and expectations, and its back end echo-basic. In the place of a cluster are the packages
// apiserver, node and serve.
//
// Every test of the suite is run and must pass, but for those on the lists in lists_test.go, each with its reason. What is pending
// is run too, and must fail: a test that begins to pass is to be taken off that list.
package conformance

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// all are the tests of the suite and ours.
func all() []suite.ConformanceTest { return slices.Concat(upstream(), sessionTests()) }

// TestConformance runs the suite in a process and a network of its own, and says what came of each test.
func TestConformance(t *testing.T) {
	if todo := inside(t); todo != nil {
		runSuite(t, todo)
		return
	}
	programs := build(t)
	work := filepath.Join(filepath.Dir(programs.Limpet), "run")
	passed := map[string]bool{}
	expected := asked(t, func(name string) bool { return !isPending(name) })
	check(t, assignment{Programs: programs, Dir: work, Tests: expected}, func(t *testing.T, name string, o *outcome) {
		if passed[name] = o.verdict == "PASS"; !passed[name] {
			end := o.output[max(0, len(o.output)-60):]
			t.Errorf("%s; the end of what it said (all is in %s):\n%s", o.verdict, work, strings.Join(end, "\n"))
		}
	})
	waiting := asked(t, isPending)
	check(t, assignment{Programs: programs, Dir: work + "-pending", Tests: waiting, Impatient: true}, func(t *testing.T, name string, o *outcome) {
		if passed[name] = o.verdict == "PASS"; passed[name] {
			t.Error("it passes: take it off the list of those that are pending")
		}
	})
	if len(passed) == len(inScope()) {
		checkPage(t, passed)
	}
}

// check runs tests inside and looks at what came of each.
func check(t *testing.T, todo assignment, look func(t *testing.T, name string, o *outcome)) {
	t.Helper()
	if len(todo.Tests) == 0 {
		return
	}
	outcomes := runInside(t, todo)
	for _, name := range todo.Tests {
		t.Run(name, func(t *testing.T) {
			o := outcomes[name]
			if o == nil || o.verdict == "" {
				t.Fatalf("it did not run to its end; see %s. The setup said:\n%s", todo.Dir, setup(outcomes))
			}
			look(t, name, o)
		})
	}
}

func setup(outcomes map[string]*outcome) string {
	if o := outcomes[""]; o != nil {
		return strings.Join(o.output, "\n")
	}
	return "nothing"
}

// runSuite runs tests of the suite on a cluster made for them.
func runSuite(t *testing.T, todo *assignment) {
	log.SetLogger(zap.New(zap.UseDevMode(true)))
	c := startCluster(t, todo)
	chosen := slices.DeleteFunc(slices.Clone(all()), func(test suite.ConformanceTest) bool { return !slices.Contains(todo.Tests, test.ShortName) })
	s, err := suite.NewConformanceTestSuite(suite.ConformanceOptions{
		Client: c.client, ClientOptions: c.options, Clientset: c.set, RestConfig: c.config,
		ManifestFS: []fs.FS{&conformance.Manifests, sessionManifests},
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: className, CleanupTestResources: true,
			SupportedFeatures: gatewayFeatures(), TimeoutConfig: timeouts(todo.Impatient),
			UsableNetworkAddresses:   []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: "127.3.0.1"}},
			UnusableNetworkAddresses: []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: "192.0.2.1"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Setup(t, chosen)
	if err := s.Run(t, chosen); err != nil {
		t.Error(err)
	}
}

// gatewayFeatures are all features but those of meshes: which tests are run is decided by the lists.
func gatewayFeatures() []features.FeatureName {
	var names []features.FeatureName
	for name := range features.SetsToNamesSet(features.AllFeatures) {
		if !strings.HasPrefix(string(name), "Mesh") {
			names = append(names, name)
		}
	}
	return names
}

// timeouts are shorter than the suite's: here nothing has to be pulled or scheduled.
func timeouts(impatient bool) config.TimeoutConfig {
	all, status, traffic := config.DefaultTimeoutConfig(), 20*time.Second, 15*time.Second
	if impatient {
		status, traffic = 3*time.Second, 10*time.Second
	}
	for _, limit := range []*time.Duration{
		&all.GatewayMustHaveAddress, &all.GatewayMustHaveCondition, &all.GatewayStatusMustHaveListeners, &all.GatewayListenersMustHaveConditions,
		&all.ListenerSetMustHaveCondition, &all.ListenerSetListenersMustHaveConditions, &all.HTTPRouteMustNotHaveParents,
		&all.HTTPRouteMustHaveCondition, &all.RouteMustHaveParents, &all.DefaultTestTimeout,
	} {
		*limit = status
	}
	if impatient {
		// Some tests wait for their namespace within this time, and with it for the Gateways of all tests beside them.
		all.LatestObservedGenerationSet = status
	}
	all.NamespacesMustBeReady, all.GWCMustBeAccepted = 30*time.Second, 30*time.Second
	all.MaxTimeToConsistency = traffic
	return all
}
