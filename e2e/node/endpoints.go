package node

import (
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/limpet-gateway/limpet/e2e/apiserver"
)

// managedBy is what the slices of this package say of who keeps them.
const managedBy = "endpointslice-controller.k8s.io"

// keepSlices keeps one EndpointSlice for each Service with a selector.
func (n *Node) keepSlices() error {
	all, err := apiserver.As[corev1.Service](n.options.Server, services)
	if err != nil {
		return err
	}
	there, err := apiserver.As[corev1.Pod](n.options.Server, pods)
	if err != nil {
		return err
	}
	wanted := map[types.NamespacedName]bool{}
	for _, service := range all {
		if len(service.Spec.Selector) == 0 {
			continue
		}
		slice := sliceOf(service, there)
		wanted[types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}] = true
		object, err := untyped(slice, slices)
		if err != nil {
			return err
		}
		if err := n.options.Server.Apply(object); err != nil {
			return err
		}
	}
	return n.dropSlices(wanted)
}

func (n *Node) dropSlices(wanted map[types.NamespacedName]bool) error {
	for _, slice := range n.options.Server.List(slices) {
		name := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetName()}
		if slice.GetLabels()[discoveryv1.LabelManagedBy] == managedBy && !wanted[name] {
			if err := n.options.Server.Delete(slices, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func sliceOf(service *corev1.Service, all []*corev1.Pod) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-" + suffix(service),
			Labels:          map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: managedBy},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, services)},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		slice.Labels[corev1.IsHeadlessService] = ""
	}
	var one *corev1.Pod
	for _, pod := range all {
		selected := labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
		if pod.Namespace != service.Namespace || !selected || pod.Status.PodIP == "" || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		one = pod
		slice.Endpoints = append(slice.Endpoints, endpointOf(pod))
	}
	for _, port := range service.Spec.Ports {
		slice.Ports = append(slice.Ports, portOf(port, one))
	}
	return slice
}

func endpointOf(pod *corev1.Pod) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{pod.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		NodeName:   new(Name),
		TargetRef:  &corev1.ObjectReference{Kind: pods.Kind, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
}

// portOf is a Service's port as its pods have it. A named port is looked up in one of them.
func portOf(port corev1.ServicePort, pod *corev1.Pod) discoveryv1.EndpointPort {
	number := int32(port.TargetPort.IntValue())
	if port.TargetPort.Type == intstr.String && pod != nil {
		for _, container := range pod.Spec.Containers {
			for _, candidate := range container.Ports {
				if candidate.Name == port.TargetPort.StrVal {
					number = candidate.ContainerPort
				}
			}
		}
	}
	return discoveryv1.EndpointPort{Name: new(port.Name), Port: new(number), Protocol: new(port.Protocol), AppProtocol: port.AppProtocol}
}

// suffix tells the slice of a Service from that of an older one of its name.
func suffix(service *corev1.Service) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(service.UID))
	return strconv.FormatUint(uint64(sum.Sum32())%(36*36*36*36*36), 36)
}
