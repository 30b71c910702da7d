// Package leader says whether this replica is the one that writes what one alone should write.
//
// A Lease in our own namespace goes in, Leads comes out, and a call when leadership begins. Losing the Lease, or the API
// server, ends no process and no data plane: it is asked for again, as long as the context lives. It must never say that we
// lead when another replica may think so of itself.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options are an Election's; Config, Namespace, Lease and Identity are required.
type Options struct {
	Config    *rest.Config
	Namespace string
	// Lease is the name of the Lease that all replicas ask for, and Identity that of this one: its pod's.
	Lease, Identity string
	// OnStart is called when we begin to lead. It must not block.
	OnStart func()
	// Log is silent if nil.
	Log *slog.Logger
	// Duration is how long a Lease holds that is not renewed; 15 s by default. The other times follow from it.
	Duration time.Duration
}

// Election asks for the Lease again and again.
type Election struct {
	options Options
	lock    resourcelock.Interface

	mutex sync.Mutex
	leads bool
	// until is when the Lease runs out as it was renewed last, counted from before that was asked for.
	until time.Time
}

// New returns an Election that has not begun. It does not talk to the API server.
func New(options Options) (*Election, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.OnStart == nil {
		options.OnStart = func() {}
	}
	if options.Duration <= 0 {
		options.Duration = 15 * time.Second
	}
	// An answer that takes as long as the Lease holds is none.
	config := rest.CopyConfig(options.Config)
	config.Timeout = options.Duration / 3
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, options.Namespace, options.Lease,
		clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: options.Identity})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e := &Election{options: options}
	e.lock = &fence{lock, e}
	return e, nil
}

// Leads says whether we lead. It does not wait for anybody to notice that the Lease has run out.
func (e *Election) Leads() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.leads && time.Now().Before(e.until)
}

// fence notes until when the Lease is ours.
type fence struct {
	resourcelock.Interface
	election *Election
}

// Create takes a Lease that nobody had.
func (f *fence) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	return f.noted(asked, record, f.Interface.Create(ctx, record))
}

// Update takes the Lease, renews it, or gives it back.
func (f *fence) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	if record.HolderIdentity != f.Identity() {
		f.election.stop()
	}
	return f.noted(asked, record, f.Interface.Update(ctx, record))
}

func (f *fence) noted(asked time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil && record.HolderIdentity == f.Identity() {
		f.election.mutex.Lock()
		f.election.until = asked.Add(f.election.options.Duration)
		f.election.mutex.Unlock()
	}
	return err
}

// start begins to lead, unless ctx says that it is over already.
func (e *Election) start(ctx context.Context) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.leads = ctx.Err() == nil
	return e.leads
}

// stop says whether we led.
func (e *Election) stop() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	led := e.leads
	e.leads = false
	return led
}

// Run takes part until ctx ends. Then the Lease is given back, if it is ours.
func (e *Election) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(e.config())
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}

func (e *Election) config() leaderelection.LeaderElectionConfig {
	log := e.options.Log.With("lease", e.options.Namespace+"/"+e.options.Lease)
	return leaderelection.LeaderElectionConfig{
		Lock:          e.lock,
		Name:          e.options.Lease,
		LeaseDuration: e.options.Duration,
		RenewDeadline: e.options.Duration * 2 / 3,
		RetryPeriod:   e.options.Duration * 2 / 15,
		// Who ends gives way at once.
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if e.start(ctx) {
					log.Info("this replica leads: it writes statuses")
					e.options.OnStart()
				}
			},
			OnStoppedLeading: func() {
				if e.stop() {
					log.Info("this replica leads no more: it goes on serving")
				}
			},
			OnNewLeader: func(identity string) {
				if identity != e.options.Identity {
					log.Info("another replica leads", "leader", identity)
				}
			},
		},
	}
}
