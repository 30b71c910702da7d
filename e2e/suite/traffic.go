package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Traffic is clients that ask all the time, each with a session, until Stop.
type Traffic struct {
	url, host string
	// Retry lets clients try again, at once and then for up to 6 s, when a connection is refused or reset before an answer.
	retry bool

	stop context.CancelFunc
	all  sync.WaitGroup

	mutex    sync.Mutex
	requests int
	failures map[string]int
	moves    []Move
	// refused are the times at which a connection was refused or reset.
	refused []time.Time
	// holds is which pod each client is on.
	holds map[int]string
}

// Move is a session that went to another pod.
type Move struct {
	Client   int
	From, To string
	At       time.Time
}

const (
	clients = 20
	// pace is how long a client waits between two requests: 20 clients ask 400 times a second.
	pace = 50 * time.Millisecond
)

// traffic begins, and returns when each client has its session. Every second client opens a connection for each request, so
// that all replicas are asked all the time.
func traffic(t *testing.T, url, host string, retry bool) *Traffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &Traffic{url: url, host: host, retry: retry, stop: stop, failures: map[string]int{}, holds: map[int]string{}}
	t.Cleanup(func() { f.Stop() })
	for i := range clients {
		c := newClient(f, i)
		f.all.Go(func() { c.run(ctx) })
	}
	eventually(t, 20*time.Second, func() error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if len(f.holds) < clients {
			return fmt.Errorf("%d of %d clients have a session; failures: %v", len(f.holds), clients, f.failures)
		}
		return nil
	})
	return f
}

// Stop ends it. What was counted stays.
func (f *Traffic) Stop() {
	f.stop()
	f.all.Wait()
}

// AtLeast waits until so many requests were made.
func (f *Traffic) AtLeast(t *testing.T, requests int) {
	t.Helper()
	eventually(t, 5*time.Minute, func() error {
		if n := f.Requests(); n < requests {
			return fmt.Errorf("%d of %d requests", n, requests)
		}
		return nil
	})
}

// Requests is how many were made.
func (f *Traffic) Requests() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.requests
}

// Failed is how many failed.
func (f *Traffic) Failed() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	failed := 0
	for _, n := range f.failures {
		failed += n
	}
	return failed
}

// Moved are the sessions that went to another pod.
func (f *Traffic) Moved() []Move {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.moves)
}

// Holders says which pods hold sessions.
func (f *Traffic) Holders() map[string]int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	held := map[string]int{}
	for _, pod := range f.holds {
		held[pod]++
	}
	return held
}

// Refusal is how long connections were refused, from the first to the last.
func (f *Traffic) Refusal() (times int, from time.Time, long time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.refused) == 0 {
		return 0, time.Time{}, 0
	}
	slices.SortFunc(f.refused, time.Time.Compare)
	return len(f.refused), f.refused[0], f.refused[len(f.refused)-1].Sub(f.refused[0])
}

// Quiet fails the test unless every request was answered and no session moved.
func (f *Traffic) Quiet(t *testing.T, requests int) {
	t.Helper()
	f.AtLeast(t, requests)
	f.Stop()
	t.Log(f)
	if failed := f.Failed(); failed > 0 {
		t.Errorf("%d requests failed", failed)
	}
	if moves := f.Moved(); len(moves) > 0 {
		t.Errorf("%d sessions moved: %v", len(moves), moves)
	}
}

// String is what was counted.
func (f *Traffic) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var failed []string
	for _, words := range slices.Sorted(maps.Keys(f.failures)) {
		failed = append(failed, fmt.Sprintf("%dx %s", f.failures[words], words))
	}
	return fmt.Sprintf("%d requests, failed: [%s], %d refused or reset, %d sessions moved",
		f.requests, strings.Join(failed, "; "), len(f.refused), len(f.moves))
}

type sessionClient struct {
	*Traffic
	id   int
	http *http.Client
}

func newClient(f *Traffic, id int) *sessionClient {
	jar, _ := cookiejar.New(nil)
	transport := &http.Transport{
		DisableKeepAlives: id%2 == 1, MaxIdleConnsPerHost: 1,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}
	return &sessionClient{f, id, &http.Client{Transport: transport, Jar: jar, Timeout: 10 * time.Second}}
}

func (c *sessionClient) run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	for tick := time.NewTicker(pace); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		pod, err := c.ask()
		if ctx.Err() != nil {
			return
		}
		c.count(pod, err)
	}
}

// retryFor is how long a client that retries does.
const retryFor = 6 * time.Second

// ask makes one request, to its end whatever ends meanwhile.
func (c *sessionClient) ask() (pod string, err error) {
	for end := time.Now().Add(retryFor); ; time.Sleep(20 * time.Millisecond) {
		pod, err = c.once()
		if !unanswered(err) {
			return pod, err
		}
		c.mutex.Lock()
		c.refused = append(c.refused, time.Now())
		c.mutex.Unlock()
		if !c.retry || time.Now().After(end) {
			return pod, err
		}
	}
}

// unanswered tells a connection that ended without an answer.
func unanswered(err error) bool {
	return slices.ContainsFunc([]error{syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF},
		func(way error) bool { return errors.Is(err, way) })
}

func (c *sessionClient) once() (string, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.url, nil)
	if err != nil {
		return "", err
	}
	request.Host = c.host
	answer, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", answer.StatusCode)
	}
	var echo struct{ Pod string }
	if err := json.Unmarshal(body, &echo); err != nil || echo.Pod == "" {
		return "", fmt.Errorf("not an echo: %.100q", body)
	}
	return echo.Pod, nil
}

func (c *sessionClient) count(pod string, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.requests++
	if err != nil {
		words := err.Error()
		if _, tail, found := strings.Cut(words, "->"); found {
			words = tail // without the client's own port, which is another each time
		}
		c.failures[words]++
		return
	}
	if was := c.holds[c.id]; was != "" && was != pod {
		c.moves = append(c.moves, Move{c.id, was, pod, time.Now()})
	}
	c.holds[c.id] = pod
}
