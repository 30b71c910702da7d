package graph

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// namespaces are looked up for the labels that a listener's allowedRoutes may select by.
type namespaces struct {
	all cluster.Objects[*corev1.Namespace]
}

// labels of a namespace, with the one that every namespace has. Files often have no Namespace objects: that one suffices
// to select by name.
func (n namespaces) labels(name string) labels.Set {
	set := labels.Set{}
	if namespace, found := n.all.Get("", name); found {
		maps.Copy(set, namespace.Labels)
	}
	set[corev1.LabelMetadataName] = name
	return set
}
