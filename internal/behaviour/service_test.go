package behaviour

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
)

// service is a Service with its pods.
type service struct {
	name string
	pods []*pod
	// slices is how many EndpointSlices the pods are spread over, 1 by default.
	slices int
	made   int
	// appProtocol is that of the port; tls and http2 are how its pods speak.
	appProtocol string
	tls         *tls.Config
	http2, grpc bool
	// raw pods speak no HTTP, but say who they are as soon as somebody connects.
	raw bool
}

// manifest is the Service with its EndpointSlices.
func (s *service) manifest() string {
	var b strings.Builder
	fmt.Fprintf(&b, `---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {ports: [{name: http, port: 80, targetPort: http, appProtocol: %q}]}
`, s.name, s.appProtocol)
	parts := make([]string, max(1, s.slices))
	for i, pod := range s.pods {
		if !pod.gone {
			parts[i%len(parts)] += pod.endpoint()
		}
	}
	for i, endpoints := range parts {
		b.WriteString(s.slice(fmt.Sprintf("%s-%d", s.name, i+1), endpoints))
	}
	return b.String()
}

// slice is an EndpointSlice of the Service.
func (s *service) slice(name, endpoints string) string {
	if endpoints == "" {
		endpoints = " []\n"
	} else {
		endpoints = "\n" + endpoints
	}
	return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints:%s`, name, s.name, podPort, endpoints)
}

// service returns the Service of that name.
func (w *World) service(name string) *service {
	for _, s := range w.services {
		if s.name == name {
			return s
		}
	}
	panic("no service " + name)
}

// pod returns the pod of that name.
func (w *World) pod(name string) *pod {
	for _, s := range w.services {
		for _, p := range s.pods {
			if p.name == name {
				return p
			}
		}
	}
	panic("no pod " + name)
}

// addPod starts one more pod.
func (w *World) addPod(t testing.TB, s *service) *pod {
	t.Helper()
	s.made++
	w.addresses++
	p := newPod(s.name, fmt.Sprintf("%s-%d", s.name, s.made), w.block.address(9+w.addresses))
	p.tls, p.http2, p.grpc, p.raw = s.tls, s.http2, s.grpc, s.raw
	p.start(t)
	w.t.Cleanup(p.stop)
	s.pods = append(s.pods, p)
	return p
}

// scale gives a Service that many pods: new ones are added, the last ones go.
func (w *World) scale(t testing.TB, name string, count int) {
	t.Helper()
	s := w.service(name)
	for len(s.pods) < count {
		w.addPod(t, s)
	}
	gone := s.pods[count:]
	s.pods = s.pods[:count:count]
	w.Sync(t)
	for _, p := range gone {
		p.stop()
	}
}
