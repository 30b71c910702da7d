package graph

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/conditions"
)

// classes are all GatewayClasses: ours as nodes, others with the reason, and who controls each.
type classes struct {
	ours        []*GatewayClass
	others      []*Unclaimed
	byName      map[string]*GatewayClass
	controllers map[string]gatewayv1.GatewayController
	// haproxy is what one HAProxy has only once.
	haproxy HAProxyParameters
}

// newClasses takes over the nodes of classes that did not change.
func newClasses(all cluster.Objects[*gatewayv1.GatewayClass], controller string, found parameterReader, last classes) classes {
	result := classes{
		byName:      make(map[string]*GatewayClass),
		controllers: make(map[string]gatewayv1.GatewayController),
	}
	for _, source := range all.All() {
		if _, known := result.controllers[source.Name]; known {
			continue
		}
		result.controllers[source.Name] = source.Spec.ControllerName
		if string(source.Spec.ControllerName) != controller {
			result.others = append(result.others, &Unclaimed{Kind: "GatewayClass", Name: source.Name,
				Message: fmt.Sprintf("its controllerName is %q, not %s.", source.Spec.ControllerName, controller)})
			continue
		}
		result.ours = append(result.ours, newGatewayClass(source, found))
	}
	result.settle()
	for i, node := range result.ours {
		if was := last.byName[node.Source.Name]; was != nil && was.Source == node.Source && reflect.DeepEqual(was, node) {
			result.ours[i] = was
		}
		result.byName[node.Source.Name] = result.ours[i]
	}
	return result
}

func newGatewayClass(source *gatewayv1.GatewayClass, found parameterReader) *GatewayClass {
	class := &GatewayClass{Source: source}
	accepted := conditions.GatewayClassAccepted(source.Generation)
	if wrong := class.readParameters(found); wrong != "" {
		accepted = conditions.GatewayClassInvalidParameters(source.Generation, "spec.parametersRef "+wrong+".")
	}
	class.Accepted = accepted.Status == metav1.ConditionTrue
	class.Conditions = []metav1.Condition{accepted, conditions.GatewayClassSupportedVersion(source.Generation)}
	return class
}

// readParameters says what is wrong with the class's parametersRef.
func (c *GatewayClass) readParameters(found parameterReader) (wrong string) {
	ref := c.Source.Spec.ParametersRef
	if ref == nil {
		return ""
	}
	if ref.Namespace == nil && ref.Kind == kindParameters {
		return "has no namespace: say in which one the " + kindParameters + " is"
	}
	c.parameters, wrong = found.find(ref.Group, ref.Kind, types.NamespacedName{
		Namespace: string(valueOr(ref.Namespace, "")), Name: ref.Name})
	return wrong
}

// settle lets the oldest class that sets anything of what one HAProxy has only once decide it. Others that want it
// different are told so.
func (c *classes) settle() {
	var decides *GatewayClass
	for _, class := range c.ours {
		if class.setsHAProxy() && (decides == nil || older(class.Source, decides.Source) < 0) {
			decides = class
		}
	}
	if decides == nil {
		return
	}
	c.haproxy = decides.parameters.haproxy
	for _, class := range c.ours {
		if class.setsHAProxy() && class.parameters.haproxy != c.haproxy {
			class.Conditions = append(class.Conditions, conditions.Ignored(class.Source.Generation, fmt.Sprintf(
				"spec.haproxy of %s %s is ignored: one HAProxy serves all classes, and GatewayClass %q, which is older, decides.",
				kindParameters, nameOf(class.parameters.source), decides.Source.Name)))
		}
	}
}

func (c *GatewayClass) setsHAProxy() bool {
	return c.parameters != nil && c.parameters.haproxy != HAProxyParameters{}
}

// unclaimed says why a Gateway is not ours.
func (c classes) unclaimed(gateway *gatewayv1.Gateway, controller string) *Unclaimed {
	class := string(gateway.Spec.GatewayClassName)
	message := fmt.Sprintf("no GatewayClass named %q exists: add one with controllerName %s.", class, controller)
	if other, found := c.controllers[class]; found {
		message = fmt.Sprintf("its GatewayClass %q has controllerName %q, not %s.", class, other, controller)
	}
	return &Unclaimed{Kind: "Gateway", Namespace: gateway.Namespace, Name: gateway.Name, Message: message}
}
