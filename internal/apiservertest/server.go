// Package apiservertest runs a Kubernetes API server for tests: etcd and kube-apiserver, without nodes or controllers.
//
// The programs come in, from the folder that LIMPET_CLUSTER_BIN names, else .cache/cluster/bin in the checkout; a running
// server with the definitions of the Gateway API goes out. It must never build or fetch anything, leave a process behind,
// or stand in for an answer of the real server.
package apiservertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// Server is a running API server.
type Server struct {
	// Config may do everything.
	Config *rest.Config
	// Client is one for Config, that knows the kinds of Kubernetes and of the Gateway API.
	Client client.Client

	environment  *envtest.Environment
	certificates string
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Tests are a package's tests, after which the Server that they shared ends. They are for goleak.VerifyTestMain.
type Tests struct{ M *testing.M }

// Run runs the tests and ends the Server.
func (t Tests) Run() int {
	// Before anything runs: neither has a lock.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code := t.M.Run()
	if shared.server != nil {
		if err := shared.server.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the API server did not end:", err)
			code = max(code, 1)
		}
	}
	return code
}

func (s *Server) stop() error {
	return errors.Join(s.environment.Stop(), os.RemoveAll(s.certificates))
}

// Shared is the Server of all tests of a package, for those that keep to namespaces of their own. The package's TestMain
// has to run Tests.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(true) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Start starts a Server for one test alone, with the definitions of the Gateway API or without any.
func Start(t testing.TB, definitions bool) *Server {
	t.Helper()
	s, err := start(definitions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(definitions bool) (*Server, error) {
	programs, err := programs()
	if err != nil {
		return nil, err
	}
	types := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{
		scheme.AddToScheme, gatewayv1.Install, gatewayv1beta1.Install, gatewayv1alpha2.Install, gatewayxv1alpha1.Install,
		apiextensionsv1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, err
		}
	}
	s := &Server{environment: &envtest.Environment{
		BinaryAssetsDirectory: programs, Scheme: types,
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}}
	// What a user's environment says of other clusters is of no concern here.
	useExisting := false
	s.environment.UseExistingCluster = &useExisting
	// A folder of its own has the same certificates after an outage.
	if s.certificates, err = os.MkdirTemp("", "apiserver-"); err != nil {
		return nil, err
	}
	s.environment.ControlPlane.GetAPIServer().CertDir = s.certificates
	if s.Config, err = s.environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start an API server: %w", err), s.stop())
	}
	s.Config.QPS = -1
	if s.Client, err = client.New(s.Config, client.Options{Scheme: types}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if definitions {
		if err := s.install(Definitions()); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// programs is the folder with etcd and kube-apiserver.
func programs() (string, error) {
	folder := os.Getenv("LIMPET_CLUSTER_BIN")
	if folder == "" {
		_, here, _, _ := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(here), "..", "..", ".cache", "cluster", "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("no API server to test with: %w: "+
				"run make apiserver, or name the folder with etcd and kube-apiserver in LIMPET_CLUSTER_BIN", err)
		}
	}
	return folder, nil
}

// Definitions is the folder with the definitions of the Gateway API's kinds, those of the experimental channel.
func Definitions() string {
	return filepath.Join(moduleFolder("sigs.k8s.io/gateway-api"), "config", "crd", "experimental")
}

func (s *Server) install(paths ...string) error {
	definitions := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: time.Minute}
	if _, err := envtest.InstallCRDs(s.Config, definitions); err != nil {
		return fmt.Errorf("install definitions: %w", err)
	}
	return nil
}

// Install installs the definitions in folders or files.
func (s *Server) Install(t testing.TB, paths ...string) {
	t.Helper()
	if err := s.install(paths...); err != nil {
		t.Fatal(err)
	}
}

// Uninstall removes definitions by their names, as "httproutes.gateway.networking.k8s.io", and with them all objects.
func (s *Server) Uninstall(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.Client.Delete(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		for !apierrors.IsNotFound(s.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)) {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// StopAPI kills the API server, as an outage does; what it holds stays.
func (s *Server) StopAPI(t testing.TB) {
	t.Helper()
	if err := killHolder(s.certificates); err != nil {
		t.Fatal(err)
	}
	if err := s.environment.ControlPlane.APIServer.Stop(); err != nil {
		t.Fatal(err)
	}
}

// killHolder kills the API server that was started with this folder of certificates. Asked to end, it would first finish
// what is under way, for a minute or more.
func killHolder(folder string) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, process := range processes {
		command, err := os.ReadFile(process)
		if err != nil || !strings.Contains(string(command), "--cert-dir="+folder+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(process)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.New("the API server does not run")
}

// StartAPI ends the outage.
func (s *Server) StartAPI(t testing.TB) {
	t.Helper()
	if err := s.environment.ControlPlane.APIServer.Start(); err != nil {
		t.Fatal(err)
	}
}

// Namespace makes a namespace with a fresh name.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// User is a Config that may do what the rules say everywhere, and nothing else.
func (s *Server) User(t testing.TB, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	user, err := s.environment.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Create(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		})
	config := rest.CopyConfig(user.Config())
	config.QPS = -1
	return config
}

// Create creates objects.
func (s *Server) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// Eventually waits until the condition holds.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// moduleFolder is where a module that we depend on lies.
func moduleFolder(path string) string {
	folder, err := goList(path)
	if err != nil {
		panic(fmt.Sprintf("where is %s: %v", path, err))
	}
	return strings.TrimSpace(folder)
}
