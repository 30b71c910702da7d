package dataplane

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/templates"
)

// Variables that make the test's program the program of the other container.
const (
	containerDir    = "LIMPET_TEST_CONTAINER_DIR"
	containerBinary = "LIMPET_TEST_CONTAINER_HAPROXY"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(containerDir); dir != "" {
		fmt.Fprintln(os.Stderr, RunHAProxy(context.Background(), os.Getenv(containerBinary), dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// container starts HAProxy as a container does that the kubelet keeps running: again whenever it ends.
type container struct {
	lab    *lab
	ended  chan struct{}
	over   chan struct{}
	last   chan struct{} // closed, it is not started again
	starts atomic.Int64
}

const (
	restartAfter = 100 * time.Millisecond
	// patience is for busy machines.
	patience = 30 * time.Second
)

func (l *lab) container() *container {
	l.Helper()
	c := &container{lab: l, ended: make(chan struct{}), over: make(chan struct{}), last: make(chan struct{})}
	go c.keep()
	l.Cleanup(c.stop)
	return c
}

func (c *container) keep() {
	defer close(c.over)
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), containerDir+"="+c.lab.dir, containerBinary+"="+c.lab.options.Binary)
		cmd.Stdout, cmd.Stderr = c.lab, c.lab
		if err := cmd.Start(); err != nil {
			c.lab.Error(err)
			return
		}
		c.starts.Add(1)
		done := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-c.ended:
			_ = cmd.Process.Kill()
			<-done
			return
		}
		select {
		case <-time.After(restartAfter):
		case <-c.last:
			return
		case <-c.ended:
			return
		}
	}
}

// stop ends the container.
func (c *container) stop() {
	select {
	case <-c.ended:
	default:
		close(c.ended)
	}
	<-c.over
}

// killAll kills HAProxy as the end of a container's first process does: with all of its processes.
func (l *lab) killAll() {
	for _, pid := range l.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func neighbour(o *Options) { o.Neighbour = true }

// beside is a lab whose HAProxy runs in a container, and serves a route.
func beside(t *testing.T) (l *lab, c *container, address string) {
	t.Helper()
	l = newLab(t, neighbour)
	c = l.container()
	l.within(patience, "HAProxy is there", func() bool { return len(l.pids()) == 2 })
	address = l.port("p1", "Gateway a")
	l.backend("one", l.endpoint("a", 1))
	l.backend("two", l.endpoint("b", 1))
	l.route("h", "one")
	l.applies()
	return l, c, address
}

// applies applies until it works: HAProxy may not be there yet.
func (l *lab) applies() {
	l.Helper()
	l.within(patience, "the configuration is served", func() bool { return l.try(5*time.Second).Err == nil })
}

func TestHAProxyOfAnotherContainerIsReadyWithTheFirstCompleteConfiguration(t *testing.T) {
	t.Parallel()
	ready := netip.MustParseAddrPort(haproxytest.Address(t))
	l := newLab(t, neighbour)
	_ = l.engine.Close()
	l.engine = nil
	_ = os.RemoveAll(filepath.Join(l.dir, "generations"))
	_ = os.Remove(filepath.Join(l.dir, "current"))
	options := l.options
	options.Render = realRender(t, l.dir, ready)
	engine, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if HasGeneration(l.dir) {
		t.Error("there is a configuration before the start")
	}
	if err := engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.engine = engine
	if !HasGeneration(l.dir) {
		t.Error("HAProxy has nothing to start with")
	}
	l.container()
	asks := func() string { return status(l, "http://"+ready.String()+"/ready") }
	l.within(patience, "it says that it is not ready", func() bool { return asks() == "503" })
	master := l.master()
	l.applies()
	if got := asks(); got != "200" || l.master() != master {
		t.Errorf("with a complete configuration: %s, master %d, was %d", got, l.master(), master)
	}
	_ = engine.Close()
	if l.engine, err = New(options); err != nil {
		t.Fatal(err)
	}
	if err := l.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := asks(); got != "200" || l.master() != master {
		t.Errorf("after the controller was started again: %s", got)
	}
}

func realRender(t *testing.T, dir string, ready netip.AddrPort) Render {
	t.Helper()
	renderer, err := templates.NewRenderer(templates.Settings{
		AdminSocket: AdminSocket(dir), HealthSocket: filepath.Join(dir, "run", "health.sock"), Instance: filepath.Base(dir), HardStopAfter: "1m",
		Ready: []netip.AddrPort{ready}, SignKeys: []templates.SignKey{{ID: "a", Secret: "c2VjcmV0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(config model.Config, place placement.Placement) (files.Set, []Fault, error) {
		set, _, err := renderer.Render(config, place)
		return set, nil, err
	}
}

// status is the status of an answer, or what went wrong.
func status(l *lab, url string) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return fmt.Sprint(response.StatusCode)
}

func TestAKilledHAProxyOfAnotherContainerIsBackWithEverything(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"master", "worker"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			l, c, address := beside(t)
			l.route("j", "two") // not in the files yet
			l.apply()
			start := time.Now()
			if victim == "worker" {
				l.kill(l.worker())
			} else {
				l.killAll()
			}
			l.within(patience, "the old one is gone", func() bool { return l.get(address, "j") != "b" })
			l.within(patience, "it answers again", func() bool { return l.get(address, "j") == "b" })
			t.Logf("back after %s, start %d", time.Since(start), c.starts.Load())
			l.backend("two", l.endpoint("c", 2))
			l.route("k", "one")
			l.applies()
			for host, want := range map[string]string{"h": "a", "j": "c", "k": "a"} {
				if got := l.get(address, host); got != want {
					t.Errorf("%s answers %q, want %q", host, got, want)
				}
			}
		})
	}
}

// fresh keeps no connection: an old worker answers one more request on each.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func TestHAProxyAndControllerKilledAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	l, _, address := beside(t)
	for round := range 6 {
		host := fmt.Sprintf("round-%d", round)
		l.route(host, "one")
		l.backend("two", l.endpoint(host, int32(100+round)))
		l.route("two", "two")
		if round%3 == 2 {
			l.port(host, "Gateway "+host)
		}
		// Whatever of it is done when both end.
		l.try(time.Duration(round*17) * time.Millisecond)
		l.killAll()
		l.crash()
		if got := l.get(address, "h"); got != "a" {
			l.within(patience, "it serves without a controller", func() bool { return l.get(address, "h") == "a" })
		}
		l.start()
		l.applies()
		if got := l.getWith(fresh, address, "two"); got != host {
			t.Errorf("round %d: %q", round, got)
		}
		if got := len(l.entries("hosts.map")); got != round+3 {
			t.Errorf("round %d: %d hosts, want %d", round, got, round+3)
		}
	}
}

func TestAControllerThatDiesAgainAndAgainIsNotNoticed(t *testing.T) {
	t.Parallel()
	l, c, address := beside(t)
	var failed []string
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if got := l.get(address, "h"); got != "a" {
					failed = append(failed, got)
				}
			}
		}
	}()
	for round := range 8 {
		l.route(fmt.Sprintf("round-%d", round), "one")
		if round%2 == 0 {
			l.port(fmt.Sprintf("q%d", round), "Gateway q")
		}
		l.try(time.Duration(round*40) * time.Millisecond)
		l.crash()
		l.start()
	}
	l.applies()
	close(stop)
	<-stopped
	if len(failed) > 0 || c.starts.Load() != 1 {
		t.Errorf("%d requests failed (%v), %d starts", len(failed), failed[:min(3, len(failed))], c.starts.Load())
	}
}

func TestAGenerationThatNobodySawHAProxyRunIsNotStartedFrom(t *testing.T) {
	t.Parallel()
	l, c, address := beside(t)
	// A reload is under way, with what HAProxy checks well and cannot load, when HAProxy and controller end.
	l.port("deaf", "Gateway deaf")
	d := l.engine.driver
	l.engine.end()
	d.want(l.config)
	if err := d.render(); err != nil {
		t.Fatal(err)
	}
	number, _, err := d.store.Write(d.left.set(), d.placement)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.store.Switch(number); err != nil {
		t.Fatal(err)
	}
	d.behind.wait(d)
	d.release()
	l.killAll()
	l.within(patience, "it does not come up", func() bool { return c.starts.Load() > 2 })
	l.start()
	l.within(patience, "it serves the last good one", func() bool { return l.get(address, "h") == "a" })
	l.route("k", "two")
	l.within(patience, "the rest is served, the deaf port is left out", func() bool {
		result := l.try(5 * time.Second)
		return result.Err == nil && result.LeftOut["Gateway deaf"] != "" && l.get(address, "k") == "b"
	})
}

func TestAnEndingHAProxyIsLeftAlone(t *testing.T) {
	t.Parallel()
	l, c, address := beside(t)
	// An endpoint that never answers: what is under way keeps the worker.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	l.backend("slow", model.Endpoint{Name: "slow", Address: netip.MustParseAddrPort(silent.Addr().String()), ID: 7})
	l.route("slow", "slow")
	l.applies()
	go l.getWith(fresh, address, "slow")
	time.Sleep(200 * time.Millisecond)
	close(c.last) // a pod that ends does not start containers again
	master := l.master()
	_ = syscall.Kill(master, syscall.SIGUSR1)
	l.within(patience, "it takes no connection any more", func() bool { return strings.Contains(l.getWith(fresh, address, "h"), "refused") })
	l.port("p2", "Gateway b") // needs a reload
	if result := l.try(2 * time.Second); result.Err == nil || result.Reloaded {
		t.Errorf("%+v, want an error: there is no HAProxy to change", result)
	}
	if got := l.pids(); len(got) != 2 || got[0] != master {
		t.Errorf("processes %v, want the master %d and its worker", got, master)
	}
	if err := l.engine.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.pids()) != 2 {
		t.Error("the end of the Engine ended HAProxy")
	}
}

var _ process = (*haproxy.Neighbour)(nil)
