package dataplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// reloadAndGo tells the master to reload, as a Limpet does that is killed before there is an answer.
func (l *lab) reloadAndGo() {
	l.Helper()
	conn, err := net.Dial("unix", filepath.Join(l.dir, "run", "master.sock"))
	if err != nil {
		l.Fatal(err)
	}
	if _, err := conn.Write([]byte("reload\n")); err != nil {
		l.Fatal(err)
	}
	_ = conn.Close()
}

func TestAnHAProxyInTheMiddleOfAReloadIsAdopted(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	for i := range 300 { // a reload takes its time
		l.backend(fmt.Sprintf("b%d", i), l.endpoint("x", 1))
	}
	l.apply()
	master := l.engine.driver.process.PID()
	kept, fresh := l.traffic(address, "h", "a", 2), l.newConnections(address, "h", "a", 2)
	for i := range 20 {
		l.crash()
		l.reloadAndGo()
		time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
		l.start()
		l.route(fmt.Sprintf("host%d", i), "one")
		if i%3 == 0 {
			l.port(fmt.Sprintf("q%d", i), "Port x")
		}
		l.within(20*time.Second, "the change is served", func() bool {
			return l.try(10*time.Second).Err == nil && l.get(address, fmt.Sprintf("host%d", i)) == "a"
		})
		if pid := l.engine.driver.process.PID(); pid != master {
			t.Fatalf("round %d: master %d instead of %d", i, pid, master)
		}
	}
	for i, stop := range []func() (int64, string){kept, fresh} {
		requests, wrong := stop()
		t.Logf("%d: %d requests", i, requests)
		if wrong != "" {
			t.Errorf("%d: a request was answered by %q", i, wrong)
		}
	}
}

// A reload that was begun with a new generation ends with it, and it is not taken back.
func TestAReloadThatNobodyWaitedForIsNotTakenBack(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.engine.end()
	d := l.engine.driver
	d.behind.wait(d)
	extra := l.port("p2", "Port x")
	d.want(l.config)
	if err := d.render(); err != nil {
		t.Fatal(err)
	}
	c, err := d.search(t.Context())
	if err == nil {
		err = d.store.Switch(c.number)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.release()
	l.reloadAndGo()
	l.start()
	if got := l.apply(); got.Reloaded || got.Generation != c.number || l.get(extra, "h") != "a" || l.get(address, "h") != "a" {
		t.Errorf("%+v, want generation %d without a reload", got, c.number)
	}
}

func TestAWorkerThatGoesOnAfterARefusedLoadIsAdopted(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	master, worker := l.engine.driver.process.PID(), l.worker()
	for i := range 3 {
		l.port(fmt.Sprintf("deaf%d", i), fmt.Sprintf("Port x/%d", i))
		if got := l.apply(); got.Reloaded || len(got.LeftOut) != i+1 {
			t.Fatalf("%+v", got)
		}
		l.crash()
		for id := range i + 1 {
			l.noPort(fmt.Sprintf("deaf%d", id))
		}
		l.start()
		if got := l.apply(); got.Reloaded || l.engine.driver.process.PID() != master || l.worker() != worker || l.get(address, "h") != "a" {
			t.Fatalf("%+v; worker %d, want %d", got, l.worker(), worker)
		}
		for id := range i + 1 {
			l.port(fmt.Sprintf("deaf%d", id), fmt.Sprintf("Port x/%d", id))
		}
	}
}
