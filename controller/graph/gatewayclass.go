package graph

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

// newClasses takes over the nodes of classes that did not change.
func newClasses(all cluster.Objects[*gatewayv1.GatewayClass], controller string, last classes) classes {
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
		node := last.byName[source.Name]
		if node == nil || node.Source != source {
			node = newGatewayClass(source)
		}
		result.ours = append(result.ours, node)
		result.byName[source.Name] = node
	}
	return result
}

func newGatewayClass(source *gatewayv1.GatewayClass) *GatewayClass {
	accepted := conditions.GatewayClassAccepted(source.Generation)
	if ref := source.Spec.ParametersRef; ref != nil {
		accepted = conditions.GatewayClassInvalidParameters(source.Generation, fmt.Sprintf(
			"spec.parametersRef names %s %q, but parameters are not built yet: leave parametersRef out.", ref.Kind, ref.Name))
	}
	return &GatewayClass{Source: source, Accepted: accepted.Status == metav1.ConditionTrue, Conditions: []metav1.Condition{
		accepted, conditions.GatewayClassSupportedVersion(source.Generation),
	}}
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
