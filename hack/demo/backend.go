package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// backend is one server, as a pod would be.
type backend struct {
	name   string
	port   int
	server *http.Server
	state  string // of endpointState
}

// What an EndpointSlice says about a backend.
const (
	ready    = "ready: true, serving: true, terminating: false"
	draining = "ready: false, serving: true, terminating: true"
)

// newBackend starts a server that answers with its name.
func newBackend(name string) (*backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{name: name, port: listener.Addr().(*net.TCPAddr).Port, state: ready}
	b.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server-Name", name)
		fmt.Fprintf(w, "%s %s%s answered by %s\n", r.Method, r.Host, r.URL.Path, name)
	})}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

func (b *backend) stop() { _ = b.server.Close() }

// slice is the backend's EndpointSlice: one each, because each has a port of its own.
func (b *backend) slice() string {
	return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, namespace: demo, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: http, port: %[2]d, protocol: TCP}]
endpoints:
- addresses: [127.0.0.1]
  conditions: {%[3]s}
  targetRef: {kind: Pod, namespace: demo, name: %[1]s, uid: uid-of-%[1]s}
`, b.name, b.port, b.state)
}

// dialTo makes every connection go to address, whatever the URL's host.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}
