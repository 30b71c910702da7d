package status

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// otherUpdate is for kinds that Limpet does not serve: the status has the form that the kind's has.
func (c *Computer) otherUpdate(other *graph.Other) *Update {
	update := &Update{Object: Object{other.APIVersion, other.Kind, other.Namespace, other.Name}}
	if strings.HasSuffix(other.Kind, "Route") {
		update.Status.Route = c.routeStatus(other.Parents)
	} else {
		update.Status.Policy = c.policyStatus(other.Parents)
	}
	return update
}

// reportedUpdate is for kinds that are reported by ancestor: the statuses of policies and XBackends have one form.
func (c *Computer) reportedUpdate(object *graph.Reported) *Update {
	state := &gatewayv1.PolicyStatus{}
	for _, ancestor := range object.Ancestors {
		state.Ancestors = append(state.Ancestors, gatewayv1.PolicyAncestorStatus{
			AncestorRef: ancestor.Ref, ControllerName: c.controller, Conditions: slices.Clone(ancestor.Conditions),
		})
	}
	return &Update{
		Object: Object{object.APIVersion, object.Kind, object.Source.GetNamespace(), object.Source.GetName()},
		Status: Status{Policy: state},
	}
}

func (c *Computer) routeStatus(parents []graph.OtherParent) *gatewayv1.RouteStatus {
	state := &gatewayv1.RouteStatus{}
	for _, parent := range parents {
		state.Parents = append(state.Parents, gatewayv1.RouteParentStatus{
			ParentRef: parent.Ref, ControllerName: c.controller, Conditions: slices.Clone(parent.Conditions),
		})
	}
	return state
}

func (c *Computer) policyStatus(ancestors []graph.OtherParent) *gatewayv1.PolicyStatus {
	state := &gatewayv1.PolicyStatus{}
	for _, ancestor := range ancestors {
		state.Ancestors = append(state.Ancestors, gatewayv1.PolicyAncestorStatus{
			AncestorRef: ancestor.Ref, ControllerName: c.controller, Conditions: slices.Clone(ancestor.Conditions),
		})
	}
	return state
}
