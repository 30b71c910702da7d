package expose

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// WriterOptions are a Writer's; Client and Leading are required.
type WriterOptions struct {
	// Client reads from the API server itself, not from a cache.
	Client client.Client
	// Leading says whether this replica leads.
	Leading func() bool
	// Changed is called when what Exposures says of the same Wanted became something else.
	Changed func()
	// Log is silent if nil.
	Log *slog.Logger
	// Delay is what each replica waits longer than the one before it, if it does not lead; 2 s by default.
	Delay time.Duration
	// Patience is what a replica that never saw the table of ports waits for one that did; 10 s by default.
	Patience time.Duration
}

// Writer makes the changes that are wanted. Every replica has one and all want the same: the leader makes them at once,
// another one what is still wanted after a time of its own. So addresses follow the pods even while nobody leads.
type Writer struct {
	options WriterOptions
	mail    chan *Wanted

	// Used by Run alone.
	wanted  *Wanted
	pending map[string]*pending

	mutex   sync.Mutex
	refused map[string]refused
}

// pending is a Change that is still wanted.
type pending struct {
	change Change
	since  time.Time
	// done says that it was made as of this Wanted, failures how often it was not, and next when to try again.
	done     bool
	failures int
	next     time.Time
}

// refused is a Change that the API server, or its owner, does not let us make.
type refused struct {
	gateway types.NamespacedName
	reason  gatewayv1.GatewayConditionReason
	problem string
}

// workers is how many objects are written at a time: when a pod comes or goes, every Gateway's slices change.
const workers = 16

// NewWriter returns a Writer that does nothing before Run.
func NewWriter(options WriterOptions) *Writer {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Delay == 0 {
		options.Delay = 2 * time.Second
	}
	if options.Patience == 0 {
		options.Patience = 10 * time.Second
	}
	if options.Changed == nil {
		options.Changed = func() {}
	}
	return &Writer{options: options, mail: make(chan *Wanted, 1), pending: make(map[string]*pending), refused: make(map[string]refused)}
}

// Take makes what is wanted the latest. It never blocks; it is for one goroutine.
func (w *Writer) Take(wanted *Wanted) {
	select {
	case <-w.mail:
	default:
	}
	w.mail <- wanted
}

// Exposures are those of a Wanted, with what could not be written.
func (w *Writer) Exposures(wanted *Wanted) map[types.NamespacedName]Exposure {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.refused) == 0 {
		return wanted.Exposures
	}
	all := make(map[types.NamespacedName]Exposure, len(wanted.Exposures))
	for name, exposure := range wanted.Exposures {
		all[name] = exposure
	}
	for _, change := range wanted.Changes {
		if no, found := w.refused[change.Key()]; found && no.gateway != (types.NamespacedName{}) {
			exposure := all[no.gateway]
			exposure.Reason, exposure.Problem = no.reason, no.problem
			all[no.gateway] = exposure
		}
	}
	return all
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case wanted := <-w.mail:
			w.accept(wanted)
		case <-timer.C:
		}
		w.work(ctx)
		timer.Reset(w.wait())
	}
}

// accept takes over what is wanted now. How long it was wanted and how often it failed stays with each object.
func (w *Writer) accept(wanted *Wanted) {
	now := time.Now()
	next := make(map[string]*pending, len(wanted.Changes))
	for _, change := range wanted.Changes {
		one := &pending{change: change, since: now}
		if was := w.pending[change.Key()]; was != nil {
			one.since, one.failures, one.next = was.since, was.failures, was.next
			if one.failures > 0 && !sameChange(was.change, change) {
				one.next = now // It is another one: try it at once.
			}
		}
		next[change.Key()] = one
	}
	w.wanted, w.pending = wanted, next
	w.forgetRefusals()
}

func (w *Writer) forgetRefusals() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for key := range w.refused {
		if w.pending[key] == nil {
			delete(w.refused, key)
		}
	}
}

// due is when a Change is to be made.
func (w *Writer) due(p *pending) time.Time {
	due := p.since
	if !w.options.Leading() {
		due = due.Add(time.Duration(w.wanted.Rank+1) * w.options.Delay)
	}
	if p.change.First && w.wanted.Others > 0 {
		due = due.Add(w.options.Patience)
	}
	if p.next.After(due) {
		return p.next
	}
	return due
}

// wait is how long until something is due. It is never long: who leads may change at any time.
func (w *Writer) wait() time.Duration {
	wait := w.options.Delay
	for _, p := range w.pending {
		if !p.done {
			wait = min(wait, max(time.Until(w.due(p)), time.Millisecond))
		}
	}
	return wait
}

// work makes what is due, the table of ports first.
func (w *Writer) work(ctx context.Context) {
	if w.wanted == nil {
		return
	}
	var due []*pending
	now := time.Now()
	for _, change := range w.wanted.Changes {
		if p := w.pending[change.Key()]; !p.done && !w.due(p).After(now) {
			due = append(due, p)
		}
	}
	if len(due) == 0 {
		return
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, workers)
	errors := make([]error, len(due))
	for i, p := range due {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errors[i] = w.make(ctx, p.change)
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	told := false
	for i, p := range due {
		told = w.settle(p, errors[i]) || told
	}
	if told {
		w.options.Changed()
	}
}

// settle takes in what came of a Change, and says whether Exposures changed.
func (w *Writer) settle(p *pending, err error) bool {
	key := p.change.Key()
	no := refusalOf(p.change, err)
	if err == nil {
		p.done, p.failures = true, 0
	} else {
		p.failures++
		p.next = time.Now().Add(backoff(p.failures, no.problem != ""))
		w.log(p, key, err)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	was := w.refused[key]
	switch {
	case no.problem != "":
		w.refused[key] = no
	case err == nil:
		delete(w.refused, key)
	default:
		return false // What is only late says nothing new.
	}
	return was != w.refused[key]
}

func (w *Writer) log(p *pending, key string, err error) {
	level := slog.LevelWarn
	if isStale(err) {
		level = slog.LevelDebug
	} else if p.failures > 1 {
		level = slog.LevelInfo
	}
	w.options.Log.Log(context.Background(), level, "not written", "object", key, "error", err, "failures", p.failures)
}

// backoff is how long to wait after so many failures.
func backoff(failures int, refused bool) time.Duration {
	wait, most := 200*time.Millisecond, 15*time.Second
	if refused {
		wait, most = time.Second, time.Minute
	}
	for range failures - 1 {
		if wait *= 2; wait >= most {
			return most
		}
	}
	return wait
}
