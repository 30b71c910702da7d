package dataplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limpet-gateway/limpet/controller/model"
)

func TestAConfigurationIsServedAndDataChangesWithoutAReload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	address := l.port("p1", "Gateway a")
	l.backend("one", l.endpoint("a", 1))
	l.route("h", "one")
	first := l.apply()
	if !first.Reloaded || first.Generation != 1 || len(first.Reasons) == 0 || len(first.LeftOut) > 0 {
		t.Errorf("first: %+v", first)
	}
	if got := l.get(address, "h"); got != "a" {
		t.Errorf("h answers %q, want a", got)
	}

	l.backend("two", l.endpoint("b", 1), l.endpoint("c", 2))
	l.route("i", "two")
	second := l.apply()
	if second.Reloaded || second.Commands != 6 || second.Generation != 1 || second.Revision != first.Revision+1 {
		t.Errorf("second: %+v, want 2 servers and 2 entries by 6 commands", second)
	}
	if got := l.get(address, "i"); got != "b" && got != "c" {
		t.Errorf("i answers %q", got)
	}
	l.route("h", "two")
	if got := l.apply(); got.Reloaded || got.Commands != 1 {
		t.Errorf("another backend: %+v, want one command", got)
	}
	if got := l.apply(); got.Reloaded || got.Commands != 0 || got.Revision != second.Revision+1 {
		t.Errorf("nothing changed: %+v", got)
	}
	l.route("h", "")
	l.backend("one")
	if got := l.apply(); got.Reloaded || got.Commands != 3 {
		t.Errorf("a route and a backend removed: %+v, want 3 commands", got)
	}
	if got := l.get(address, "h"); !strings.HasPrefix(got, "404") {
		t.Errorf("h answers %q, want 404", got)
	}
	l.within(5*time.Second, "the server is deleted", func() bool { return l.servers() == "s2/b=1 s2/c=1" })
}

func TestADrainingEndpointKeepsItsServerWithoutWeight(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.port("p1", "Gateway a")
	a, b := l.endpoint("a", 1), l.endpoint("b", 2)
	l.backend("one", a, b)
	l.route("h", "one")
	l.apply()
	a.Draining = true
	l.backend("one", a, b)
	if got := l.apply(); got.Reloaded || got.Commands != 1 || l.servers() != "s1/a=0 s1/b=1" {
		t.Errorf("%+v; servers %s", got, l.servers())
	}
	a.Draining = false
	b.Address = a.Address
	l.backend("one", a, b)
	if got := l.apply(); got.Reloaded || got.Commands != 2 || l.servers() != "s1/a=1 s1/b=1" {
		t.Errorf("%+v; servers %s", got, l.servers())
	}
}

func TestAChangedPortIsOneReloadWithItsReason(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.port("p1", "Gateway a")
	l.backend("one", l.endpoint("a", 1))
	l.route("h", "one")
	l.apply()
	second := l.port("p2", "Gateway b")
	got := l.apply()
	if !got.Reloaded || got.Generation != 2 || len(got.Reasons) != 1 || got.Reasons[0] != "frontend p2 of Gateway b added" {
		t.Errorf("%+v", got)
	}
	if a, b := l.get(first, "h"), l.get(second, "h"); a != "a" || b != "a" {
		t.Errorf("answers %q and %q", a, b)
	}
	l.noPort("p1")
	if got := l.apply(); !got.Reloaded || got.Reasons[0] != "frontend p1 of Gateway a removed" {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(l.logged(), "frontend p1 of Gateway a removed") {
		t.Error("the log does not say why")
	}
}

func TestEverythingStopsWithTheEngineButHAProxy(t *testing.T) {
	before := goleak.IgnoreCurrent()
	l := newLab(t)
	l.port("p1", "Gateway a")
	l.apply()
	if err := l.engine.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	if pids := l.pids(); len(pids) != 2 {
		t.Errorf("processes are %v, want a master and a worker", pids)
	}
	if got := l.engine.Apply(context.Background(), model.Config{}); !errors.Is(got.Err, ErrClosed) {
		t.Errorf("a closed engine answers %v", got.Err)
	}
	l.start()
	if got := l.apply(); got.Reloaded {
		t.Errorf("after a restart: %+v", got)
	}
	if err := l.engine.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if pids := l.pids(); len(pids) != 0 {
		t.Errorf("processes %v are left after a shutdown", pids)
	}
}

func TestOneLimpetDrivesAFolder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	options := l.options
	options.Render = (&testRenderer{lab: &lab{}}).render
	other, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "another Limpet drives") {
		t.Errorf("%v, want a refusal", err)
	}
}

func TestFromNoEndpointToOneAndBackTakesNoReload(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	endpoint := l.endpoint("a", 1)
	for i := range 10 {
		edit := l.config.Backends.Edit()
		edit.Set("one", &model.Backend{Name: "one"})
		l.config.Backends = edit.Table()
		if got := l.apply(); got.Reloaded || !strings.HasPrefix(l.get(address, "h"), "503") {
			t.Fatalf("%d: %+v, and h answers %q", i, got, l.get(address, "h"))
		}
		l.backend("one", endpoint)
		if got := l.apply(); got.Reloaded || l.get(address, "h") != "a" {
			t.Fatalf("%d: %+v, and h answers %q", i, got, l.get(address, "h"))
		}
	}
}
