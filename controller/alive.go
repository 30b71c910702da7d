package controller

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/limpet-gateway/limpet/controller/replicas"
	"github.com/limpet-gateway/limpet/controller/status"
)

const (
	// beatEvery is how often an idle loop turns.
	beatEvery = 10 * time.Second
	// stuckAfter is longer than any turn takes.
	stuckAfter = 5 * time.Minute
)

// pulse is what others may know of a loop while it runs. The zero pulse has not beaten yet.
type pulse struct {
	turned  atomic.Int64
	problem atomic.Pointer[string]
	served  atomic.Pointer[replicas.Served]
}

func (p *pulse) beat() { p.turned.Store(time.Now().UnixNano()) }

// Alive says that the loop hangs, if it does. One that has not begun to turn is not expected to.
func (c *Controller) Alive() error {
	last := c.pulse.turned.Load()
	if since := time.Since(time.Unix(0, last)); last != 0 && since > stuckAfter {
		return fmt.Errorf("the loop has not turned for %s", since.Round(time.Second))
	}
	return nil
}

// Ready says why HAProxy does not serve the latest objects, if it does not.
func (c *Controller) Ready() error {
	problem := c.pulse.problem.Load()
	switch {
	case problem == nil:
		return errors.New("the objects of the cluster are not known yet")
	case *problem != "":
		return errors.New(*problem)
	}
	return nil
}

// Served is what this replica answers for.
func (c *Controller) Served() replicas.Served {
	if served := c.pulse.served.Load(); served != nil {
		return *served
	}
	return replicas.Served{}
}

// answer notes what others may ask for, and says who else is to serve it.
func (c *Controller) answer() {
	problem, served := c.result.Problem, replicas.Served(status.Served(c.wanted.graph, c.result))
	c.pulse.problem.Store(&problem)
	c.pulse.served.Store(&served)
	if c.options.Replicas != nil {
		c.options.Replicas.Set(otherReplicas(c.last, c.options.Pod), served)
	}
}
