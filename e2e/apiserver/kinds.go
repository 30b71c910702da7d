package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one kind of objects.
type kind struct {
	group, name, plural string
	// versions that are served; their fields are the same, so an object is stored without one.
	versions      []string
	clusterScoped bool
	// schema is what a CustomResourceDefinition says; nil for what Kubernetes brings along.
	schema *customSchema
	// finish fills in what the API server would.
	finish func(content map[string]any)
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.plural}
}

// builtin are the kinds of Kubernetes' own that the suite and Limpet know.
func builtin() []*kind {
	return []*kind{
		{name: "Namespace", plural: "namespaces", versions: []string{"v1"}, clusterScoped: true, finish: finishNamespace},
		{name: "Pod", plural: "pods", versions: []string{"v1"}},
		{name: "Service", plural: "services", versions: []string{"v1"}, finish: finishService},
		{name: "ServiceAccount", plural: "serviceaccounts", versions: []string{"v1"}},
		{name: "Secret", plural: "secrets", versions: []string{"v1"}},
		{name: "ConfigMap", plural: "configmaps", versions: []string{"v1"}},
		{name: "Deployment", group: "apps", plural: "deployments", versions: []string{"v1"}, finish: finishDeployment},
		{name: "EndpointSlice", group: "discovery.k8s.io", plural: "endpointslices", versions: []string{"v1"}, finish: finishSlice},
		{name: "CustomResourceDefinition", group: apiextensionsv1.GroupName, plural: "customresourcedefinitions",
			versions: []string{"v1"}, clusterScoped: true},
	}
}

func finishNamespace(content map[string]any) {
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	_ = unstructured.SetNestedField(content, name, "metadata", "labels", corev1.LabelMetadataName)
}

func finishService(content map[string]any) {
	setDefault(content, "ClusterIP", "spec", "type")
	for _, port := range maps(content, "spec", "ports") {
		setDefault(port, "TCP", "protocol")
		setDefault(port, port["port"], "targetPort")
	}
}

func finishDeployment(content map[string]any) { setDefault(content, int64(1), "spec", "replicas") }

func finishSlice(content map[string]any) {
	for _, port := range maps(content, "ports") {
		setDefault(port, "", "name")
		setDefault(port, "TCP", "protocol")
	}
}

func setDefault(content map[string]any, value any, path ...string) {
	if _, there, _ := unstructured.NestedFieldNoCopy(content, path...); !there && value != nil {
		_ = unstructured.SetNestedField(content, value, path...)
	}
}

// maps are the maps in a list.
func maps(content map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	list, _ := value.([]any)
	var all []map[string]any
	for _, item := range list {
		if m, is := item.(map[string]any); is {
			all = append(all, m)
		}
	}
	return all
}

// Mapper knows where each kind is served, so that clients need not ask.
func (s *Server) Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range s.kinds {
		scope := meta.RESTScopeNamespace
		if k.clusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, version := range k.versions {
			gv := schema.GroupVersion{Group: k.group, Version: version}
			mapper.AddSpecific(gv.WithKind(k.name), gv.WithResource(k.plural), gv.WithResource(k.plural), scope)
		}
	}
	return mapper
}
