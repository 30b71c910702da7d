package dataplane

import (
	"context"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// Counters are HAProxy's, with what its sections stand for.
type Counters struct {
	// Figures are those of the process, Stats those of its sections and servers.
	Figures map[string]float64
	Stats   []haproxy.Stat
	// Ports leads from a frontend to the port that it serves; Backends from a slot to the backend in it.
	Ports    map[string]model.Port
	Backends map[string]*model.Backend
}

// naming says what sections stand for: what was rendered last.
type naming struct {
	config model.Config
	place  placement.Placement
}

// Counters asks HAProxy, without the loop: however long that takes, it holds nothing up.
func (e *Engine) Counters(ctx context.Context) (Counters, error) {
	client := haproxy.NewClient(haproxy.AdminSocket(e.options.Dir))
	figures, err := client.Figures(ctx)
	if err != nil {
		return Counters{}, err
	}
	stats, err := client.Stats(ctx)
	if err != nil {
		return Counters{}, err
	}
	counters := Counters{Figures: figures, Stats: stats, Ports: map[string]model.Port{}, Backends: map[string]*model.Backend{}}
	named := e.naming.Load()
	if named == nil {
		return counters, nil
	}
	for _, port := range named.config.Frame.Ports {
		counters.Ports[port.ID] = port
		counters.Ports[port.ID+"h"] = port
	}
	for _, e := range named.place.Slots() {
		if backend, is := named.config.Backends.Get(e.Key); is {
			counters.Backends[e.Value] = backend
		}
	}
	return counters, nil
}
