package serve

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

var gateways = gateway("Gateway")

func gateway(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: gatewayv1.GroupVersion.Version, Kind: kind}
}

// kinds are those that Limpet gets to see.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	gateway("GatewayClass"),
	gateways,
	gateway("ListenerSet"),
	gateway("HTTPRoute"),
	gateway("GRPCRoute"),
	gateway("TLSRoute"),
	gateway("TCPRoute"),
	gateway("UDPRoute"),
	gateway("BackendTLSPolicy"),
	gateway("ReferenceGrant"),
	{Group: gatewayxv1alpha1.GroupName, Version: "v1alpha1", Kind: "XBackend"},
	corev1.SchemeGroupVersion.WithKind("Service"),
	discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Pod"),
}

// written is an object that Limpet has.
type written struct {
	uid     types.UID
	version string
}

// writeObjects makes the folder hold what the Server holds.
func (l *Limpet) writeObjects() error {
	there := map[string]bool{}
	for _, kind := range kinds {
		for _, object := range l.options.Server.List(kind) {
			file := fileName(kind, object)
			has, known := l.written[file]
			if !known && l.reported[file] || known && has.uid != object.GetUID() {
				// An object of that name was deleted just now: Limpet must have seen that first, or it would take this one for it.
				continue
			}
			there[file] = true
			if has.version == object.GetResourceVersion() {
				continue
			}
			if err := l.writeObject(file, object); err != nil {
				return err
			}
			l.written[file] = written{object.GetUID(), object.GetResourceVersion()}
		}
	}
	return l.removeObjects(there)
}

// removeObjects removes all but these, and then writes what waited for that.
func (l *Limpet) removeObjects(there map[string]bool) error {
	removed := false
	for file := range l.written {
		if !there[file] {
			removed = true
			delete(l.written, file)
			if err := os.Remove(filepath.Join(l.objects(), file)); err != nil {
				return err
			}
		}
	}
	if removed {
		return l.writeObjects()
	}
	return nil
}

// fileName is the name of an object's file. File systems take 255 bytes; names of objects can have as many.
func fileName(kind schema.GroupVersionKind, object *unstructured.Unstructured) string {
	name := object.GetName()
	if len(name) > 150 {
		name = fmt.Sprintf("%s_%x", name[:100], sha256.Sum256([]byte(name)))
	}
	return fmt.Sprintf("%s_%s_%s.json", kind.Kind, object.GetNamespace(), name)
}

// writeObject writes an object in one step, and without its status, which Limpet has no use for.
func (l *Limpet) writeObject(file string, object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	if strings.Contains(object.GroupVersionKind().Group, "gateway.") {
		delete(object.Object, "status")
	}
	if object.GetKind() == gateways.Kind {
		if err := l.address(object); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(l.options.Dir, "next.json")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(l.objects(), file))
}

// address gives a Gateway that asks for none an address.
func (l *Limpet) address(object *unstructured.Unstructured) error {
	if asked, _, _ := unstructured.NestedSlice(object.Object, "spec", "addresses"); len(asked) > 0 {
		return nil
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if _, known := l.addresses[name]; !known {
		l.addresses[name] = l.next
		if l.next = l.next.Next(); !l.options.Gateways.Contains(l.next) {
			return fmt.Errorf("no addresses for Gateways are left in %s", l.options.Gateways)
		}
	}
	address := map[string]any{"type": string(gatewayv1.IPAddressType), "value": l.addresses[name].String()}
	return unstructured.SetNestedSlice(object.Object, []any{address}, "spec", "addresses")
}
