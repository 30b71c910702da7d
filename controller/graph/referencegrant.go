package graph

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// referrer is the group, kind and namespace that a reference comes from.
type referrer struct{ group, kind, namespace string }

// objectKey names an object that another one refers to. The kinds that Limpet knows are unique without their group.
type objectKey struct{ kind, namespace, name string }

// grants are the ReferenceGrants by the namespace whose objects they open.
type grants map[string][]*gatewayv1beta1.ReferenceGrant

func newGrants(all cluster.Objects[*gatewayv1beta1.ReferenceGrant]) grants {
	byNamespace := make(grants)
	list := all.All()
	for i, grant := range list {
		if repeated(list, i) {
			continue
		}
		byNamespace[grant.Namespace] = append(byNamespace[grant.Namespace], grant)
	}
	return byNamespace
}

// permits says whether an object of the core group may be referred to: always from its own namespace, else by a
// ReferenceGrant there. It is asked before the object is looked up, so that nobody learns what another namespace holds.
func (g grants) permits(from referrer, to objectKey) bool {
	if from.namespace == to.namespace {
		return true
	}
	for _, grant := range g[to.namespace] {
		if grantsFrom(grant.Spec.From, from) && grantsTo(grant.Spec.To, to) {
			return true
		}
	}
	return false
}

func grantsFrom(entries []gatewayv1.ReferenceGrantFrom, from referrer) bool {
	for _, entry := range entries {
		if (referrer{string(entry.Group), string(entry.Kind), string(entry.Namespace)}) == from {
			return true
		}
	}
	return false
}

func grantsTo(entries []gatewayv1.ReferenceGrantTo, to objectKey) bool {
	for _, entry := range entries {
		// An entry without a name opens all objects of the kind; the empty name, which an API server refuses, opens none.
		if entry.Group == "" && string(entry.Kind) == to.kind && (entry.Name == nil || string(*entry.Name) == to.name) {
			return true
		}
	}
	return false
}
