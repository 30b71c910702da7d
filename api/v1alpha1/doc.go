// Package v1alpha1 is Limpet's own kinds, of the API group limpet.dev.
//
// What users write comes in as these types; CRDs and deep copies are generated from them. It must never hold a field that
// has no effect, and never hold logic: graph says what the fields mean.
//
// +kubebuilder:object:generate=true
// +groupName=limpet.dev
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate bash -c "$(../../hack/tools.sh controller-gen) object crd:maxDescLen=2000 paths=. output:crd:dir=../../charts/limpet/crds"
//go:generate go run ../../hack/reference

// GroupVersion is the API group and version of these kinds.
var GroupVersion = schema.GroupVersion{Group: "limpet.dev", Version: "v1alpha1"}

// AddToScheme makes these kinds known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &LimpetParameters{}, &LimpetParametersList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
