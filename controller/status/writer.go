package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// Client writes statuses to an API server.
type Client interface {
	// Get returns what the API server holds of an object. ErrGone says that there is none.
	Get(ctx context.Context, version string, name cluster.Name) (cluster.Live, error)
	// Patch changes fields of the status of an object as it is known; a field that is nil is removed. ErrConflict says that the
	// object has changed since, ErrGone that it is not there any more.
	Patch(ctx context.Context, name cluster.Name, live cluster.Live, status map[string]any) (cluster.Live, error)
}

// What a Client may answer.
var (
	ErrConflict = errors.New("the object has changed meanwhile")
	ErrGone     = errors.New("there is no such object")
)

// View is what is known of the objects without asking.
type View interface {
	Live(name cluster.Name) (cluster.Live, bool)
	EachLive(each func(cluster.Name, cluster.Live))
}

// WriterOptions are a Writer's; Client, View and Controller are required.
type WriterOptions struct {
	Client Client
	View   View
	// Controller is our controllerName.
	Controller string
	// Leads says whether we are who writes; nil is always.
	Leads func() bool
	// Events is told of conditions that turn bad; nil is nobody.
	Events func(object Object, section string, c Condition)
	// Log gets a line for each condition that changes; nil is silent.
	Log *slog.Logger
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// Writer brings statuses to an API server: what it holds is made to say what the Updates say, and nothing else of it is
// touched. One object that cannot be written holds up no other one.
type Writer struct {
	options WriterOptions
	queue   workqueue.TypedRateLimitingInterface[cluster.Name]

	mutex  sync.Mutex
	wanted map[cluster.Name]*Update
	last   []*Update
	// complete says that there were Updates: before, nobody knows what is not ours any more.
	complete bool
	// written is what came of our own writes, until events tell.
	written map[cluster.Name]write
}

// write is a write of ours.
type write struct {
	// over is the resourceVersion that was written over.
	over string
	live cluster.Live
}

const (
	// writersAtOnce is how many objects are written at the same time.
	writersAtOnce = 8
	writeRetry    = 200 * time.Millisecond
	writeRetryMax = 30 * time.Second
	writeTimeout  = 15 * time.Second
	// conflicts is how often a write is tried again at once.
	conflicts = 5
)

// NewWriter returns a Writer that has nothing to write yet.
func NewWriter(options WriterOptions) *Writer {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Leads == nil {
		options.Leads = func() bool { return true }
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Name](writeRetry, writeRetryMax)
	return &Writer{
		options: options, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		wanted: map[cluster.Name]*Update{}, written: map[cluster.Name]write{},
	}
}

// Write takes the statuses of all objects. It does not wait until they are written.
func (w *Writer) Write(_ context.Context, updates []*Update) error {
	w.mutex.Lock()
	same := w.complete && len(updates) == len(w.last)
	for i, update := range updates {
		if i < len(w.last) && w.last[i] == update {
			continue
		}
		same = same && w.last[i].Object == update.Object
		name := nameOf(update.Object)
		if known := w.wanted[name]; known == nil || !Equal(known, update) {
			w.wanted[name] = update
			w.queue.Add(name)
		}
	}
	if !same {
		w.forget(updates)
	}
	w.last, w.complete = updates, true
	w.mutex.Unlock()
	if !same {
		w.addStrays()
	}
	return nil
}

// forget drops what is not among the Updates any more.
func (w *Writer) forget(updates []*Update) {
	there := make(map[cluster.Name]bool, len(updates))
	for _, update := range updates {
		there[nameOf(update.Object)] = true
	}
	for name := range w.wanted {
		if !there[name] {
			delete(w.wanted, name)
			w.queue.Add(name)
		}
	}
}

// Seen is told that the API server holds something else of an object now.
func (w *Writer) Seen(name cluster.Name) {
	if w.options.Leads() {
		w.queue.Add(name)
	}
}

// All looks at every object again: what to do when we begin to lead.
func (w *Writer) All() {
	w.mutex.Lock()
	for name := range w.wanted {
		w.queue.Add(name)
	}
	w.mutex.Unlock()
	w.addStrays()
}

// addStrays finds objects that have entries of ours, and of which we have nothing to say any more.
func (w *Writer) addStrays() {
	if !w.options.Leads() {
		return
	}
	var strays []cluster.Name
	m := &merger{controller: w.options.Controller}
	w.options.View.EachLive(func(name cluster.Name, live cluster.Live) {
		if m.mentions(live.Status) {
			strays = append(strays, name)
		}
	})
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, name := range strays {
		if w.wanted[name] == nil {
			w.queue.Add(name)
		}
	}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range writersAtOnce {
		group.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	group.Wait()
}

// next brings one object up to date, and says whether there is to be another one.
func (w *Writer) next(ctx context.Context) bool {
	name, ended := w.queue.Get()
	if ended {
		return false
	}
	defer w.queue.Done(name)
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	switch err := w.sync(bounded, name); {
	case err == nil:
		w.queue.Forget(name)
	case ctx.Err() == nil:
		w.options.Log.Warn("a status is not written: it is tried again", "object", name.String(), "error", err)
		w.queue.AddRateLimited(name)
	}
	return true
}

// sync makes the API server hold what we have to say of an object.
func (w *Writer) sync(ctx context.Context, name cluster.Name) error {
	live, there := w.live(name)
	if !there {
		return nil // It is gone, or events will tell of it.
	}
	for range conflicts {
		update, ready := w.update(name)
		if !ready || !w.options.Leads() {
			return nil
		}
		m := &merger{controller: w.options.Controller, now: seconds(w.options.Now()).UTC().Format(time.RFC3339)}
		if update == nil && !m.mentions(live.Status) {
			return nil
		}
		status, err := m.merge(live.Status, update)
		if err != nil || status == nil {
			return err
		}
		written, err := w.options.Client.Patch(ctx, name, live, removing(live.Status, status))
		switch {
		case err == nil:
			w.wrote(name, live, written, update)
			return nil
		case errors.Is(err, ErrGone):
			return nil
		case !errors.Is(err, ErrConflict):
			return err
		}
		if live, err = w.options.Client.Get(ctx, live.APIVersion, name); errors.Is(err, ErrGone) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w, again and again", ErrConflict)
}

// update is what we have to say of an object, nil if nothing; ready says that this is known.
func (w *Writer) update(name cluster.Name) (update *Update, ready bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.wanted[name], w.complete
}

// live is the newest that is known of an object: what events told, or what we wrote since.
func (w *Writer) live(name cluster.Name) (cluster.Live, bool) {
	live, there := w.options.View.Live(name)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if mine, is := w.written[name]; is {
		if there && live.ResourceVersion == mine.over {
			return mine.live, true
		}
		delete(w.written, name)
	}
	return live, there
}

func (w *Writer) wrote(name cluster.Name, over, written cluster.Live, update *Update) {
	w.mutex.Lock()
	w.written[name] = write{over.ResourceVersion, written}
	w.mutex.Unlock()
	if update == nil {
		w.options.Log.Info("object is no longer ours", "object", name.String())
		return
	}
	w.tell(over, written, update)
}

// removing is the status with nil for what is to go.
func removing(live []byte, status map[string]any) map[string]any {
	var was map[string]any
	_ = json.Unmarshal(live, &was)
	for key := range was {
		if _, still := status[key]; !still {
			status[key] = nil
		}
	}
	return status
}

func nameOf(object Object) cluster.Name {
	name := cluster.Name{Kind: object.Kind}
	name.Namespace, name.Name = object.Namespace, object.Name
	return name
}
