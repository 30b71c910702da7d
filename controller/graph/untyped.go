package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// field follows a path through an object that may hold anything; nil if it ends.
func field(object any, path ...string) any {
	for _, name := range path {
		fields, isMap := object.(map[string]any)
		if !isMap {
			return nil
		}
		object = fields[name]
	}
	return object
}

// entries are the objects in a list.
func entries(list any) []map[string]any {
	var all []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, entry(item)...)
	}
	return all
}

// entry is an object as a list of one; empty if it is none.
func entry(item any) []map[string]any {
	if fields, isMap := item.(map[string]any); isMap {
		return []map[string]any{fields}
	}
	return nil
}

func text(value any) string {
	text, _ := value.(string)
	return text
}

// refOf reads a parentRef; an absent field stays absent, as status must repeat it.
func refOf(value any) gatewayv1.ParentReference {
	fields, _ := value.(map[string]any)
	return gatewayv1.ParentReference{
		Group:       optional[gatewayv1.Group](fields, "group"),
		Kind:        optional[gatewayv1.Kind](fields, "kind"),
		Namespace:   optional[gatewayv1.Namespace](fields, "namespace"),
		Name:        gatewayv1.ObjectName(text(fields["name"])),
		SectionName: optional[gatewayv1.SectionName](fields, "sectionName"),
		Port:        optionalPort(fields["port"]),
	}
}

func optional[T ~string](fields map[string]any, name string) *T {
	value, isText := fields[name].(string)
	if !isText {
		return nil
	}
	result := T(value)
	return &result
}

// number takes the types that decoders of YAML and JSON use.
func number(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case float64:
		return int64(value), true
	}
	return 0, false
}

func optionalPort(value any) *gatewayv1.PortNumber {
	if value, isNumber := number(value); isNumber {
		port := gatewayv1.PortNumber(value)
		return &port
	}
	return nil
}

func generationOf(object *unstructured.Unstructured) int64 {
	generation, _ := number(field(object.Object, "metadata", "generation"))
	return generation
}

func isGateway(ref gatewayv1.ParentReference) bool {
	return valueOr(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName && valueOr(ref.Kind, kindGateway) == kindGateway
}

func isListenerSet(ref gatewayv1.ParentReference) bool {
	return valueOr(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName && valueOr(ref.Kind, "") == kindListenerSet
}

func gatewayName(namespace string, ref gatewayv1.ParentReference) types.NamespacedName {
	return types.NamespacedName{
		Namespace: string(valueOr(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name),
	}
}

func conditionList(all ...metav1.Condition) []metav1.Condition { return all }
