package behaviour

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// podPort is the port of every pod; its Service has port 80.
const podPort = 8080

// pod is one back end: a server that answers with its name and what it was asked.
type pod struct {
	service, name string
	uid           string
	at            netip.AddrPort
	// conditions are those in the EndpointSlice; a pod that is gone is in none.
	ready, serving, terminating, gone bool
	// tls is what the pod speaks TLS with, http2 that it speaks HTTP/2 alone.
	tls   *tls.Config
	http2 bool
	// grpc pods answer calls instead of requests, raw ones speak no HTTP.
	grpc, raw bool

	mu      sync.Mutex
	server  *http.Server
	swallow []io.Closer
	// requests counts those that arrived, connections what they came on, wait is how long each of them takes.
	requests    atomic.Int64
	connections atomic.Int64
	// streams counts those that are open.
	streams atomic.Int64
	wait    atomic.Int64
}

func newPod(service, name string, address netip.Addr) *pod {
	return &pod{
		service: service, name: name, uid: "uid-of-" + name, at: netip.AddrPortFrom(address, podPort), ready: true, serving: true,
	}
}

// echo is what a pod says of a request.
type echo struct {
	Service, Pod string
	Method       string
	// URI as it stood in the request line.
	URI    string
	Host   string
	Header http.Header
	Body   string
	// From is the address of the connection.
	From string
	// Protocol is what HAProxy speaks to the pod, ServerName the TLS server name that it sends, Client the first name in its
	// certificate.
	Protocol, ServerName, Client string
	// Secure says that it is TLS.
	Secure bool
}

// start makes the pod answer.
func (p *pod) start(t testing.TB) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.at.String())
	if err != nil {
		t.Fatal(err)
	}
	if p.grpc {
		p.keep(p.serveCalls(listener))
		return
	}
	if p.raw {
		p.keep(listener)
		go p.serveRaw(listener)
		return
	}
	server := &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute, DisableGeneralOptionsHandler: true,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				p.connections.Add(1)
			}
		},
		Protocols: p.protocols(), ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	if p.tls != nil {
		listener = tls.NewListener(listener, p.tls)
	}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

func (p *pod) protocols() *http.Protocols {
	all := &http.Protocols{}
	all.SetHTTP1(!p.http2)
	all.SetHTTP2(p.http2)
	all.SetUnencryptedHTTP2(p.http2)
	return all
}

// serve answers. The request can ask for lines of the answer's head in X-Reply, as "Cache-Control: max-age=60", for a
// status in X-Reply-Status, and in X-Reply-Events for so many events, one each second, instead of an echo. With X-Reply-Stream,
// what is sent comes back at once, until the client ends it; with X-Reply-Never, there is no answer until the client goes.
func (p *pod) serve(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if wait := time.Duration(p.wait.Load()); wait > 0 {
		time.Sleep(wait)
	}
	if r.Header.Get("Upgrade") != "" {
		p.upgrade(w)
		return
	}
	if r.Header.Get("X-Reply-Never") != "" {
		p.streams.Add(1)
		defer p.streams.Add(-1)
		<-r.Context().Done()
		return
	}
	if r.Header.Get("X-Reply-Stream") != "" {
		p.stream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Pod", p.name)
	for _, line := range r.Header.Values("X-Reply") {
		name, value, _ := strings.Cut(line, ": ")
		w.Header().Add(name, value)
	}
	status := http.StatusOK
	if text := r.Header.Get("X-Reply-Status"); text != "" {
		_, _ = fmt.Sscan(text, &status)
	}
	w.WriteHeader(status)
	if events := 0; r.Header.Get("X-Reply-Events") != "" {
		_, _ = fmt.Sscan(r.Header.Get("X-Reply-Events"), &events)
		for i := range events {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
		return
	}
	_ = json.NewEncoder(w).Encode(echo{
		Service: p.service, Pod: p.name, Method: r.Method, URI: r.RequestURI, Host: r.Host, Header: r.Header, Body: string(body),
		From: r.RemoteAddr, Protocol: r.Proto, ServerName: serverName(r), Client: clientName(r), Secure: r.TLS != nil,
	})
}

func serverName(r *http.Request) string {
	if r.TLS == nil {
		return ""
	}
	return r.TLS.ServerName
}

func clientName(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return r.TLS.PeerCertificates[0].DNSNames[0]
}

// stream sends back what it gets while it gets it.
func (p *pod) stream(w http.ResponseWriter, r *http.Request) {
	p.streams.Add(1)
	defer p.streams.Add(-1)
	answer := http.NewResponseController(w)
	_ = answer.EnableFullDuplex()
	w.Header().Set("Pod", p.name)
	w.WriteHeader(http.StatusOK)
	_ = answer.Flush()
	buffer := make([]byte, 1024)
	for {
		n, err := r.Body.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil || answer.Flush() != nil || err != nil {
			return
		}
	}
}

// upgrade makes the connection one on which everything comes back.
func (p *pod) upgrade(w http.ResponseWriter) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nPod: %s\r\n\r\n", p.name)
	_, _ = io.Copy(conn, buffered)
}

// stop ends whatever the pod does: connections to it are refused.
func (p *pod) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		_ = p.server.Close()
		p.server = nil
	}
	for _, closer := range p.swallow {
		_ = closer.Close()
	}
	p.swallow = nil
}

// blackHole makes connections to the pod hang: a listener whose queue is full drops what arrives.
func (p *pod) blackHole(t testing.TB) {
	t.Helper()
	p.stop()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.keep(descriptor(socket))
	_ = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: int(p.at.Port()), Addr: p.at.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		conn, err := (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext(t.Context(), "tcp", p.at.String())
		if err != nil {
			return
		}
		p.keep(conn)
	}
	t.Fatal("the queue of a listener is never full")
}

func (p *pod) keep(closer io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = append(p.swallow, closer)
}

type descriptor int

func (d descriptor) Close() error { return syscall.Close(int(d)) }

// hangUp makes the pod close every connection as soon as it is there.
func (p *pod) hangUp(t testing.TB) {
	t.Helper()
	p.stop()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.at.String())
	if err != nil {
		t.Fatal(err)
	}
	p.keep(listener)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
}

// drain is what a pod's deletion does first: it still serves what it has.
func (p *pod) drain() { p.ready, p.terminating = false, true }

// endpoint is the pod's entry in an EndpointSlice.
func (p *pod) endpoint() string {
	return fmt.Sprintf(`- addresses: [%s]
  conditions: {ready: %t, serving: %t, terminating: %t}
  targetRef: {kind: Pod, name: %s, uid: %s}
`, p.at.Addr(), p.ready, p.serving, p.terminating, p.name, p.uid)
}
