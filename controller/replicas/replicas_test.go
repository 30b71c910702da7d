package replicas

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// other is another replica.
type other struct {
	pod    Pod
	served atomic.Pointer[Served]
	asked  atomic.Int64
}

// world is a Watch with others at loopback addresses.
type world struct {
	*testing.T
	watch   *Watch
	leads   atomic.Bool
	changes atomic.Int64
	others  []*other
}

func newWorld(t *testing.T, others int) *world {
	t.Helper()
	w := &world{T: t}
	w.leads.Store(true)
	port := uint16(0)
	for i := range others {
		address := netip.AddrFrom4([4]byte{127, 0, 0, byte(10 + i)})
		listener, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
		if err != nil {
			t.Fatal(err)
		}
		port = netip.MustParseAddrPort(listener.Addr().String()).Port()
		o := &other{pod: Pod{Name: "limpet-" + string(rune('b'+i)), Address: address}}
		o.served.Store(&Served{})
		handler := Handler(func() Served { return *o.served.Load() })
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			o.asked.Add(1)
			handler.ServeHTTP(rw, r)
		})}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
		w.others = append(w.others, o)
	}
	w.watch = New(Options{
		Port: port, Leads: w.leads.Load, OnChange: func() { w.changes.Add(1) }, Log: slog.New(slog.DiscardHandler), Patience: 500 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.watch.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *world) pods() []Pod {
	var pods []Pod
	for _, o := range w.others {
		pods = append(pods, o.pod)
	}
	return pods
}

func (w *world) within(what string, holds func() bool) {
	w.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	w.Fatalf("not within 5 s: %s; lagging: %v", what, w.watch.Lagging())
}

func TestAGatewayWaitsForAllReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.watch.Set(w.pods(), Served{"g": 2})
	if got := w.watch.Lagging()["g"]; !strings.Contains(got, "not all replicas") {
		t.Errorf("before anybody was asked: %q", got)
	}
	w.others[0].served.Store(&Served{"g": 2})
	w.others[1].served.Store(&Served{"g": 1})
	w.within("the late one is named", func() bool {
		got := w.watch.Lagging()["g"]
		return strings.Contains(got, "limpet-c") && !strings.Contains(got, "limpet-b")
	})
	w.others[1].served.Store(&Served{"g": 3})
	w.within("all serve it", func() bool { return len(w.watch.Lagging()) == 0 })
	time.Sleep(100 * time.Millisecond)
	asked := w.others[0].asked.Load()
	time.Sleep(3 * slowestPause / 2)
	if more := w.others[0].asked.Load() - asked; more > 0 {
		t.Errorf("asked %d times while nobody lags", more)
	}
	if got := w.changes.Load(); got < 2 || got > 3 {
		t.Errorf("%d changes were told, want pending, the name, none", got)
	}
}

// A reader that looks right before the answer comes is told of it, though nothing else was said in between.
func TestAnAnswerRightAfterALookIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for generation := range int64(20) {
		w.others[0].served.Store(&Served{"g": generation + 1})
		before := w.changes.Load()
		w.watch.Set(w.pods(), Served{"g": generation + 1})
		if len(w.watch.Lagging()) > 0 {
			w.within("the reader is told", func() bool { return w.changes.Load() > before })
		}
		w.within("all serve it", func() bool { return len(w.watch.Lagging()) == 0 })
	}
}

func TestAReplicaThatCannotBeReachedLags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.others[0].served.Store(&Served{"g": 1})
	w.watch.Set(w.pods(), Served{"g": 1})
	w.within("it is served by all", func() bool { return len(w.watch.Lagging()) == 0 })
	// A new pod: what all served is not doubted at once.
	gone := Pod{Name: "limpet-z", Address: netip.MustParseAddr("127.0.0.99")}
	begin := time.Now()
	w.watch.Set(append(w.pods(), gone), Served{"g": 1})
	for time.Since(begin) < 400*time.Millisecond {
		if got := w.watch.Lagging(); len(got) > 0 && time.Since(begin) < 400*time.Millisecond {
			t.Fatalf("after %s: %v", time.Since(begin), got)
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.within("it is named", func() bool { return strings.Contains(w.watch.Lagging()["g"], "limpet-z") })
	w.watch.Set(w.pods(), Served{"g": 1})
	w.within("without it all is well", func() bool { return len(w.watch.Lagging()) == 0 })
}

func TestALeaderThatTakesOverTakesWhatIsServedForServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leads.Store(false)
	w.watch.Set(w.pods(), Served{"g": 1})
	w.leads.Store(true)
	w.watch.Wake()
	if got := w.watch.Lagging(); len(got) > 0 {
		t.Errorf("right after it took over: %v", got)
	}
	w.within("the other one, which never serves it, is named", func() bool { return strings.Contains(w.watch.Lagging()["g"], "limpet-b") })
}

func TestAloneNobodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.watch.Set(nil, Served{"g": 1})
	if got := w.watch.Lagging(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
