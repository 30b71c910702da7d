package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	strictjson "sigs.k8s.io/json"

	limpetv1alpha1 "github.com/limpet-gateway/limpet/api/v1alpha1"
)

// kind is one kind of objects and how to read it.
type kind struct {
	name, group string
	// versions that are read, the first is the one that the object then says to have. Their fields are the same.
	versions      []string
	clusterScoped bool
	// names says what is wrong with a name.
	names func(string) []string
	// objects are those of the kind in a Snapshot.
	objects list
	// ours are those of Limpet itself in a cluster, which isOurs tells apart.
	ours   list
	isOurs func(metav1.Object) bool
	// own says that in a cluster only objects of our own namespace are read, and of them those that are ours.
	own bool
	// content says that the content of an object is read only if some object names it.
	content bool
	// finish does to an object what an API server would.
	finish func(anyObject)
}

// anyObject is what every object can do, typed or not.
type anyObject interface {
	metav1.Object
	runtime.Object
}

const (
	gatewayGroup      = "gateway.networking.k8s.io"
	discoveryGroup    = "discovery.k8s.io"
	experimentalGroup = "gateway.networking.x-k8s.io"
	limpetGroup       = "limpet.dev"
)

var (
	subdomain = validation.IsDNS1123Subdomain
	label     = validation.IsDNS1123Label

	kinds = []*kind{
		{name: "GatewayClass", group: gatewayGroup, versions: []string{"v1", "v1beta1"}, clusterScoped: true, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.GatewayClass] { return &s.GatewayClasses })},
		{name: "Gateway", group: gatewayGroup, versions: []string{"v1", "v1beta1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.Gateway] { return &s.Gateways })},
		{name: "ListenerSet", group: gatewayGroup, versions: []string{"v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.ListenerSet] { return &s.ListenerSets })},
		{name: "HTTPRoute", group: gatewayGroup, versions: []string{"v1", "v1beta1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.HTTPRoute] { return &s.HTTPRoutes })},
		{name: "GRPCRoute", group: gatewayGroup, versions: []string{"v1", "v1alpha2"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.GRPCRoute] { return &s.GRPCRoutes })},
		{name: "TLSRoute", group: gatewayGroup, versions: []string{"v1", "v1alpha3", "v1alpha2"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.TLSRoute] { return &s.TLSRoutes })},
		{name: "TCPRoute", group: gatewayGroup, versions: []string{"v1", "v1alpha2"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.TCPRoute] { return &s.TCPRoutes })},
		{name: "ReferenceGrant", group: gatewayGroup, versions: []string{"v1beta1", "v1alpha2", "v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1beta1.ReferenceGrant] { return &s.ReferenceGrants })},
		{name: "Namespace", versions: []string{"v1"}, clusterScoped: true, names: label,
			objects: in(func(s *Snapshot) *Objects[*corev1.Namespace] { return &s.Namespaces }), finish: labelNamespace},
		{name: "Service", versions: []string{"v1"}, names: label,
			objects: in(func(s *Snapshot) *Objects[*corev1.Service] { return &s.Services }),
			ours:    in(func(s *Snapshot) *Objects[*corev1.Service] { return &s.Exposed.Services }), isOurs: IsExposed},
		{name: "Secret", versions: []string{"v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*corev1.Secret] { return &s.Secrets }), content: true, finish: mergeStringData},
		{name: "ConfigMap", versions: []string{"v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*corev1.ConfigMap] { return &s.ConfigMaps }), content: true},
		{name: "XBackend", group: experimentalGroup, versions: []string{"v1alpha1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayxv1alpha1.XBackend] { return &s.XBackends })},
		{name: "Pod", versions: []string{"v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*corev1.Pod] { return &s.Pods }), own: true,
			ours: in(func(s *Snapshot) *Objects[*corev1.Pod] { return &s.Replicas }), isOurs: func(metav1.Object) bool { return true }},
		{name: "BackendTLSPolicy", group: gatewayGroup, versions: []string{"v1", "v1alpha3"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*gatewayv1.BackendTLSPolicy] { return &s.Policies })},
		{name: "LimpetParameters", group: limpetGroup, versions: []string{"v1alpha1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*limpetv1alpha1.LimpetParameters] { return &s.Parameters })},
		{name: "EndpointSlice", group: discoveryGroup, versions: []string{"v1"}, names: subdomain,
			objects: in(func(s *Snapshot) *Objects[*discoveryv1.EndpointSlice] { return &s.EndpointSlices }),
			ours:    in(func(s *Snapshot) *Objects[*discoveryv1.EndpointSlice] { return &s.Exposed.EndpointSlices }), isOurs: IsExposed},
	}
)

// lists are all in which objects of the kind are.
func (k *kind) lists() []list {
	if k.ours == nil {
		return []list{k.objects}
	}
	return []list{k.objects, k.ours}
}

// edit changes the objects of the kind in a Snapshot of a cluster, each in the list where it belongs.
func (k *kind) edit(now *Snapshot, changes map[types.NamespacedName]anyObject) {
	if k.ours == nil {
		k.objects.edit(now, changes)
		return
	}
	ours, theirs := maps.Clone(changes), maps.Clone(changes)
	for name, object := range changes {
		if object != nil && k.isOurs(object) {
			theirs[name] = nil
		} else {
			ours[name] = nil
		}
	}
	k.objects.edit(now, theirs)
	k.ours.edit(now, ours)
}

// schema is what objects of the kind say to be.
func (k *kind) schema() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.versions[0], Kind: k.name}
}

// apiVersion is the one that objects of the kind say to have.
func (k *kind) apiVersion() string { return k.schema().GroupVersion().String() }

// kindOf finds a kind that we read. An apiVersion that is almost right is an error: silence would help nobody.
func kindOf(apiVersion, name string) (*kind, error) {
	group, version, slash := strings.Cut(apiVersion, "/")
	if !slash {
		group, version = "", apiVersion
	}
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	if i < 0 {
		return nil, nil //nolint:nilnil // a kind of others is no error
	}
	k := kinds[i]
	switch {
	case k.group == group && slices.Contains(k.versions, version):
		return k, nil
	case k.group == group, group == "", strings.HasPrefix(group, "gateway."):
		return nil, fmt.Errorf("there is no %s in apiVersion %s: write apiVersion: %s", name, apiVersion, k.apiVersion())
	default:
		return nil, nil //nolint:nilnil // another's kind of the same name
	}
}

// decode reads JSON into a fresh object. The first errors are fields that it does not have.
func (k *kind) decode(data []byte) (anyObject, []error, error) {
	object := k.objects.fresh()
	unknown, err := strictjson.UnmarshalStrict(data, object, strictjson.DisallowUnknownFields)
	return object, unknown, err
}

func untyped(data []byte) (anyObject, []error, error) {
	// Metadata has the same form everywhere.
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(data, &metav1.PartialObjectMetadata{}); err != nil {
		return nil, nil, err
	}
	var content map[string]any
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil {
		return nil, nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil, nil
}

func labelNamespace(object anyObject) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = object.GetName()
	object.SetLabels(labels)
}

func mergeStringData(object anyObject) {
	secret, _ := object.(*corev1.Secret)
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
