package behaviour

import (
	"encoding/json"
	"strings"
)

// class is the GatewayClass that is ours.
const class = `---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: limpet}
spec: {controllerName: limpet.dev/gateway-controller}
`

// gateway is a Gateway with one listener, for plain HTTP on port 80.
const gateway = class + `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: limpet
  listeners: [{name: http, port: 80, protocol: HTTP}]
`

// route is an HTTPRoute of the Gateway; the rest of its spec follows.
func route(name, spec string) string { return routeOf(name, "parentRefs: [{name: gw}]\n"+spec) }

// routeOf is an HTTPRoute with its whole spec.
func routeOf(name, spec string) string {
	return `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ` + name + `}
spec:
  ` + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// aged is an HTTPRoute with a creation time: the second of a minute.
func aged(second, name, spec string) string {
	return strings.Replace(route(name, spec), "metadata: {", `metadata: {creationTimestamp: "2026-01-01T00:00:`+second+`Z", `, 1)
}

// yamlText is any text as one word of YAML.
func yamlText(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}
