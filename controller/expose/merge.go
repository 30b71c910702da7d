package expose

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only what is ours of an object is compared and written. What others may add (a vendor's annotations and finalizers, the
// node ports and addresses that were given) stays as it is.

func serviceDiffers(is, want *corev1.Service) bool {
	merged := is.DeepCopy()
	mergeService(merged, want)
	return mustRecreate(is, want) || !equality.Semantic.DeepEqual(is, merged)
}

func sliceDiffers(is, want *discoveryv1.EndpointSlice) bool {
	merged := is.DeepCopy()
	mergeSlice(merged, want)
	return is.AddressType != want.AddressType || !equality.Semantic.DeepEqual(is, merged)
}

// mergeService makes a Service be what is wanted.
func mergeService(is, want *corev1.Service) {
	mergeMetadata(&is.ObjectMeta, &want.ObjectMeta)
	spec := &is.Spec
	spec.Selector = want.Spec.Selector
	if want.Spec.Type != "" && spec.Type != want.Spec.Type {
		mergeType(spec, want.Spec.Type)
	}
	spec.LoadBalancerIP = want.Spec.LoadBalancerIP // deprecated, and the only way that all vendors know
	if want.Spec.IPFamilyPolicy != nil {
		spec.IPFamilyPolicy = want.Spec.IPFamilyPolicy
	}
	ports := slices.Clone(want.Spec.Ports)
	for i := range ports {
		at := slices.IndexFunc(spec.Ports, func(p corev1.ServicePort) bool { return p.Port == ports[i].Port && p.Protocol == ports[i].Protocol })
		if at >= 0 {
			ports[i].NodePort, ports[i].AppProtocol = spec.Ports[at].NodePort, spec.Ports[at].AppProtocol
		}
	}
	spec.Ports = ports
}

// mergeType changes the type, and takes away what only another type may have.
func mergeType(spec *corev1.ServiceSpec, kind corev1.ServiceType) {
	spec.Type = kind
	spec.ExternalName = ""
	if kind == corev1.ServiceTypeClusterIP {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
		spec.ExternalTrafficPolicy, spec.HealthCheckNodePort, spec.AllocateLoadBalancerNodePorts = "", 0, nil
	}
	if kind != corev1.ServiceTypeLoadBalancer {
		spec.LoadBalancerClass, spec.LoadBalancerSourceRanges = nil, nil
	}
}

// mustRecreate says whether a Service has to be made anew: the addresses of one are for its whole life. One whose addresses
// are not asked for any more keeps them.
func mustRecreate(is, want *corev1.Service) bool {
	headless := is.Spec.ClusterIP == corev1.ClusterIPNone && want.Spec.ClusterIP != corev1.ClusterIPNone
	if is.Spec.Type == corev1.ServiceTypeExternalName || want.Spec.ClusterIP == "" {
		return headless
	}
	wants, has := want.Spec.ClusterIPs, is.Spec.ClusterIPs
	if len(wants) == 0 {
		wants = []string{want.Spec.ClusterIP}
	}
	if len(has) == 0 {
		has = []string{is.Spec.ClusterIP}
	}
	return headless || slices.ContainsFunc(wants, func(ip string) bool { return !slices.Contains(has, ip) })
}

func mergeSlice(is, want *discoveryv1.EndpointSlice) {
	mergeMetadata(&is.ObjectMeta, &want.ObjectMeta)
	is.Endpoints, is.Ports = want.Endpoints, want.Ports
}

// mergeMetadata sets our labels, annotations and owner, and takes away what once came from spec.infrastructure.
func mergeMetadata(is, want *metav1.ObjectMeta) {
	labels, annotations := maps.Clone(is.Labels), maps.Clone(is.Annotations)
	for applied := range strings.SplitSeq(is.Annotations[annotationApplied], ",") {
		if key, found := strings.CutPrefix(applied, "label "); found {
			delete(labels, key)
		}
		if key, found := strings.CutPrefix(applied, "annotation "); found {
			delete(annotations, key)
		}
	}
	delete(annotations, annotationApplied)
	is.Labels, is.Annotations = over(labels, want.Labels), over(annotations, want.Annotations)
	if len(want.OwnerReferences) > 0 {
		is.OwnerReferences = mergeOwners(is.OwnerReferences, want.OwnerReferences[0])
	}
}

func over(below, above map[string]string) map[string]string {
	if below == nil {
		below = make(map[string]string)
	}
	maps.Copy(below, above)
	if len(below) == 0 {
		return nil
	}
	return below
}

func mergeOwners(is []metav1.OwnerReference, want metav1.OwnerReference) []metav1.OwnerReference {
	merged := slices.Clone(is)
	for i := range merged {
		if merged[i].UID == want.UID {
			merged[i] = want
		}
	}
	return merged
}
