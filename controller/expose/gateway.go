package expose

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// annotationApplied names the labels and annotations that come from spec.infrastructure, so that they go when they are
// taken from there. Everything else that somebody adds to a Service stays.
const annotationApplied = "limpet.dev/infrastructure"

// maxSlicePorts is the API's limit.
const maxSlicePorts = 100

// gateway says what a Gateway needs, and what it has.
func (c *computation) gateway(gateway *graph.Gateway, unplaced string) Exposure {
	service, there := c.service(gateway)
	ports := servicePorts(gateway)
	if !gateway.Accepted || len(ports) == 0 || gateway.Source.DeletionTimestamp != nil {
		// What is there stays: a mistake in a Gateway does not cost it its address.
		c.keep[gateway.Source.UID] = nil
		return exposure(gateway, service, unplaced)
	}
	c.keep[gateway.Source.UID] = make(map[string]bool)
	want := c.newService(gateway, ports)
	c.keepName(want.Kind, gateway.Source.UID, want.Name)
	refused := refusal(gateway)
	if refused == "" && (!there || serviceDiffers(service, want)) {
		c.change(Change{Verb: Put, Object: want, Owner: gateway.Source.UID, Gateway: gateway.Key()})
	}
	c.slices(gateway, want, ports)
	result := exposure(gateway, service, unplaced)
	if refused != "" {
		result = Exposure{Reason: gatewayv1.GatewayReasonAddressNotUsable, Problem: refused, Addresses: result.Addresses}
	}
	return result
}

func (c *computation) keepName(kind string, owner types.UID, name string) {
	c.keep[owner][kind+" "+name] = true
}

// service is the Gateway's Service, if it is there and the Gateway's own; also one whose labels somebody took off.
func (c *computation) service(gateway *graph.Gateway) (*corev1.Service, bool) {
	namespace, name := gateway.Source.Namespace, ServiceName(gateway.Source.Name)
	service, found := c.snapshot.Exposed.Services.Get(namespace, name)
	if !found {
		service, found = c.snapshot.Services.Get(namespace, name)
	}
	if !found || !ours(service, gateway.Source.UID) {
		return nil, false
	}
	return service, true
}

// servicePorts are those of a Gateway's listeners that have a port in our pods.
func servicePorts(gateway *graph.Gateway) []corev1.ServicePort {
	byPort := make(map[uint16]corev1.ServicePort)
	for _, listener := range gateway.AllListeners() {
		if listener.Accepted && listener.Port != 0 && listener.Bind != 0 {
			byPort[listener.Port] = corev1.ServicePort{
				Name: fmt.Sprintf("port-%d", listener.Port), Protocol: corev1.ProtocolTCP,
				Port: int32(listener.Port), TargetPort: intstr.FromInt32(int32(listener.Bind)),
			}
		}
	}
	ports := make([]corev1.ServicePort, 0, len(byPort))
	for _, number := range slices.Sorted(maps.Keys(byPort)) {
		ports = append(ports, byPort[number])
	}
	return ports
}

func (c *computation) newService(gateway *graph.Gateway, ports []corev1.ServicePort) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: c.metadata(gateway, ServiceName(gateway.Source.Name), gateway.Parameters.Service.Annotations),
		Spec:       corev1.ServiceSpec{Type: cmp.Or(gateway.Parameters.Service.Type, c.options.ServiceType), Ports: ports},
	}
	c.request(gateway, &service.Spec)
	return service
}

// request asks for the addresses that a Gateway wants. A Service has one address of each family.
func (c *computation) request(gateway *graph.Gateway, spec *corev1.ServiceSpec) {
	policy := corev1.IPFamilyPolicyPreferDualStack
	if len(gateway.Requested) == 0 {
		if len(c.families()) == 2 {
			spec.IPFamilyPolicy = &policy
		}
		return
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		spec.LoadBalancerIP = gateway.Requested[0].String() // deprecated, and the only way that all vendors know
		return
	}
	policy = corev1.IPFamilyPolicySingleStack
	if len(gateway.Requested) == 2 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	spec.IPFamilyPolicy = &policy
	for _, address := range gateway.Requested {
		spec.ClusterIPs = append(spec.ClusterIPs, address.String())
		spec.IPFamilies = append(spec.IPFamilies, corev1.IPFamily(familyOf(address)))
	}
	spec.ClusterIP = spec.ClusterIPs[0]
}

// refusal says why the addresses that a Gateway asks for cannot all be its own; "" if that is not known.
func refusal(gateway *graph.Gateway) string {
	byFamily := make(map[discoveryv1.AddressType][]string)
	for _, address := range gateway.Requested {
		byFamily[familyOf(address)] = append(byFamily[familyOf(address)], address.String())
	}
	for _, family := range slices.Sorted(maps.Keys(byFamily)) {
		if same := byFamily[family]; len(same) > 1 {
			return fmt.Sprintf("spec.addresses asks for %s, but a Gateway can have one %s address: leave the others out.",
				strings.Join(same, " and "), family)
		}
	}
	return ""
}

// metadata is what all generated objects of a Gateway bear: what its parameters say of this kind of object, over it what its
// spec.infrastructure says, and over it what is ours.
func (c *computation) metadata(gateway *graph.Gateway, name string, parameters map[string]string) metav1.ObjectMeta {
	source := gateway.Source
	isController := true
	meta := metav1.ObjectMeta{
		Namespace: source.Namespace, Name: name, Labels: make(map[string]string), Annotations: make(map[string]string),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway", Name: source.Name, UID: source.UID, Controller: &isController,
		}},
	}
	var applied []string
	for key, value := range parameters {
		meta.Annotations[key] = value
		applied = append(applied, "annotation "+key)
	}
	if infrastructure := source.Spec.Infrastructure; infrastructure != nil {
		for key, value := range infrastructure.Labels {
			meta.Labels[string(key)] = string(value)
			applied = append(applied, "label "+string(key))
		}
		for key, value := range infrastructure.Annotations {
			meta.Annotations[string(key)] = string(value)
			applied = append(applied, "annotation "+string(key))
		}
	}
	delete(meta.Annotations, annotationApplied)
	if len(applied) > 0 {
		slices.Sort(applied)
		meta.Annotations[annotationApplied] = strings.Join(slices.Compact(applied), ",")
	}
	meta.Labels[cluster.LabelManagedBy] = cluster.ManagedBy
	meta.Labels[gatewayv1.GatewayNameLabelKey] = graph.LabelValue(source.Name)
	meta.Labels[gatewayv1.GatewayClassNameLabelKey] = graph.LabelValue(string(source.Spec.GatewayClassName))
	return meta
}

// slices are the endpoints of a Gateway's Service. Without any pod of ours in sight nothing is said about them.
func (c *computation) slices(gateway *graph.Gateway, service *corev1.Service, ports []corev1.ServicePort) {
	families := c.families()
	if len(families) == 0 {
		c.keep[gateway.Source.UID] = nil
		return
	}
	for _, family := range families {
		part := 1
		for some := range slices.Chunk(ports, maxSlicePorts) {
			c.slice(gateway, c.newSlice(gateway, service, family, part), some)
			part++
		}
	}
}

func (c *computation) newSlice(
	gateway *graph.Gateway, service *corev1.Service, family discoveryv1.AddressType, part int,
) *discoveryv1.EndpointSlice {
	name := service.Name + "-v" + strings.TrimPrefix(string(family), "IPv")
	if part > 1 {
		name = fmt.Sprintf("%s-%d", name, part)
	}
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: c.metadata(gateway, name, nil), AddressType: family,
	}
	slice.Labels[discoveryv1.LabelServiceName] = service.Name
	slice.Labels[discoveryv1.LabelManagedBy] = cluster.SliceManagedBy
	return slice
}

func (c *computation) slice(gateway *graph.Gateway, want *discoveryv1.EndpointSlice, ports []corev1.ServicePort) {
	c.keepName(want.Kind, gateway.Source.UID, want.Name)
	is, found := c.snapshot.Exposed.EndpointSlices.Get(want.Namespace, want.Name)
	if !found {
		is, found = c.snapshot.EndpointSlices.Get(want.Namespace, want.Name)
	}
	found = found && ours(is, gateway.Source.UID)
	var before []discoveryv1.Endpoint
	if found {
		before = is.Endpoints
	}
	want.Endpoints = c.endpoints(want.AddressType, before)
	for i := range ports {
		port := ports[i].TargetPort.IntVal
		want.Ports = append(want.Ports, discoveryv1.EndpointPort{Name: &ports[i].Name, Protocol: &ports[i].Protocol, Port: &port})
	}
	if !found || sliceDiffers(is, want) {
		c.change(Change{Verb: Put, Object: want, Owner: gateway.Source.UID, Gateway: gateway.Key()})
	}
}

// Exposure is the addresses that a Gateway has in the cluster.
type Exposure struct {
	Addresses []gatewayv1.GatewayStatusAddress
	// Reason and Problem say why the Gateway cannot be reached as it should; "" if it can.
	Reason  gatewayv1.GatewayConditionReason
	Problem string
}

// Equal says whether both are the same.
func (e Exposure) Equal(o Exposure) bool {
	return e.Reason == o.Reason && e.Problem == o.Problem && slices.EqualFunc(e.Addresses, o.Addresses,
		func(a, b gatewayv1.GatewayStatusAddress) bool { return *a.Type == *b.Type && a.Value == b.Value })
}

// maxAddresses is the API's limit for status.addresses.
const maxAddresses = 16

// exposure reads what a Gateway's Service (nil for none) has.
func exposure(gateway *graph.Gateway, service *corev1.Service, unplaced string) Exposure {
	switch {
	case unplaced != "":
		return Exposure{Reason: gatewayv1.GatewayReasonNoResources, Problem: unplaced, Addresses: addressesOf(service)}
	case service == nil:
		return Exposure{Reason: gatewayv1.GatewayReasonAddressNotAssigned,
			Problem: fmt.Sprintf("Service %s is not there yet.", ServiceName(gateway.Source.Name))}
	}
	addresses := addressesOf(service)
	if len(gateway.Requested) > 0 {
		return requestedExposure(gateway, service, addresses)
	}
	if len(addresses) == 0 {
		return Exposure{Reason: gatewayv1.GatewayReasonAddressNotAssigned, Problem: waits(service)}
	}
	return Exposure{Addresses: addresses}
}

// waits says what a Service without an address waits for.
func waits(service *corev1.Service) string {
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return fmt.Sprintf("Service %s of type LoadBalancer has no address yet: if the cluster has no load balancers, choose "+
			"another type of Service for Limpet.", service.Name)
	}
	return fmt.Sprintf("Service %s has no address yet.", service.Name)
}

// requestedExposure shows the addresses that were asked for, spelled as they were asked for, and no others.
func requestedExposure(gateway *graph.Gateway, service *corev1.Service, has []gatewayv1.GatewayStatusAddress) Exposure {
	var given []gatewayv1.GatewayStatusAddress
	var lacking []string
	for _, request := range gateway.Source.Spec.Addresses {
		wanted, err := netip.ParseAddr(request.Value)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(has, func(a gatewayv1.GatewayStatusAddress) bool {
			address, err := netip.ParseAddr(a.Value)
			return err == nil && address == wanted.Unmap()
		})
		if at < 0 {
			lacking = append(lacking, request.Value)
			continue
		}
		given = append(given, gatewayv1.GatewayStatusAddress{Type: has[at].Type, Value: request.Value})
	}
	if len(lacking) > 0 {
		return Exposure{Addresses: given, Reason: gatewayv1.GatewayReasonAddressNotUsable, Problem: fmt.Sprintf(
			"Service %s does not have the address %s that spec.addresses asks for.", service.Name, strings.Join(lacking, " and "))}
	}
	return Exposure{Addresses: given}
}

// addressesOf are where clients reach a Service: at its load balancer, if it is to have one, else in the cluster.
func addressesOf(service *corev1.Service) []gatewayv1.GatewayStatusAddress {
	if service == nil {
		return nil
	}
	var all []gatewayv1.GatewayStatusAddress
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			all = appendAddress(all, ingress.IP)
			all = appendAddress(all, ingress.Hostname)
		}
		return all
	}
	clusterIPs := service.Spec.ClusterIPs
	if len(clusterIPs) == 0 {
		clusterIPs = []string{service.Spec.ClusterIP}
	}
	for _, ip := range clusterIPs {
		if ip != corev1.ClusterIPNone {
			all = appendAddress(all, ip)
		}
	}
	return all
}

// appendAddress adds what the API takes as an address.
func appendAddress(all []gatewayv1.GatewayStatusAddress, value string) []gatewayv1.GatewayStatusAddress {
	kind := gatewayv1.IPAddressType
	if _, err := netip.ParseAddr(value); err != nil {
		kind = gatewayv1.HostnameAddressType
		if value = strings.ToLower(strings.TrimSuffix(value, ".")); !isHostname(value) {
			return all
		}
	}
	if len(all) == maxAddresses || slices.ContainsFunc(all, func(a gatewayv1.GatewayStatusAddress) bool { return a.Value == value }) {
		return all
	}
	return append(all, gatewayv1.GatewayStatusAddress{Type: &kind, Value: value})
}
