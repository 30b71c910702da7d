// Package replicas knows which Gateways all replicas serve.
//
// What comes in are our pods and what this replica serves, what goes out is which Gateways wait for whom: each replica
// answers for its own over /served, the leader asks. It asks when something changed, and again only while somebody lags.
// It must never write to the API, never hold up the loop, and never take silence of a replica that is ready for consent.
package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Served leads from the UID of a Gateway to its generation that is served. It has no names: who may read it learns no more.
type Served map[string]int64

// Pod is another replica that is ready for traffic.
type Pod struct {
	Name    string
	Address netip.Addr
}

// Options are a Watch's.
type Options struct {
	// Port is where replicas answer.
	Port uint16
	// Leads says whether this replica writes statuses. One that does not takes everything for served.
	Leads func() bool
	// OnChange is called when Lagging says something else; it must not block.
	OnChange func()
	Log      *slog.Logger
	// Patience is how long a replica may lag before its name is said; 10 s by default.
	Patience time.Duration
}

// Watch asks the other replicas. It is safe for concurrent use.
type Watch struct {
	options Options
	client  *http.Client
	bell    chan struct{}

	mu   sync.Mutex
	pods []Pod
	want Served
	// confirmed are generations that all replicas served once.
	confirmed Served
	// lags has who did not serve a Gateway when asked last, and since when somebody does not.
	lags  map[string][]string
	since map[string]time.Time
	// said is what OnChange was called for, and read what Lagging said last: an answer may come right after it.
	said, read map[string]string
}

const (
	patience = 10 * time.Second
	// askTimeout bounds a question, and atOnce how many are asked at a time.
	askTimeout = time.Second
	atOnce     = 8
	// maxAnswer bounds an answer: 10,000 Gateways.
	maxAnswer = 1 << 20
	// While somebody lags, it is asked again after firstPause, and at most slowestPause.
	firstPause   = 200 * time.Millisecond
	slowestPause = 2 * time.Second
)

// New returns a Watch that has asked nobody yet.
func New(o Options) *Watch {
	if o.Patience == 0 {
		o.Patience = patience
	}
	transport := &http.Transport{IdleConnTimeout: 10 * time.Second, MaxIdleConnsPerHost: 1}
	return &Watch{
		options: o, client: &http.Client{Transport: transport, Timeout: askTimeout}, bell: make(chan struct{}, 1),
		confirmed: Served{}, lags: map[string][]string{}, since: map[string]time.Time{},
	}
}

// Handler answers the questions of others.
func Handler(served func() Served) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(served())
	})
}

// Set says which other replicas are ready for traffic and what this one serves, which the others are to serve too.
func (w *Watch) Set(pods []Pod, want Served) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(pods, w.pods) && maps.Equal(want, w.want) {
		return
	}
	w.pods, w.want = slices.Clone(pods), maps.Clone(want)
	gone := func(uid string) bool { _, still := want[uid]; return !still }
	maps.DeleteFunc(w.confirmed, func(uid string, _ int64) bool { return gone(uid) })
	maps.DeleteFunc(w.lags, func(uid string, _ []string) bool { return gone(uid) })
	now := time.Now()
	for uid, generation := range want {
		if len(pods) == 0 || !w.options.Leads() {
			w.confirmed[uid] = generation
		}
		if w.confirmed[uid] == generation {
			continue
		}
		w.since[uid] = now
	}
	w.Wake()
}

// Wake makes it ask: this replica leads now.
func (w *Watch) Wake() {
	select {
	case w.bell <- struct{}{}:
	default: // it rings already
	}
}

// Lagging says of each Gateway that not all replicas serve why, by UID. A generation that all served once is only doubted
// after a while: a replica that has just become ready may not have been asked yet.
func (w *Watch) Lagging() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = w.lagging(time.Now())
	return maps.Clone(w.read)
}

func (w *Watch) lagging(now time.Time) map[string]string {
	lagging := map[string]string{}
	if !w.options.Leads() {
		return lagging
	}
	for uid, generation := range w.want {
		late := !w.since[uid].IsZero() && now.Sub(w.since[uid]) >= w.options.Patience
		names := w.lags[uid]
		switch {
		case late && len(names) > 0:
			lagging[uid] = "these replicas do not serve it: " + shorten(names)
		case w.confirmed[uid] != generation:
			lagging[uid] = "not all replicas have answered that they serve it"
		}
	}
	return lagging
}

// shorten names some.
func shorten(names []string) string {
	const enough = 5
	if more := len(names) - enough; more > 0 {
		return strings.Join(names[:enough], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// Run asks whenever something changed, and while somebody lags, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	defer w.client.CloseIdleConnections()
	pause := firstPause
	again := time.NewTimer(0)
	<-again.C
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.bell:
			pause = firstPause
		case <-again.C:
			pause = min(slowestPause, pause*3/2)
		}
		if w.options.Leads() && w.ask(ctx) {
			again.Reset(pause)
		}
		w.tell()
	}
}

// tell calls OnChange if there is something new to be said.
func (w *Watch) tell() {
	w.mu.Lock()
	now := w.lagging(time.Now())
	changed := !maps.Equal(now, w.said) || !maps.Equal(now, w.read)
	w.said = now
	w.mu.Unlock()
	if changed {
		w.options.OnChange()
	}
}

// ask asks all replicas, and says whether somebody lags.
func (w *Watch) ask(ctx context.Context) bool {
	w.mu.Lock()
	pods, want := w.pods, w.want
	w.mu.Unlock()
	answers := make([]Served, len(pods))
	room := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for i, pod := range pods {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			answer, err := w.askOne(ctx, pod)
			if err != nil {
				w.options.Log.Debug("a replica does not say what it serves", "pod", pod.Name, "error", err)
				return
			}
			answers[i] = answer
		})
	}
	asking.Wait()
	return w.note(pods, want, answers)
}

// note takes in answers; an unreachable replica has none.
func (w *Watch) note(pods []Pod, want Served, answers []Served) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, some := time.Now(), false
	for uid, generation := range want {
		if w.want[uid] != generation {
			continue // it changed meanwhile, and is asked for again
		}
		var names []string
		for i, pod := range pods {
			if answers[i][uid] < generation {
				names = append(names, pod.Name)
			}
		}
		w.lags[uid] = names
		if len(names) == 0 {
			w.confirmed[uid] = generation
			delete(w.since, uid)
			continue
		}
		some = true
		if w.since[uid].IsZero() {
			w.since[uid] = now
		}
	}
	return some
}

func (w *Watch) askOne(ctx context.Context, pod Pod) (Served, error) {
	url := "http://" + net.JoinHostPort(pod.Address.String(), strconv.Itoa(int(w.options.Port))) + "/served"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	var served Served
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&served)
	return served, err
}
