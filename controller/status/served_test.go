package status

import (
	"maps"
	"testing"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

func TestAGatewayIsProgrammedOnlyWhenAllReplicasServeIt(t *testing.T) {
	t.Parallel()

	s := newStage(t)
	g := s.build(base + route("r", ""))
	gateway := g.Gateways[0].Source
	gateway.UID, gateway.Generation = "u-1", 3
	served := Served(g, Result{Running: g})
	if want := map[string]int64{"u-1": 3}; !maps.Equal(served, want) {
		t.Errorf("served %v, want %v", served, want)
	}
	computer := NewComputer(graph.DefaultControllerName)
	lagging := Result{Running: g, Lagging: map[string]string{"u-1": "these replicas do not serve it: limpet-b"}}
	wantLines(t, computer.Compute(g, lagging),
		"Gateway default/gw||Programmed=False Pending|This replica of Limpet serves this generation; these replicas do not serve it: limpet-b.",
		"Gateway default/gw|listener http|Programmed=True Programmed",
	)
	if again := Served(g, lagging); !maps.Equal(again, served) {
		t.Errorf("what others do changed what this replica answers for: %v", again)
	}
	wantLines(t, computer.Compute(g, Result{Running: g}), "Gateway default/gw||Programmed=True Programmed")
	refused := Result{Running: g, LeftOut: map[model.Owner]string{"Gateway default/gw": "it is refused"}}
	for _, r := range []Result{{}, refused} {
		if served := Served(g, r); len(served) > 0 {
			t.Errorf("served %v by %+v, want nothing", served, r)
		}
	}
}
