package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/expose"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// TestAGatewayIsProgrammedOnlyWhenClientsReachIt: in a cluster its address is what its Service has.
func TestAGatewayIsProgrammedOnlyWhenClientsReachIt(t *testing.T) {
	t.Parallel()

	g := newStage(t).build(base)
	kind := gatewayv1.IPAddressType
	exposed := func(exposure expose.Exposure) []*Update {
		return Compute(graph.DefaultControllerName, g, Result{Running: g,
			Exposures: map[types.NamespacedName]expose.Exposure{{Namespace: "default", Name: "gw"}: exposure}})
	}
	without := exposed(expose.Exposure{Reason: gatewayv1.GatewayReasonAddressNotAssigned, Problem: "Service gw-limpet is not there yet."})
	wantLines(t, without,
		"Gateway default/gw||Accepted=True Accepted",
		"Gateway default/gw||Programmed=False AddressNotAssigned|Service gw-limpet is not there yet.",
		"Gateway default/gw|listener http|Programmed=False Pending|clients do not reach the Gateway: Service gw-limpet",
	)
	if addresses := without[1].Status.Gateway.Addresses; len(addresses) != 0 {
		t.Errorf("addresses without a Service: %v", addresses)
	}
	with := exposed(expose.Exposure{Addresses: []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: "10.96.0.9"}}})
	wantLines(t, with, "Gateway default/gw||Programmed=True Programmed", "Gateway default/gw|listener http|Programmed=True Programmed")
	if addresses := with[1].Status.Gateway.Addresses; len(addresses) != 1 || addresses[0].Value != "10.96.0.9" {
		t.Errorf("addresses: %v", addresses)
	}
}
