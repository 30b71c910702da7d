package controller

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane"
)

// Step rebuilds from a Snapshot, applies what comes of it and writes the statuses. It logs what fails; Run tries it
// again.
func (c *Controller) Step(ctx context.Context, s cluster.Snapshot) error {
	start := time.Now()
	w, err := c.pipeline.run(s)
	c.options.Metrics.Rebuilt(time.Since(start), err != nil, s.Counts())
	if err != nil {
		var changed []string
		_ = protect(func() { changed = changedObjects(c.last, s) })
		c.logPanic(err, "this change is left out, what was there before goes on", changed)
		return err
	}
	c.last, c.wanted = s, w
	c.expose(s)
	return c.apply(ctx, start)
}

// expose tells the Exposer, if there is one.
func (c *Controller) expose(s cluster.Snapshot) {
	if c.options.Exposer == nil {
		return
	}
	if err := protect(func() { c.options.Exposer.Expose(c.wanted.graph, s) }); err != nil {
		c.logPanic(err, "Services and their endpoints stay as they are", nil)
	}
}

// again does what failed once more.
func (c *Controller) again(ctx context.Context) {
	if c.wanted != nil {
		_ = c.apply(ctx, time.Now())
	}
}

// tellAgain writes statuses for what neither objects nor the Engine have changed: time, what the Exposer met with, or another replica.
func (c *Controller) tellAgain(ctx context.Context) {
	if c.wanted != nil {
		_ = c.writeStatus(ctx)
	}
}

func (c *Controller) apply(ctx context.Context, start time.Time) error {
	applying, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var r dataplane.Result
	if err := protect(func() { r = c.options.Engine.Apply(applying, c.wanted.config) }); err != nil {
		c.logPanic(err, "HAProxy keeps what it has", nil)
		r = dataplane.Result{Revision: c.revision, Err: err}
	}
	if ctx.Err() != nil {
		return ctx.Err() // Limpet ends: that is no failure to report.
	}
	return c.settle(ctx, r, time.Since(start))
}

// reported takes what the Engine did by itself. A Result that is older than one we know says nothing new.
func (c *Controller) reported(ctx context.Context, r dataplane.Result) {
	if c.wanted == nil || r.Revision < c.revision {
		return
	}
	_ = c.settle(ctx, r, 0)
}

// settle takes in a Result and writes the statuses.
func (c *Controller) settle(ctx context.Context, r dataplane.Result, took time.Duration) error {
	c.revision = max(c.revision, r.Revision)
	c.logResult(r, took)
	defer func() { c.options.Metrics.Applied(r, took, len(c.result.LeftOut)) }()
	c.result.LeftOut = maps.Clone(c.wanted.faults)
	for owner, words := range r.LeftOut {
		c.result.LeftOut[model.Owner(owner)] = join(c.result.LeftOut[model.Owner(owner)], words)
	}
	if r.Err == nil {
		c.logListening(c.wanted.graph, c.result.LeftOut)
		c.result.Running, c.result.Problem = c.wanted.graph, ""
	} else {
		c.result.Problem = r.Err.Error()
	}
	c.answer()
	err := errors.Join(r.Err, c.writeStatus(ctx))
	if err == nil {
		c.failures = 0
	} else {
		c.failures++
	}
	return err
}

func (c *Controller) writeStatus(ctx context.Context) error {
	c.result.Now = time.Now()
	if c.options.Exposer != nil {
		c.result.Exposures = c.options.Exposer.Exposures()
	}
	if c.options.Replicas != nil {
		c.result.Lagging = c.options.Replicas.Lagging()
		c.options.Metrics.Lagging(len(c.result.Lagging))
	}
	c.logExpired(c.wanted.graph, c.result.Now)
	var err error
	if panicked := protect(func() {
		err = c.options.Status.Write(ctx, c.pipeline.status(c.wanted, c.result))
	}); panicked != nil {
		c.logPanic(panicked, "statuses are not written", nil)
		c.pipeline.forgetStatus()
		return panicked
	}
	if err != nil {
		c.log.Error("statuses are not written", "error", err)
	}
	return err
}
