//go:build linux

package conformance

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/e2e/apiserver"
	"github.com/limpet-gateway/limpet/e2e/node"
	"github.com/limpet-gateway/limpet/e2e/serve"
)

// controllerName and className are those of the GatewayClass that Limpet serves.
const (
	controllerName = "limpet.dev/gateway-controller"
	className      = "limpet"
)

// The loopback addresses of pods and of Gateways.
var (
	podAddresses     = netip.MustParsePrefix("127.2.0.0/16")
	gatewayAddresses = netip.MustParsePrefix("127.1.0.0/16")
)

// cluster is what the suite takes for a cluster.
type cluster struct {
	server  *apiserver.Server
	config  *rest.Config
	options client.Options
	client  client.Client
	set     clientset.Interface
}

// startCluster starts all that stands for a cluster, and Limpet.
func startCluster(t *testing.T, todo *assignment) *cluster {
	t.Helper()
	log := logger(t, filepath.Join(todo.Dir, "cluster.log"))
	server, err := apiserver.New(definitions(t, todo.Programs.Definitions))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Create(gatewayClass()); err != nil {
		t.Fatal(err)
	}
	pods := node.New(node.Options{Server: server, Program: todo.Programs.Echo, Dir: filepath.Join(todo.Dir, "volumes"), Pods: podAddresses, Log: log})
	limpet, err := serve.Start(serve.Options{
		Server: server, Limpet: todo.Programs.Limpet, HAProxy: todo.Programs.HAProxy, Dir: filepath.Join(todo.Dir, "limpet"),
		Gateways: gatewayAddresses, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { pods.Run(ctx) })
	running.Go(func() {
		if err := limpet.Run(ctx); err != nil {
			t.Errorf("Limpet: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		limpet.Stop()
	})
	return connect(t, server)
}

// connect makes clients of a Server.
func connect(t *testing.T, server *apiserver.Server) *cluster {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = front.Serve(listener) }()
	t.Cleanup(func() { _ = front.Close() })
	c := &cluster{server: server, config: &rest.Config{
		Host: "http://" + listener.Addr().String(), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}}
	for _, add := range []func(*runtime.Scheme) error{
		gatewayv1.Install, gatewayv1beta1.Install, gatewayxv1alpha1.Install, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	c.options = client.Options{Scheme: scheme.Scheme, Mapper: server.Mapper()}
	if c.client, err = client.New(c.config, c.options); err != nil {
		t.Fatal(err)
	}
	if c.set, err = clientset.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	return c
}

// definitions are the CustomResourceDefinitions in a folder, where other kinds of objects are too.
func definitions(t *testing.T, dir string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\nkind: CustomResourceDefinition\n")) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no CustomResourceDefinitions that can be read", dir)
	}
	return all
}

func gatewayClass() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(), "kind": "GatewayClass",
		"metadata": map[string]any{"name": className},
		"spec":     map[string]any{"controllerName": controllerName},
	}}
}

func logger(t *testing.T, file string) *slog.Logger {
	t.Helper()
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
