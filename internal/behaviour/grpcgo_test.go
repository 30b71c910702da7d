package behaviour

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// text is the codec of messages that are plain text: what HAProxy passes on is bytes to it.
type text struct{}

func (text) Name() string { return "text" }

func (text) Marshal(v any) ([]byte, error) { return []byte(*v.(*string)), nil }

func (text) Unmarshal(data []byte, v any) error {
	*v.(*string) = string(data)
	return nil
}

// servers gives the World a Service with pods that answer calls of gRPC.
func servers(name, appProtocol string, count int, config *tls.Config) option {
	return func(w *World) {
		s := &service{name: name, appProtocol: appProtocol, grpc: true, tls: config}
		w.services = append(w.services, s)
		for range count {
			w.addPod(w.t, s)
		}
	}
}

type stopping struct{ *grpc.Server }

func (s stopping) Close() error {
	s.Stop()
	return nil
}

// serveCalls answers every method: the header has the pod's name and, as "seen-…", the metadata that came; the trailer has
// the pod's name too. Each message comes back with the method before it; of Watch, three times. Fail is an error.
func (p *pod) serveCalls(listener net.Listener) io.Closer {
	handler := func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		came, _ := metadata.FromIncomingContext(stream.Context())
		header := metadata.Pairs("pod", p.name)
		for name, values := range came {
			if strings.HasPrefix(name, "x-") || name == ":authority" {
				header.Append("seen-"+strings.TrimPrefix(name, ":"), values...)
			}
		}
		if err := stream.SetHeader(header); err != nil {
			return err
		}
		stream.SetTrailer(metadata.Pairs("pod-trailer", p.name))
		p.requests.Add(1)
		if strings.HasSuffix(method, "/Fail") {
			return status.Error(codes.FailedPrecondition, "not today")
		}
		for {
			var message string
			if err := stream.RecvMsg(&message); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			answer := method + " " + message
			times := 1
			if strings.HasSuffix(method, "/Watch") {
				times = 3
			}
			for range times {
				if err := stream.SendMsg(&answer); err != nil {
					return err
				}
			}
		}
	}
	options := []grpc.ServerOption{grpc.ForceServerCodec(text{}), grpc.UnknownServiceHandler(handler)}
	server := grpc.NewServer(options...)
	go func() { _ = server.Serve(listener) }()
	return stopping{server}
}

// caller is a client of gRPC for a host, over TLS if secure.
func (w *World) caller(t testing.TB, host string, secure bool) *grpc.ClientConn {
	t.Helper()
	at, transport := w.at(80), insecure.NewCredentials()
	if secure {
		at, transport = w.at(443), credentials.NewTLS(&tls.Config{ServerName: host, InsecureSkipVerify: true})
	}
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(transport), grpc.WithAuthority(host),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(text{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// called is what came of a call.
type called struct {
	message         string
	header, trailer metadata.MD
	err             error
}

func (c called) pod() string { return strings.Join(c.header.Get("pod"), ",") }

// outcome is the pod's Service, or the status.
func (c called) outcome() string {
	if c.err != nil {
		return status.Code(c.err).String()
	}
	service, _, _ := strings.Cut(c.pod(), "-")
	return service
}

// invoke makes a call with one message each way, and metadata in pairs.
func invoke(t testing.TB, conn *grpc.ClientConn, method string, pairs ...string) (c called) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), pairs...), 5*time.Second)
	defer cancel()
	message := "hello"
	c.err = conn.Invoke(ctx, method, &message, &c.message, grpc.Header(&c.header), grpc.Trailer(&c.trailer))
	return c
}

func TestCallsAreRoutedByServiceMethodAndMetadata(t *testing.T) {
	t.Parallel()
	manifests := listeners("  - {name: http, port: 80, protocol: HTTP}\n  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n") +
		certificate("cert", "grpc.example") + grpcRoute("all", `
hostnames: [grpc.example]
rules:
- matches: [{method: {service: shop.Cart}}]
  backendRefs: [{name: cart, port: 80}]
- matches: [{method: {service: shop.Cart, method: Add}}]
  backendRefs: [{name: add, port: 80}]
- matches: [{method: {service: shop.Cart, method: Add}, headers: [{name: X-Version, value: "2"}]}]
  backendRefs: [{name: add2, port: 80}]
- matches: [{method: {method: Check}}, {method: {type: RegularExpression, service: "health[.].*"}}]
  backendRefs: [{name: health, port: 80}]
- matches: [{method: {service: split.Bad}}]
  backendRefs: [{name: gone, port: 80}]
- matches: [{method: {service: no.Refs}}]`) + route("web", "hostnames: [web.example]\nrules:\n- backendRefs: [{name: web, port: 80}]")
	w := Run(t, manifests, servers("cart", "", 1, nil), servers("add", "kubernetes.io/h2c", 1, nil), servers("add2", "grpc", 1, nil),
		servers("health", "", 1, nil), pods("web", 1))
	for _, secure := range []bool{false, true} {
		conn := w.caller(t, "grpc.example", secure)
		for _, c := range []struct {
			method, want string
			metadata     []string
		}{
			{"/shop.Cart/Remove", "cart", nil},
			{"/shop.Cart/Add", "add", nil},
			{"/shop.Cart/Add", "add2", []string{"x-version", "2"}},
			{"/shop.Cart/Remove", "cart", []string{"x-version", "2"}},
			{"/shop.Cart/Check", "cart", nil},
			{"/other.Service/Check", "health", nil},
			{"/health.v1/Anything", "health", nil},
			{"/shop.CartOther/Add", "Unimplemented", nil},
			{"/shop/Add", "Unimplemented", nil},
			{"/split.Bad/Get", "Unavailable", nil},
			{"/no.Refs/Get", "Unavailable", nil},
			{"/shop.Cart/Fail", "FailedPrecondition", nil},
		} {
			got := invoke(t, conn, c.method, c.metadata...)
			if got.outcome() != c.want {
				t.Errorf("%s %q, TLS %t: %s (%v), want %s", c.method, c.metadata, secure, got.outcome(), got.err, c.want)
			}
			if got.err == nil && (got.message != c.method+" hello" || len(got.trailer.Get("pod-trailer")) != 1 || got.header.Get("seen-authority")[0] != "grpc.example") {
				t.Errorf("%s: %q, header %v, trailer %v", c.method, got.message, got.header, got.trailer)
			}
		}
		if got := invoke(t, w.caller(t, "elsewhere.example", secure), "/shop.Cart/Add"); got.outcome() != "Unimplemented" {
			t.Errorf("another host, TLS %t: %s", secure, got.outcome())
		}
	}
	if got := w.ok(t, get("web.example/shop.Cart/Add")); got.outcome() != "web" {
		t.Errorf("HTTP beside it: %s", got.outcome())
	}
}

func TestStreamsOfMessagesPassBothWays(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+grpcRoute("all", "rules: [{backendRefs: [{name: chat, port: 80}]}]"), servers("chat", "", 1, nil))
	conn := w.caller(t, "grpc.example", false)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	watch, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/chat/Watch")
	if err != nil {
		t.Fatal(err)
	}
	message := "hello"
	if err := errors.Join(watch.SendMsg(&message), watch.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := watch.RecvMsg(&message); err != nil || message != "/chat/Watch hello" {
			t.Fatalf("%q %v", message, err)
		}
	}
	if err := watch.RecvMsg(&message); !errors.Is(err, io.EOF) || len(watch.Trailer().Get("pod-trailer")) != 1 {
		t.Errorf("at the end: %v, trailer %v", err, watch.Trailer())
	}
	talk, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/chat/Talk")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		said, heard := fmt.Sprint("message ", i), ""
		if err := errors.Join(talk.SendMsg(&said), talk.RecvMsg(&heard)); err != nil || heard != "/chat/Talk "+said {
			t.Fatalf("said %q, heard %q: %v", said, heard, err)
		}
	}
}

func TestCallsKeepTheirEndpointByMetadata(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+grpcRoute("all", `
rules:
- name: header
  matches: [{method: {service: by.Header}}]
  backendRefs: [{name: one, port: 80}]
  sessionPersistence: {type: Header, header: {name: X-Session}}
- name: cookie
  matches: [{method: {service: by.Cookie}}]
  backendRefs: [{name: one, port: 80}]
  sessionPersistence: {cookie: {name: sid}}
- name: old
  matches: [{method: {service: by.Old}}]
  backendRefs: [{name: one, port: 80}]
  sessionPersistence: {type: Header, sessionName: x-old}`), servers("one", "", 4, nil))
	conn := w.caller(t, "grpc.example", false)
	for method, c := range map[string]struct{ given, sent string }{
		"/by.Header/Get": {"x-session", "x-session"}, "/by.Cookie/Get": {"set-cookie", "cookie"}, "/by.Old/Get": {"x-old", "x-old"},
	} {
		seen := map[string]bool{}
		for range 8 {
			first := invoke(t, conn, method)
			if first.err != nil || len(first.header.Get(c.given)) != 1 {
				t.Fatalf("%s: %v, header %v", method, first.err, first.header)
			}
			token, _, _ := strings.Cut(first.header.Get(c.given)[0], ";")
			seen[first.pod()] = true
			for range 5 {
				if again := invoke(t, conn, method, c.sent, token); again.pod() != first.pod() || len(again.header.Get(c.given)) != 0 {
					t.Errorf("%s: %s, want %s; header %v", method, again.outcome(), first.pod(), again.header)
				}
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: 8 sessions on %v", method, seen)
		}
	}
}

func TestFiltersChangeMetadata(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+grpcRoute("all", `
rules:
- filters:
  - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: rule}], remove: [x-gone]}}
  - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-answer, value: rule}]}}
  backendRefs:
  - name: one
    port: 80
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: x-backend, value: one}]}}`), servers("one", "", 1, nil))
	got := invoke(t, w.caller(t, "grpc.example", false), "/a.B/C", "x-gone", "1", "x-kept", "2")
	want := metadata.Pairs("seen-x-set", "rule", "seen-x-backend", "one", "seen-x-kept", "2", "x-answer", "rule")
	for name, values := range want {
		if strings.Join(got.header.Get(name), ",") != values[0] {
			t.Errorf("%s is %q, want %q (%v)", name, got.header.Get(name), values, got.err)
		}
	}
	if len(got.header.Get("seen-x-gone")) != 0 {
		t.Errorf("header %v", got.header)
	}
}

func TestAHostnameIsServedForOneKindOfRoutes(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+grpcRoute("all", "hostnames: [x.example]\nrules: [{backendRefs: [{name: one, port: 80}]}]")+
		route("late", "hostnames: [x.example]\nrules:\n- backendRefs: [{name: web, port: 80}]")+
		route("broad", "rules:\n- backendRefs: [{name: web, port: 80}]"), servers("one", "", 1, nil), pods("web", 1))
	if got := invoke(t, w.caller(t, "x.example", false), "/a.B/C"); got.outcome() != "one" {
		t.Errorf("the call: %s (%v)", got.outcome(), got.err)
	}
	if got := w.condition(t, "HTTPRoute default/late", "Accepted"); got.Reason != "HostnameConflict" {
		t.Errorf("the HTTPRoute is %s: %s", got.Reason, got.Message)
	}
	if got := w.ask(t, get("y.example/")).outcome(); got != "web" {
		t.Errorf("a hostname that only the broad route has: %s", got)
	}
}

// TestCallsAreMirrored also to servers that others write: what they see of a call is the call.
func TestCallsAreMirrored(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+grpcRoute("calls", `rules:
- filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}]
  backendRefs: [{name: main, port: 80}]`), servers("main", "", 1, nil), servers("copy", "", 1, nil))
	conn := w.caller(t, "grpc.example", false)
	calls, copied := w.pod("main-1"), w.pod("copy-1")
	for range 5 {
		if got := invoke(t, conn, "/a.B/Call", "x-m", "v"); got.outcome() != "main" || got.message != "/a.B/Call hello" || got.trailer.Get("pod-trailer")[0] != "main-1" {
			t.Errorf("%s (%v) %q", got.outcome(), got.err, got.message)
		}
	}
	// A stream is answered while it is open, and copied when it is complete.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a.B/Talk")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		sent, got := fmt.Sprint("message ", i), ""
		if err := errors.Join(stream.SendMsg(&sent), stream.RecvMsg(&got)); err != nil || got != "/a.B/Talk "+sent {
			t.Fatalf("%q (%v)", got, err)
		}
	}
	if n := copied.requests.Load(); n > 5 {
		t.Errorf("%d copies while the stream is open", n)
	}
	var end string
	if err := stream.CloseSend(); err != nil || !errors.Is(stream.RecvMsg(&end), io.EOF) {
		t.Fatalf("the end: %v", err)
	}
	for deadline := time.Now().Add(5 * time.Second); copied.requests.Load() < 6 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if calls.requests.Load() != 6 || copied.requests.Load() != 6 {
		t.Errorf("%d calls, %d copies", calls.requests.Load(), copied.requests.Load())
	}
}
