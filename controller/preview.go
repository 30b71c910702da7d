package controller

import (
	"maps"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/templates"
)

// Preview is what a Snapshot would come to, without an HAProxy.
type Preview struct {
	Graph *graph.Graph
	// Set are the files that HAProxy would get, on a first start with Placement.
	Set       files.Set
	Placement placement.Placement
	// Updates are the statuses as if HAProxy had taken it, in order.
	Updates []*status.Update
	// LeftOut says what HAProxy would not get, by owner.
	LeftOut map[model.Owner]string
}

// NewPreview takes a Snapshot through all stages but the last.
func NewPreview(s cluster.Snapshot, g graph.Options, t translate.Options, settings templates.Settings) (*Preview, error) {
	if g.ControllerName == "" {
		g.ControllerName = graph.DefaultControllerName
	}
	stages := newPipeline(g, t)
	w, err := stages.run(s)
	if err != nil {
		return nil, err
	}
	p := &Preview{Graph: w.graph, LeftOut: w.faults}
	var renderErr error
	if err := protect(func() { renderErr = p.render(w.config, settings) }); err != nil {
		return nil, err
	}
	if renderErr != nil {
		return nil, renderErr
	}
	p.Updates = stages.status(w, status.Result{Running: w.graph, LeftOut: p.LeftOut, Now: time.Now()})
	status.Sort(p.Updates)
	return p, nil
}

func (p *Preview) render(config model.Config, settings templates.Settings) error {
	renderer, err := templates.NewRenderer(settings)
	if err != nil {
		return err
	}
	p.Placement = firstPlacement(config)
	set, faults, err := renderer.Render(config, p.Placement)
	if err != nil {
		return err
	}
	p.Set = set
	for _, fault := range faults {
		p.leaveOut(string(fault.Owner), fault.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(set.Maps)) {
		for _, e := range set.Maps[name].Sorted() {
			if err := files.CheckEntry(e.Key, e.Value.Value); err != nil {
				p.leaveOut(e.Value.Owner, err.Error())
			}
		}
	}
	for _, e := range set.Servers.Sorted() {
		if err := e.Value.Check(); err != nil {
			p.leaveOut(e.Value.Owner, err.Error())
		}
	}
	return nil
}

// leaveOut notes what HAProxy would not get. An owner has one word on it: the first.
func (p *Preview) leaveOut(owner, message string) {
	if _, said := p.LeftOut[model.Owner(owner)]; !said {
		p.LeftOut[model.Owner(owner)] = message
	}
}

// firstPlacement is that of a first start.
func firstPlacement(config model.Config) placement.Placement {
	place := placement.Placement{}.Update(placement.Backends(config), nil).Grown()
	place.Cookies, place.Headers = placement.Names(config)
	return place
}
