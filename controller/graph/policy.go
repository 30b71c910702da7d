package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// tlsPolicies are the BackendTLSPolicies by the Service that they target, as the names of its ports; "" is all of them.
// Limpet does not serve them yet, but must not send plain text where one demands TLS.
type tlsPolicies map[types.NamespacedName][]string

func (p tlsPolicies) add(policy *unstructured.Unstructured) {
	for _, target := range entries(field(policy.Object, "spec", "targetRefs")) {
		if text(target["group"]) != "" || text(target["kind"]) != "Service" {
			continue
		}
		service := types.NamespacedName{Namespace: policy.GetNamespace(), Name: text(target["name"])}
		p[service] = append(p[service], text(target["sectionName"]))
		slices.Sort(p[service])
		p[service] = slices.Compact(p[service])
	}
}

// covers says whether a policy targets the port of that name, or the whole Service.
func (p tlsPolicies) covers(service types.NamespacedName, port string) bool {
	for _, section := range p[service] {
		if section == "" || section == port {
			return true
		}
	}
	return false
}
