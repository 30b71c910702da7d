package dataplane

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

// traffic asks for a host over kept connections until stop is called, which returns the number of requests and the first
// unwanted answer.
func (l *lab) traffic(address, host, want string, clients int) (stop func() (requests int64, wrong string)) {
	return l.trafficWith(func() *http.Client {
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 10 * time.Second}
	}, address, host, want, clients)
}

func (l *lab) trafficWith(connect func() *http.Client, address, host, want string, clients int) (stop func() (requests int64, wrong string)) {
	var requests atomic.Int64
	var wrong atomic.Value
	end := make(chan struct{})
	var done sync.WaitGroup
	for range clients {
		client := connect()
		done.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-end:
					return
				default:
				}
				if got := l.getWith(client, address, host); !strings.Contains(want, got) || got == "" {
					wrong.CompareAndSwap(nil, got)
				}
				requests.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() (int64, string) {
		close(end)
		done.Wait()
		text, _ := wrong.Load().(string)
		return requests.Load(), text
	}
}

func TestTenReloadsLoseNoRequestOfKeptConnections(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	stop := l.traffic(address, "h", "a", 8)
	for i := range 10 {
		l.port(fmt.Sprintf("extra%d", i), "Gateway extra")
		if got := l.apply(); !got.Reloaded {
			t.Errorf("%+v, want a reload", got)
		}
	}
	requests, wrong := stop()
	t.Logf("%d requests", requests)
	if wrong != "" {
		t.Errorf("during reloads, an answer was %q", wrong)
	}
	l.within(15*time.Second, "no old worker is left", func() bool { return len(l.pids()) == 2 })
}

func TestABurstOfFrameChangesIsFewReloads(t *testing.T) {
	t.Parallel()
	l, _ := serving(t, func(o *Options) { o.ReloadEvery = time.Second })
	time.Sleep(time.Second)
	var done sync.WaitGroup
	results := make([]Result, 50)
	for i := range results {
		l.port(fmt.Sprintf("burst%d", i), "Gateway burst")
		config := l.config
		done.Go(func() { results[i] = l.engine.Apply(context.Background(), config) })
		time.Sleep(20 * time.Millisecond)
	}
	done.Wait()
	generations := map[int]bool{}
	for i, got := range results {
		if got.Err != nil || len(got.LeftOut) > 0 {
			t.Fatalf("%d: %+v", i, got)
		}
		generations[got.Generation] = true
	}
	t.Logf("%d reloads", len(generations))
	if len(generations) > 4 {
		t.Errorf("%d reloads for a second of changes, want few", len(generations))
	}
	if got := l.apply(); got.Reloaded || got.Commands != 0 {
		t.Errorf("afterwards: %+v, want nothing to do", got)
	}
}

func TestDataGoesLiveWhileAReloadWaits(t *testing.T) {
	t.Parallel()
	l, address := serving(t, func(o *Options) { o.ReloadEvery = 3 * time.Second })
	l.port("p2", "Gateway b")
	l.route("j", "two")
	done := make(chan Result, 1)
	config := l.config
	go func() { done <- l.engine.Apply(context.Background(), config) }()
	l.within(time.Second, "the route is served", func() bool { return strings.Contains("b c", l.get(address, "j")) })
	select {
	case got := <-done:
		t.Errorf("the reload did not wait: %+v", got)
	default:
	}
	if got := <-done; !got.Reloaded || got.Err != nil {
		t.Errorf("%+v, want a reload", got)
	}
}

func TestServersComeAndGoUnderTraffic(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	stay := l.endpoint("stay", 1)
	l.backend("one", stay)
	l.apply()
	stop := l.traffic(address, "h", "stay other", 4)
	for i := range 60 {
		l.backend("one", stay, model.Endpoint{Name: fmt.Sprintf("n%d", i), Address: haproxytest.Echo(t, "other"), ID: int32(100 + i)})
		l.apply()
		time.Sleep(10 * time.Millisecond)
		l.backend("one", stay)
		l.apply()
	}
	requests, wrong := stop()
	t.Logf("%d requests", requests)
	if wrong != "" {
		t.Errorf("an answer was %q", wrong)
	}
	l.within(20*time.Second, "the removed servers are deleted", func() bool { return !strings.Contains(l.servers(), "s1/n") })
}

// slow is a server that answers at once and ends its answer when released.
func slow(t *testing.T) (endpoint model.Endpoint, release func()) {
	ended := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("slow"))
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return model.Endpoint{Name: "slow", Address: netip.MustParseAddrPort(listener.Addr().String()), ID: 77}, sync.OnceFunc(func() { close(ended) })
}

func TestARemovedServerKeepsItsRequestsAndMayComeBack(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	endpoint, release := slow(t)
	defer release()
	l.backend("one", endpoint)
	l.apply()
	answer := make(chan string, 1)
	go func() { answer <- l.get(address, "h") }()
	l.within(5*time.Second, "the request is under way", func() bool { return l.busy("slow") })
	l.backend("one", l.endpoint("a", 1))
	l.apply()
	if got := l.get(address, "h"); got != "a" {
		t.Errorf("a new request is answered by %q", got)
	}
	time.Sleep(500 * time.Millisecond)
	if got := l.servers(); !strings.Contains(got, "(s1/slow=1)") {
		t.Errorf("servers: %s, want slow in maintenance", got)
	}
	l.backend("one", endpoint)
	if got := l.apply(); got.Reloaded || !strings.Contains(l.servers(), "s1/slow=1") || strings.Contains(l.servers(), "(s1/slow") {
		t.Errorf("back again: %+v; %s", got, l.servers())
	}
	release()
	if got := <-answer; got != "slow" {
		t.Errorf("the request under way ended with %q", got)
	}
}

func TestARemovedServersLastConnectionsAreCutInTheEnd(t *testing.T) {
	t.Parallel()
	l, address := serving(t, func(o *Options) { o.Drain = 300 * time.Millisecond })
	endpoint, release := slow(t)
	defer release()
	l.backend("one", endpoint)
	l.apply()
	go l.get(address, "h")
	l.within(5*time.Second, "the request is under way", func() bool { return l.busy("slow") })
	l.backend("one", l.endpoint("a", 1))
	l.apply()
	l.within(20*time.Second, "the server is deleted", func() bool { return !strings.Contains(l.servers(), "slow") })
}

func TestAReloadDoesNotForgetAServerThatDrains(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	endpoint, release := slow(t)
	defer release()
	l.backend("one", endpoint)
	l.apply()
	answer := make(chan string, 1)
	go func() { answer <- l.get(address, "h") }()
	l.within(5*time.Second, "the request is under way", func() bool { return l.busy("slow") })
	l.backend("one", l.endpoint("a", 1))
	l.port("p2", "Gateway b")
	if got := l.apply(); !got.Reloaded {
		t.Errorf("%+v", got)
	}
	release()
	if got := <-answer; got != "slow" {
		t.Errorf("the request in the old worker ended with %q", got)
	}
	l.within(5*time.Second, "the old worker ends", func() bool { return len(l.pids()) == 2 })
}

// busy tells whether a server has a connection.
func (l *lab) busy(name string) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(context.Background(), "unix", AdminSocket(l.dir))
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("show servers conn s1\n"))
	text, _ := io.ReadAll(conn)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 6 && fields[0] == "s1/"+name {
			return fields[6] != "0"
		}
	}
	return false
}

func TestAReloadWhileAWorkerIsKilledEndsWell(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	for i := range 5 {
		l.port(fmt.Sprintf("extra%d", i), "Gateway extra")
		go func() {
			time.Sleep(time.Duration(20*i) * time.Millisecond)
			if pids := l.pids(); len(pids) > 1 {
				_ = syscall.Kill(pids[1], syscall.SIGKILL)
			}
		}()
		_ = l.try(20 * time.Second)
	}
	l.within(20*time.Second, "everything is served", func() bool {
		got := l.try(5 * time.Second)
		return got.Err == nil && !got.Reloaded && l.get(address, "h") == "a"
	})
}
