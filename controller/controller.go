// Package controller is the loop that all forms of Limpet share: Snapshots in, HAProxy and statuses out.
//
// It wires the stages together and owns what happens between them: of several Snapshots the newest counts, what fails is
// tried again, and a stage that panics over what somebody wrote costs that change and nothing else. It must never decide
// what an object means, and never keep quiet about what it could not do.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/expose"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/metrics"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/replicas"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane"
)

// Source is where Snapshots come from. Run emits the first one when it is complete, and ends when ctx does.
type Source interface {
	Run(ctx context.Context, emit func(cluster.Snapshot)) error
}

// Engine makes HAProxy serve a configuration.
type Engine interface {
	Apply(ctx context.Context, config model.Config) dataplane.Result
}

// StatusWriter takes the statuses of all objects.
type StatusWriter interface {
	Write(ctx context.Context, updates []*status.Update) error
}

// Exposer sees to it that clients arrive at the Gateways of a Graph.
type Exposer interface {
	// Expose is told of every Graph with the Snapshot that it was made from. It does not wait.
	Expose(g *graph.Graph, s cluster.Snapshot)
	// Exposures are the addresses of the last Graph's Gateways.
	Exposures() map[types.NamespacedName]expose.Exposure
}

// Replicas are told what this replica serves and which others are ready for traffic, and say which Gateways wait for others.
type Replicas interface {
	Set(others []replicas.Pod, served replicas.Served)
	Lagging() map[string]string
}

// Options are a Controller's; Source, Engine and Status are required.
type Options struct {
	Source Source
	Engine Engine
	Status StatusWriter
	// Exposer is nil where HAProxy itself binds the addresses of Gateways.
	Exposer   Exposer
	Graph     graph.Options
	Translate translate.Options
	// Replicas know who else serves what; nil where there is only this one. News is to be called when they know something new.
	Replicas Replicas
	// Metrics count what the loop does; nil counts nothing.
	Metrics *metrics.Metrics
	// Pod is the name of this replica among the Snapshot's.
	Pod string
	// Features are what our GatewayClasses publish; none where nobody asks for them.
	Features []gatewayv1.SupportedFeature
	// Log is silent if nil.
	Log *slog.Logger
	// Timeout bounds one attempt to apply; 30 s by default. The Engine goes on after it.
	Timeout time.Duration
	// Retry is how long to wait after the first failure, and RetryMost after many; 200 ms and 10 s by default.
	Retry, RetryMost time.Duration
}

// Controller runs the loop. Use it by one goroutine, but for Report, News, Served, Alive and Ready.
type Controller struct {
	options  Options
	log      *slog.Logger
	pipeline *pipeline
	reports  mailbox[dataplane.Result]
	pulse    pulse
	// news says that the Exposer or Replicas have something else to tell.
	news mailbox[struct{}]

	// last is the Snapshot that was rebuilt last without a panic.
	last cluster.Snapshot
	// wanted is what HAProxy is to serve; nothing before the first Snapshot.
	wanted *wanted
	// revision is the newest of the Engine's Results.
	revision uint64
	result   status.Result
	failures int
	// listening is where each Gateway was last said to listen.
	listening map[*graph.Gateway]string
	// expired are the certificates that were said to be.
	expired map[*graph.Certificate]bool
}

// New returns a Controller that has done nothing yet.
func New(options Options) *Controller {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Graph.ControllerName == "" {
		options.Graph.ControllerName = graph.DefaultControllerName
	}
	options.Timeout = or(options.Timeout, 30*time.Second)
	options.Retry = or(options.Retry, 200*time.Millisecond)
	options.RetryMost = or(options.RetryMost, 10*time.Second)
	c := &Controller{options: options, log: options.Log, reports: newMailbox[dataplane.Result](), news: newMailbox[struct{}]()}
	c.result.Features = options.Features
	c.pipeline = newPipeline(options.Graph, options.Translate)
	return c
}

func or(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}

// Report takes a Result that no Apply waited for: the Engine's OnResult. It never blocks.
func (c *Controller) Report(r dataplane.Result) { c.reports.put(r) }

// News says that the Exposer or the Replicas have something else to tell. It never blocks.
func (c *Controller) News() { c.news.put(struct{}{}) }

// Run runs the loop until ctx ends, or the Source does.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snapshots, ended := newMailbox[cluster.Snapshot](), make(chan error, 1)
	go func() { ended <- c.options.Source.Run(ctx, snapshots.put) }()
	retry := time.NewTimer(0)
	<-retry.C
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		c.pulse.beat()
		// Seven things can happen: the objects changed, the Engine, the Exposer or another replica did something, it is time to try
		// again, to look for what has expired or only to turn, or all ends.
		select {
		case s := <-snapshots.mail:
			_ = c.Step(ctx, s)
		case r := <-c.reports.mail:
			c.reported(ctx, r)
		case <-retry.C:
			c.again(ctx)
		case <-c.news.mail:
			c.tellAgain(ctx)
		case <-hour.C:
			c.tellAgain(ctx)
		case <-beat.C:
			continue
		case err := <-ended:
			return ignoreCanceled(err)
		}
		if ctx.Err() != nil {
			return ignoreCanceled(<-ended)
		}
		retry.Stop()
		if wait := c.wait(); wait > 0 {
			retry.Reset(wait)
		}
	}
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// wait is how long until the next attempt, 0 if nothing failed.
func (c *Controller) wait() time.Duration {
	if c.failures == 0 {
		return 0
	}
	wait := c.options.Retry
	for range c.failures - 1 {
		if wait *= 2; wait >= c.options.RetryMost {
			return c.options.RetryMost
		}
	}
	return wait
}
