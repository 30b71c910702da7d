package cluster

// Counts are how many objects of each kind that means something there are. Limpet's own are not among them.
func (s Snapshot) Counts() map[string]int {
	return map[string]int{
		"GatewayClass": len(s.GatewayClasses.All()), "Gateway": len(s.Gateways.All()), "ListenerSet": len(s.ListenerSets.All()),
		"HTTPRoute": len(s.HTTPRoutes.All()), "GRPCRoute": len(s.GRPCRoutes.All()),
		"TLSRoute": len(s.TLSRoutes.All()), "TCPRoute": len(s.TCPRoutes.All()), "ReferenceGrant": len(s.ReferenceGrants.All()),
		"Namespace": len(s.Namespaces.All()), "Service": len(s.Services.All()), "EndpointSlice": len(s.EndpointSlices.All()),
		"Secret": len(s.Secrets.All()), "ConfigMap": len(s.ConfigMaps.All()), "BackendTLSPolicy": len(s.Policies.All()),
		"XBackend": len(s.XBackends.All()), "Pod": len(s.Pods.All()), "other": len(s.Others),
	}
}
