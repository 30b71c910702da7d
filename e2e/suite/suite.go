// Package suite tests Limpet as it is installed by its chart on a real cluster: what a client notices of upgrades, crashes,
// evictions and rollouts.
//
// A cluster with a release of the chart goes in by the environment (see Setting), what goes wrong comes out as failures of
// tests. It runs where the addresses of Services can be reached. It never looks inside Limpet.
package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// Setting is what the tests need to know of the cluster and the release.
type Setting struct {
	// Namespace, Release and Class are those of the release.
	Namespace, Release, Class string
	// Helm and Kubectl are programs; Chart is the folder of the chart, and Values the flags that it was installed with.
	Helm, Kubectl, Chart string
	Values               []string
	// Echo is the image of the backends.
	Echo string
	// Processes says that the node's processes can be seen and signalled from here.
	Processes bool

	client.WithWatch
}

// setting reads the environment; a test that finds none of it fails.
func setting(t *testing.T) *Setting {
	t.Helper()
	s := &Setting{
		Namespace: or("LIMPET_NAMESPACE", "limpet-system"), Release: or("LIMPET_RELEASE", "limpet"), Class: or("LIMPET_CLASS", "limpet"),
		Helm: or("HELM", "helm"), Kubectl: or("KUBECTL", "kubectl"), Chart: or("CHART", "../../charts/limpet"),
		Values:    strings.Fields(os.Getenv("HELM_VALUES")),
		Echo:      or("ECHO_IMAGE", "registry.k8s.io/gateway-api/conformance/echo-basic:v0.1.0"),
		Processes: os.Getenv("NODE_PROCESSES") != "",
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatalf("no cluster: %v (set KUBECONFIG, or run make e2e)", err)
	}
	config.QPS, config.Burst = 100, 200
	log.SetLogger(logr.Discard())
	if s.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func or(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme,
		eventsv1.AddToScheme, gatewayv1.Install, gatewayxv1alpha1.Install,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs a program, whose output is in the failure.
func (s *Setting) run(ctx context.Context, program string, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

// kubectl runs it in the namespace of the release.
func (s *Setting) kubectl(ctx context.Context, arguments ...string) (string, error) {
	return s.run(ctx, s.Kubectl, append([]string{"--namespace", s.Namespace}, arguments...)...)
}

// eventually waits until check says nothing more.
func eventually(t *testing.T, patience time.Duration, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %v", patience, err)
}
