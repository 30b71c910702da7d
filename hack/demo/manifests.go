package main

import (
	"fmt"
	"strings"
)

// gateway is the Gateway with a listener on each port.
func (s *stage) gateway(ports ...int) string {
	var listeners strings.Builder
	for i, port := range ports {
		fmt.Fprintf(&listeners, "  - {name: http-%d, port: %d, protocol: HTTP}\n", i, port)
	}
	return `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: limpet}
spec: {controllerName: limpet.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: demo, namespace: demo}
spec:
  gatewayClassName: limpet
  listeners:
` + listeners.String()
}

// routes has one rule with a session by cookie and one by header.
const routes = `apiVersion: v1
kind: Service
metadata: {name: shop, namespace: demo}
spec:
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: demo}
spec:
  parentRefs: [{name: demo}]
  hostnames: [shop.example]
  rules:
  - name: pages
    sessionPersistence:
      type: Cookie
      absoluteTimeout: 8h
      cookie: {name: shop, lifetimeType: Permanent}
    backendRefs: [{name: shop, port: 80}]
  - name: api
    matches: [{path: {type: PathPrefix, value: /api}}]
    sessionPersistence:
      type: Header
      header: {name: ` + sessionHeader + `}
    backendRefs: [{name: shop, port: 80}]
`

// unrelated is somebody else's route.
const unrelated = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: demo}
spec:
  parentRefs: [{name: demo}]
  hostnames: [other.example]
  rules:
  - backendRefs: [{name: shop, port: 80}]
`
