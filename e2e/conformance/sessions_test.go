//go:build linux

package conformance

import (
	"embed"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"
	pb "sigs.k8s.io/gateway-api-conformance-images/echo-basic/grpcechoserver"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	conformancegrpc "sigs.k8s.io/gateway-api/conformance/utils/grpc"
	conformancehttp "sigs.k8s.io/gateway-api/conformance/utils/http"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/conformance/utils/weight"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// The tests that GEP-1619 describes and the suite does not have yet: each for the session persistence of a rule, and for that of an
// XBackend. They are ours.

//go:embed sessions/*.yaml
var sessionManifests embed.FS

// visits is the number of requests that must reach one pod (GEP-1619: N >= 50).
const visits = 50

// sessionTests are the tests for sessions of rules and of XBackends.
func sessionTests() []suite.ConformanceTest {
	var all []suite.ConformanceTest
	for _, name := range []string{"Rule", "XBackend"} {
		of := strings.ToLower(name)
		overHTTP := []features.FeatureName{features.SupportGateway, features.SupportHTTPRoute}
		overGRPC := []features.FeatureName{features.SupportGateway, features.SupportGRPCRoute}
		all = append(all,
			sessionTest("HTTPRouteSessionPersistence"+name, "sessions/httproute-"+of+".yaml", overHTTP, func(t *testing.T, s *suite.ConformanceTestSuite) {
				testSessionCookie(t, httpDoor(t, s, "session-http-session"))
				testSessionSplit(t, httpDoor(t, s, "session-http-split"), "infra-backend")
			}),
			sessionTest("HTTPRouteSessionPersistencePermanentCookie"+name, "sessions/httproute-"+of+".yaml", overHTTP,
				func(t *testing.T, s *suite.ConformanceTestSuite) {
					testPermanentCookie(t, httpDoor(t, s, "session-http-permanent"))
				}),
			sessionTest("GRPCRouteSessionPersistence"+name, "sessions/grpcroute-"+of+".yaml", overGRPC, func(t *testing.T, s *suite.ConformanceTestSuite) {
				testSessionCookie(t, grpcDoor(t, s, "session-grpc-session"))
				testSessionSplit(t, grpcDoor(t, s, "session-grpc-split"), "grpc-infra-backend")
			}),
			sessionTest("GRPCRouteSessionPersistenceHeader"+name, "sessions/grpcroute-"+of+".yaml", overGRPC,
				func(t *testing.T, s *suite.ConformanceTestSuite) {
					testSessionHeader(t, grpcDoor(t, s, "session-grpc-header"))
				}),
		)
	}
	return all
}

func sessionTest(
	name, manifest string, needs []features.FeatureName, test func(*testing.T, *suite.ConformanceTestSuite),
) suite.ConformanceTest {
	return suite.ConformanceTest{ShortName: name, Description: "GEP-1619", Features: needs, Manifests: []string{manifest}, Test: test}
}

// door is a way to one route: it sends a request with these headers.
type door func(t *testing.T, headers map[string]string) (answer, error)

// answer is which pod answered, and with which headers.
type answer struct {
	pod     string
	headers http.Header
}

// visitor keeps the cookies that it is given, as browsers do.
type visitor struct {
	door    door
	mu      sync.Mutex
	cookies map[string]string
}

func (v *visitor) visit(t *testing.T) (string, error) {
	t.Helper()
	a, err := v.door(t, v.headers())
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, cookie := range cookiesOf(t, a) {
		v.cookies[cookie.Name] = cookie.Value
	}
	return a.pod, nil
}

func (v *visitor) headers() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for name, value := range v.cookies {
		all = append(all, name+"="+value)
	}
	if len(all) == 0 {
		return nil
	}
	return map[string]string{"Cookie": strings.Join(all, "; ")}
}

func cookiesOf(t *testing.T, a answer) []*http.Cookie {
	t.Helper()
	var all []*http.Cookie
	for _, text := range a.headers.Values("Set-Cookie") {
		cookie, err := http.ParseSetCookie(text)
		if err != nil {
			t.Errorf("Set-Cookie: %s: %v", text, err)
			continue
		}
		all = append(all, cookie)
	}
	return all
}

// testSessionCookie: the first answer sets a cookie, without Expires and Max-Age, and who brings it back reaches the same pod.
func testSessionCookie(t *testing.T, open door) {
	t.Helper()
	cookie := firstCookie(t, open)
	if cookie.MaxAge != 0 || !cookie.Expires.IsZero() {
		t.Errorf("a session cookie has Max-Age or Expires: %s", cookie.Raw)
	}
	mustStick(t, open)
	mustSpread(t, open)
}

// testPermanentCookie: the cookie expires with absoluteTimeout.
func testPermanentCookie(t *testing.T, open door) {
	t.Helper()
	const timeout, tolerance = 5 * time.Minute, 10 * time.Second
	cookie := firstCookie(t, open)
	left := time.Duration(cookie.MaxAge) * time.Second
	if cookie.MaxAge == 0 {
		left = time.Until(cookie.Expires)
	}
	if left > timeout+time.Second || left < timeout-tolerance {
		t.Errorf("the cookie expires after %s, not %s: %s", left, timeout, cookie.Raw)
	}
	mustStick(t, open)
}

// testSessionHeader: the first answer has a header, and who brings it back reaches the same pod.
func testSessionHeader(t *testing.T, open door) {
	t.Helper()
	first, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := first.headers.Get("X-Session")
	if token == "" {
		t.Fatalf("the first answer has no X-Session: %v", first.headers)
	}
	for range visits {
		again, err := open(t, map[string]string{"X-Session": token})
		if err != nil {
			t.Fatal(err)
		}
		if again.pod != first.pod {
			t.Fatalf("%s answered the first request, and %s one with its token", first.pod, again.pod)
		}
	}
	mustSpread(t, open)
}

// testSessionSplit: sessions do not change how the weights divide requests, even of one visitor with all its cookies; and on each of
// the backends it stays with one pod.
func testSessionSplit(t *testing.T, open door, backend string) {
	t.Helper()
	v := &visitor{door: open, cookies: map[string]string{}}
	// One request after the other, until there is a session on each backend.
	pods := map[string]bool{}
	for range visits {
		pod, err := v.visit(t)
		if err != nil {
			t.Fatal(err)
		}
		pods[pod] = true
	}
	if len(pods) != 2 {
		t.Errorf("of two backends, one visitor must meet one pod each, and met %v", pods)
	}
	sender := weight.NewFunctionBasedSender(func() (string, error) {
		pod, err := v.visit(t)
		if err == nil && !pods[pod] {
			err = fmt.Errorf("%s answered: the sessions are with %v", pod, pods)
		}
		return pod, err
	})
	var err error
	for range weight.MaxTestRetries {
		if err = weight.TestWeightedDistribution(sender, map[string]float64{backend + "-v1": 0.7, backend + "-v2": 0.3}); err == nil {
			return
		}
	}
	t.Error(err)
}

func firstCookie(t *testing.T, open door) *http.Cookie {
	t.Helper()
	first, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	cookies := cookiesOf(t, first)
	if len(cookies) != 1 {
		t.Fatalf("the first answer must set one cookie, and sets %q", first.headers.Values("Set-Cookie"))
	}
	return cookies[0]
}

func mustStick(t *testing.T, open door) {
	t.Helper()
	v := &visitor{door: open, cookies: map[string]string{}}
	first, err := v.visit(t)
	if err != nil {
		t.Fatal(err)
	}
	for i := range visits {
		pod, err := v.visit(t)
		if err != nil {
			t.Fatal(err)
		}
		if pod != first {
			t.Fatalf("%s answered the first request, and %s request %d with its cookie", first, pod, i+2)
		}
	}
}

// mustSpread: without a token requests are balanced, or sticking would prove nothing.
func mustSpread(t *testing.T, open door) {
	t.Helper()
	pods := map[string]bool{}
	for range visits {
		a, err := open(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		pods[a.pod] = true
	}
	if len(pods) < 2 {
		t.Errorf("without a token %d requests reached no pod but %v", visits, pods)
	}
}

// httpDoor leads to an HTTPRoute, which must be accepted.
func httpDoor(t *testing.T, s *suite.ConformanceTestSuite, route string) door {
	t.Helper()
	name := types.NamespacedName{Namespace: suite.InfrastructureNamespace, Name: route}
	gateway := types.NamespacedName{Namespace: suite.InfrastructureNamespace, Name: "same-namespace"}
	address := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName, kubernetes.NewGatewayRef(gateway), name)
	expected := conformancehttp.ExpectedResponse{
		Request: conformancehttp.Request{Host: route + ".example.org", Path: "/"}, Namespace: suite.InfrastructureNamespace,
	}
	conformancehttp.MakeRequestAndExpectEventuallyConsistentResponse(t, s.RoundTripper, s.TimeoutConfig, address, expected)
	return func(t *testing.T, headers map[string]string) (answer, error) {
		with := expected
		with.Request.Headers = headers
		request, response, err := s.RoundTripper.CaptureRoundTrip(conformancehttp.MakeRequest(t, &with, address, "HTTP", "http"))
		if err != nil {
			return answer{}, err
		}
		if response.StatusCode != http.StatusOK {
			return answer{}, fmt.Errorf("status %d", response.StatusCode)
		}
		return answer{request.Pod, response.Headers}, nil
	}
}

// grpcDoor leads to a GRPCRoute, which must be accepted. A client must carry its cookies itself.
func grpcDoor(t *testing.T, s *suite.ConformanceTestSuite, route string) door {
	t.Helper()
	name := types.NamespacedName{Namespace: suite.InfrastructureNamespace, Name: route}
	gateway := types.NamespacedName{Namespace: suite.InfrastructureNamespace, Name: "same-namespace"}
	address := kubernetes.GatewayAndRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName, kubernetes.NewGatewayRef(gateway),
		&gatewayv1.GRPCRoute{}, true, name)
	expected := func(headers map[string]string) conformancegrpc.ExpectedResponse {
		return conformancegrpc.ExpectedResponse{
			EchoRequest: &pb.EchoRequest{}, Namespace: suite.InfrastructureNamespace,
			RequestMetadata: &conformancegrpc.RequestMetadata{Authority: route + ".example.org", Metadata: headers},
		}
	}
	conformancegrpc.MakeRequestAndExpectEventuallyConsistentResponse(t, s.GRPCClient, s.TimeoutConfig, address, expected(nil))
	return func(t *testing.T, headers map[string]string) (answer, error) {
		client := &conformancegrpc.DefaultClient{}
		defer client.Close()
		response, err := client.SendRPC(t, address, expected(headers), s.TimeoutConfig.RequestTimeout)
		if err != nil {
			return answer{}, err
		}
		if response.Code != codes.OK {
			return answer{}, fmt.Errorf("code %s", response.Code)
		}
		got := http.Header{}
		for key, values := range *response.Headers {
			for _, value := range values {
				got.Add(key, value)
			}
		}
		return answer{response.Response.GetAssertions().GetContext().GetPod(), got}, nil
	}
}
