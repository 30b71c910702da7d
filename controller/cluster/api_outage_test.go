package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

func TestDefinitionsComeAndGo(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, false)
	f := follow(t, s, APIOptions{})
	f.until(t, "a Snapshot without the Gateway API", func(Snapshot) bool { return true })

	s.Install(t, apiservertest.Definitions())
	namespace := s.Namespace(t)
	apply(t, s, namespace, shop)
	f.until(t, "objects of kinds that were installed later", func(s Snapshot) bool {
		_, gateway := s.Gateways.Get(namespace, "gw")
		_, route := s.HTTPRoutes.Get(namespace, "shop")
		return gateway && route
	})
	s.Uninstall(t, "httproutes.gateway.networking.k8s.io")
	f.until(t, "that the routes are gone", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 0 && len(s.Gateways.All()) == 1 })
	s.Install(t, filepath.Join(apiservertest.Definitions(), "gateway.networking.k8s.io_httproutes.yaml"))
	apply(t, s, namespace, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: again}
spec: {parentRefs: [{name: gw}]}
`)
	f.until(t, "routes of the kind that was installed again", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 1 })
}

func TestAnOutageOfTheAPIServerIsSurvived(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, true)
	namespace := s.Namespace(t)
	apply(t, s, namespace, shop)
	f := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	before := f.until(t, "a Snapshot", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 1 })
	_, count := f.last()

	s.StopAPI(t)
	// A source that begins now waits.
	late := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	time.Sleep(8 * time.Second)
	if _, now := f.last(); now != count {
		t.Errorf("%d Snapshots while there was no API server", now-count)
	}
	if _, now := late.last(); now != 0 {
		t.Error("a Snapshot without any API server")
	}
	s.StartAPI(t)
	apply(t, s, namespace, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: after}
spec: {parentRefs: [{name: gw}]}
`)
	after := f.until(t, "what happened after", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 2 })
	late.until(t, "a first Snapshot at last", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 2 })
	was, _ := before.HTTPRoutes.Get(namespace, "shop")
	if is, _ := after.HTTPRoutes.Get(namespace, "shop"); is != was {
		t.Error("a route that did not change has a new pointer")
	}
}

// TestAServerWithOlderSessions has a definition of HTTPRoute in which sessions have the fields that v1.1 to v1.6 had.
func TestAServerWithOlderSessions(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, false)
	old := oldDefinition(t)
	s.Install(t, old)
	namespace := s.Namespace(t)
	apply(t, s, namespace, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: old}
spec:
  parentRefs: [{name: gw}]
  rules:
  - sessionPersistence: {sessionName: shop, type: Cookie, absoluteTimeout: 1h, idleTimeout: 5m, cookieConfig: {lifetimeType: Permanent}}
`)
	f := follow(t, s, APIOptions{Namespaces: []string{namespace}, Namespace: namespace})
	snapshot := f.until(t, "the route", func(s Snapshot) bool { return len(s.HTTPRoutes.All()) == 1 })
	session := snapshot.HTTPRoutes.All()[0].Spec.Rules[0].SessionPersistence //nolint:staticcheck // deprecated upstream, served by us
	fields := snapshot.OldSessions[session]
	if fields == nil || *fields.SessionName != "shop" || *fields.IdleTimeout != "5m" ||
		*fields.CookieConfig.LifetimeType != gatewayv1.PermanentCookieLifetimeType || *session.AbsoluteTimeout != "1h" {
		t.Fatalf("the session is %+v, of older versions it has %+v", session, fields)
	}
	if err := s.Client.Delete(t.Context(), snapshot.HTTPRoutes.All()[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	f.until(t, "that its session is gone too", func(s Snapshot) bool { return len(s.HTTPRoutes.All())+len(s.OldSessions) == 0 })
}

// oldDefinition is a file with a definition of HTTPRoute whose rules may hold anything: older versions of it are not among
// what we build with.
func oldDefinition(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "httproutes.yaml")
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: httproutes.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api/pull/3328"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {kind: HTTPRoute, listKind: HTTPRouteList, plural: httproutes, singular: httproute}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: false
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAServerThatIsNotThereIsNoError(t *testing.T) {
	t.Parallel()
	f := follow(t, nil, APIOptions{Config: &rest.Config{Host: "https://127.0.0.1:1"}})
	time.Sleep(time.Second)
	if _, count := f.last(); count != 0 {
		t.Errorf("%d Snapshots of nothing", count)
	}
	if waiting := f.api.waitingFor(); len(waiting) == 0 {
		t.Error("it does not say what it waits for")
	}
}
