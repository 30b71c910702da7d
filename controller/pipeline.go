package controller

import (
	"fmt"
	"runtime/debug"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
)

// wanted is what a Snapshot comes to.
type wanted struct {
	graph  *graph.Graph
	config model.Config
	// faults are parts of objects that the configuration leaves out.
	faults map[model.Owner]string
}

// pipeline is the pure stages, with what they remember.
type pipeline struct {
	graphOptions     graph.Options
	translateOptions translate.Options
	builder          *graph.Builder
	translator       *translate.Translator
	computer         *status.Computer
}

func newPipeline(g graph.Options, t translate.Options) *pipeline {
	return &pipeline{g, t, graph.NewBuilder(g), translate.New(t), status.NewComputer(g.ControllerName)}
}

// PanicError is a stage that gave up on a Snapshot: a mistake of ours, found by what somebody wrote.
type PanicError struct {
	Value any
	Stack string
}

// Error is what the panic said, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("a mistake in Limpet: %v", e.Value) }

// protect runs a function, whose panic becomes an error.
func protect(run func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, string(debug.Stack())}
		}
	}()
	run()
	return nil
}

// run takes a Snapshot through the stages. After a panic they begin anew: what they remembered may be half of something.
func (p *pipeline) run(s cluster.Snapshot) (w *wanted, err error) {
	err = protect(func() {
		g := p.builder.Build(s)
		w = &wanted{graph: g, config: p.translator.Config(g), faults: map[model.Owner]string{}}
		for _, fault := range p.translator.Faults() {
			w.faults[fault.Owner] = join(w.faults[fault.Owner], fault.Message)
		}
	})
	if err != nil {
		*p = *newPipeline(p.graphOptions, p.translateOptions)
		return nil, err
	}
	return w, nil
}

// status says what each object is told.
func (p *pipeline) status(w *wanted, r status.Result) []*status.Update {
	return p.computer.Compute(w.graph, r)
}

// forgetStatus begins anew with statuses: after a panic, what is remembered may be half of something.
func (p *pipeline) forgetStatus() { p.computer = status.NewComputer(p.graphOptions.ControllerName) }

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}
