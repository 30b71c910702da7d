package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
)

// Served leads from the UID of each Gateway that HAProxy serves, be it in part, to its generation: what this replica answers for.
func Served(g *graph.Graph, r Result) map[string]int64 {
	r.Lagging, r.Exposures = nil, nil // what others do is theirs to answer for
	served := map[string]int64{}
	for _, gateway := range g.Gateways {
		if !gateway.Valid {
			continue
		}
		all := gatewayConditions(gateway, gatewayInputOf(g, gateway, r))
		if slices.ContainsFunc(all, isProgrammed) {
			served[string(gateway.Source.UID)] = gateway.Source.Generation
		}
	}
	return served
}

func isProgrammed(c metav1.Condition) bool {
	return c.Type == string(gatewayv1.GatewayConditionProgrammed) && c.Status == metav1.ConditionTrue
}
