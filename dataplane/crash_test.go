package dataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// serving is a lab with a port, two backends and two routes, all applied.
func serving(t testing.TB, change ...func(*Options)) (l *lab, address string) {
	t.Helper()
	l = newLab(t, change...)
	address = l.port("p1", "Gateway a")
	l.backend("one", l.endpoint("a", 1))
	l.backend("two", l.endpoint("b", 1), l.endpoint("c", 2))
	l.route("h", "one")
	l.route("i", "two")
	l.apply()
	return l, address
}

func TestAKilledHAProxyIsBackWithEverything(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"master", "worker"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			l, address := serving(t)
			l.route("j", "one") // not in the files yet
			l.apply()
			l.kill(map[string]func() int{"master": l.master, "worker": l.worker}[victim]())
			start := time.Now()
			l.within(10*time.Second, "it answers again", func() bool { return l.get(address, "j") == "a" })
			t.Logf("back after %s", time.Since(start))
			l.within(5*time.Second, "the old ones are gone", func() bool { return len(l.pids()) == 2 })
			l.route("k", "two")
			if got := l.apply(); got.Reloaded || got.Commands != 2 {
				t.Errorf("afterwards: %+v, want two commands", got)
			}
		})
	}
}

func TestHAProxyKilledWhileApplyingLosesNothing(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	stop := time.Now().Add(3 * time.Second)
	go func() {
		for time.Now().Before(stop) {
			time.Sleep(700 * time.Millisecond)
			if pids := l.pids(); len(pids) > 0 {
				_ = syscall.Kill(pids[len(pids)-1], syscall.SIGKILL)
			}
		}
	}()
	count, failed := 0, 0
	for time.Now().Before(stop) {
		l.route(fmt.Sprintf("host-%d", count), "one")
		count++
		if result := l.try(5 * time.Second); result.Err != nil {
			failed++
			if !errors.Is(result.Err, haproxy.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", result.Err)
			}
		}
	}
	time.Sleep(800 * time.Millisecond)
	l.within(10*time.Second, "the last configuration is served", func() bool { return l.try(5*time.Second).Err == nil })
	t.Logf("%d applied, %d of them failed", count, failed)
	if got := l.entries("hosts.map"); len(got) != count+2 {
		t.Errorf("%d hosts, want %d", len(got), count+2)
	}
	if got := l.get(address, fmt.Sprintf("host-%d", count-1)); got != "a" {
		t.Errorf("the last host answers %q", got)
	}
}

func TestAfterLimpetsDeathHAProxyIsAdoptedWithoutAReload(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.backend("three", l.endpoint("d", 1))
	l.route("j", "three")
	l.apply()
	time.Sleep(1200 * time.Millisecond) // the files follow within a second
	worker := l.worker()
	l.crash()
	if got := l.get(address, "j"); got != "d" {
		t.Errorf("without Limpet, j answers %q", got)
	}
	l.start()
	if got := l.apply(); got.Reloaded || got.Commands != 0 || got.Generation != 1 {
		t.Errorf("after the adoption: %+v, want nothing to do", got)
	}
	l.route("k", "three")
	if got := l.apply(); got.Reloaded || got.Commands != 2 || l.worker() != worker {
		t.Errorf("a change after the adoption: %+v", got)
	}
	if got := l.get(address, "k"); got != "d" {
		t.Errorf("k answers %q", got)
	}
}

func TestAfterLimpetsDeathWhatTheFilesDoNotHaveIsFoundOut(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.route("h", "")
	l.route("j", "two")
	l.backend("two", l.endpoint("b", 1), l.endpoint("e", 9))
	l.backend("four", l.endpoint("f", 1)) // no file knows its slot
	l.route("l", "four")
	l.apply()
	l.crash() // before the files were written
	l.backend("three", l.endpoint("d", 1))
	l.route("k", "three")
	l.start()
	got := l.apply()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	t.Logf("%+v", got)
	for host, want := range map[string]string{"h": "404 Not Found", "i": "b e", "j": "b e", "k": "d", "l": "f"} {
		if answer := l.get(address, host); !strings.Contains(want, answer) {
			t.Errorf("%s answers %q, want %s", host, answer, want)
		}
	}
	l.within(10*time.Second, "nothing is left over", func() bool { return strings.Count(l.servers(), "=") == 5 })
}

func TestAfterAllDiedTheLastFilesAreServedAtOnce(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.route("j", "one")
	l.apply()
	time.Sleep(1200 * time.Millisecond)
	slot := l.entries("paths.map")["v-i/"]
	l.crash()
	l.kill(l.master())
	l.within(5*time.Second, "nothing runs", func() bool { return len(l.pids()) == 0 })
	l.start() // without any Apply
	if got := l.get(address, "j"); got != "a" {
		t.Errorf("from the files alone, j answers %q", got)
	}
	if got := l.apply(); got.Reloaded || got.Commands != 0 {
		t.Errorf("the same configuration again: %+v", got)
	}
	if got := l.entries("paths.map")["v-i/"]; got != slot {
		t.Errorf("a backend moved from %s to %s", slot, got)
	}
}

func TestAHungHAProxyIsAnErrorInTimeAndHeals(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	worker := l.worker()
	haproxytest.Pause(t, worker)
	l.route("j", "one")
	start := time.Now()
	if got := l.try(300 * time.Millisecond); !errors.Is(got.Err, haproxy.ErrUnavailable) || time.Since(start) > 2*time.Second {
		t.Errorf("after %s: %v, want ErrUnavailable within 300 ms", time.Since(start), got.Err)
	}
	l.route("k", "one")
	if got := l.try(300 * time.Millisecond); !errors.Is(got.Err, haproxy.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", got.Err)
	}
	_ = syscall.Kill(worker, syscall.SIGCONT)
	l.within(15*time.Second, "it is served without another Apply", func() bool { return l.get(address, "k") == "a" && l.get(address, "j") == "a" })
	if l.worker() != worker {
		t.Error("it was started again")
	}
}

func TestAnHAProxyWhoseSocketsAreGoneIsStartedAnew(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"admin.sock", "master.sock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, address := serving(t)
			if err := os.Remove(filepath.Join(l.dir, "run", name)); err != nil {
				t.Fatal(err)
			}
			l.route("j", "one")
			l.port("p2", "Gateway b")
			l.within(20*time.Second, "all is served", func() bool { return l.try(10*time.Second).Err == nil && l.get(address, "j") == "a" })
			l.within(5*time.Second, "one HAProxy runs", func() bool { return len(l.pids()) == 2 })
		})
	}
}

func TestAMapThatNoRuleReadsIsAFileAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_ = l.engine.Close()
	inner := &testRenderer{lab: l, dir: l.dir}
	options := l.options
	count := 0
	options.Render = func(config model.Config, place placement.Placement) (files.Set, []Fault, error) {
		set, faults, err := inner.render(config, place)
		set.Maps = maps.Clone(set.Maps)
		count++
		set.Maps["unread.map"] = table.Of(table.Entry[files.Entry]{Key: fmt.Sprint(count), Value: files.Entry{Value: "v"}})
		return set, faults, err
	}
	engine, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.engine = engine
	l.apply()
	for range 3 {
		l.port("p1", "")
		l.noPort("p1")
		if got := l.apply(); got.Reloaded {
			t.Errorf("%+v, want no reload", got)
		}
	}
}

func TestVeryLongEntriesComeChangeAndGo(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	long := strings.Repeat(";", 3900)
	for _, backend := range []string{"one", "two"} {
		l.route(long, backend)
		if got := l.apply(); got.Reloaded || len(got.LeftOut) > 0 {
			t.Errorf("%+v, want it served", got)
		}
		if got := l.entries("hosts.map"); got[long] != "v-"+long || len(got) != 3 {
			t.Errorf("%d hosts", len(got))
		}
	}
	l.route(long, "")
	if got := l.apply(); got.Reloaded || len(l.entries("hosts.map")) != 2 || len(l.entries("paths.map")) != 2 {
		t.Errorf("%+v, want it gone", got)
	}
	if got := l.get(address, "h"); got != "a" {
		t.Errorf("h answers %q", got)
	}
}

func TestALimpetThatDiedBetweenSwitchAndReloadIsFoundOut(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	time.Sleep(600 * time.Millisecond)
	driver := l.engine.driver
	l.crash()
	set := driver.running
	set.Sections = append(append([]files.Section(nil), set.Sections...), files.Section{Name: "backend later", Text: "backend later\n"})
	number, _, err := driver.store.Write(set, driver.placement)
	if err != nil || number != 2 {
		t.Fatal(number, err)
	}
	if err := driver.store.Switch(number); err != nil {
		t.Fatal(err)
	}
	l.start()
	if got := driver.store.Current(); got != 1 {
		t.Errorf("current is %d, want the one that HAProxy runs", got)
	}
	l.route("j", "one")
	if got := l.apply(); got.Reloaded || got.Generation != 1 || l.get(address, "j") != "a" {
		t.Errorf("%+v", got)
	}
	l.port("p2", "Gateway b")
	if got := l.apply(); got.Generation != 3 {
		t.Errorf("%+v, want generation 3", got)
	}
}

func TestFilesThatCannotBeReadBackAreWrittenAnew(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.crash()
	if err := os.WriteFile(filepath.Join(l.dir, "current", "index.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start()
	got := l.apply()
	if !got.Reloaded || !strings.Contains(fmt.Sprint(got.Reasons), "cannot be read") || l.get(address, "h") != "a" {
		t.Errorf("%+v, want a reload", got)
	}
	if got := l.apply(); got.Reloaded {
		t.Errorf("once more: %+v", got)
	}
	// The same with nothing running.
	l.crash()
	if err := os.WriteFile(filepath.Join(l.dir, "current", "index.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.kill(l.master())
	l.within(5*time.Second, "nothing runs", func() bool { return len(l.pids()) == 0 })
	l.start()
	if got := l.apply(); !got.Reloaded || l.get(address, "h") != "a" {
		t.Errorf("%+v, want a start", got)
	}
}

func TestAnUnstartableHAProxyIsTriedAgainWithPatience(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "haproxy")
	genuine := haproxytest.Binary(t)
	write := func(text string) {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("exec " + genuine + ` "$@"` + "\n")
	l, address := serving(t, func(o *Options) { o.Binary = script })
	write(`echo start >> "$0.starts"; exit 1` + "\n")
	l.kill(l.master())
	l.within(5*time.Second, "its death is noticed", func() bool {
		logged := l.logged() // by looking at it, or by asking it something
		return strings.Contains(logged, "HAProxy died") || strings.Contains(logged, "HAProxy is not back yet")
	})
	if got := l.try(5 * time.Second); got.Err == nil {
		t.Errorf("%+v, want an error", got)
	}
	time.Sleep(3 * time.Second)
	starts, _ := os.ReadFile(script + ".starts")
	if n := strings.Count(string(starts), "start"); n < 2 || n > 30 {
		t.Errorf("%d starts in three seconds", n)
	}
	write("exec " + genuine + ` "$@"` + "\n")
	l.within(20*time.Second, "it is back", func() bool { return l.get(address, "h") == "a" })
}

func TestWhatSomebodyElseChangesIsRepaired(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	ctx := context.Background()
	if err := l.client.Exec(ctx, haproxy.DelMap("hosts.map", "h"), haproxy.AddMap("hosts.map", "x", "y"), haproxy.AddMap("hosts.map", "i", "nowhere")); err != nil {
		t.Fatal(err)
	}
	l.route("h", "") // h is gone already: HAProxy says so
	l.route("j", "one")
	if got := l.apply(); got.Reloaded {
		t.Errorf("%+v, want a repair without a reload", got)
	}
	if got := l.entries("hosts.map"); len(got) != 2 || got["i"] != "v-i" || got["j"] != "v-j" {
		t.Errorf("hosts are %v", got)
	}
	if got := l.get(address, "j"); got != "a" {
		t.Errorf("j answers %q", got)
	}
}

func TestSlotsAreReusedOnlyWhenEmptyAndRefilledInTheBackground(t *testing.T) {
	t.Parallel()
	results := make(chan Result, 100)
	l, address := serving(t, func(o *Options) { o.OnResult = func(r Result) { results <- r } })
	endpoint := l.endpoint("x", 3)
	for i := range 47 { // with those of serving, 49 of 64
		l.backend(fmt.Sprintf("more-%02d", i), endpoint)
	}
	if got := l.apply(); got.Reloaded || got.Commands != 2*47 {
		t.Errorf("%+v, want the spare slots to be used", got)
	}
	select {
	case got := <-results:
		if !got.Reloaded || len(got.Reasons) != 1 || got.Reasons[0] != "only 15 of 64 slots are free" {
			t.Errorf("background: %+v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the slots were not refilled")
	}
	for i := range 47 {
		l.backend(fmt.Sprintf("more-%02d", i))
	}
	l.apply()
	l.within(5*time.Second, "the servers are deleted", func() bool { return !strings.Contains(l.servers(), "x") })
	l.backend("again", l.endpoint("y", 1))
	l.route("y", "again")
	l.within(2*time.Second, "the slot is given back", func() bool { return l.try(time.Second).Err == nil && l.entries("paths.map")["v-y/"] != "" })
	if got := l.get(address, "y"); got != "y" {
		t.Errorf("y answers %q", got)
	}
}

func TestTheFilesFollowWithinASecond(t *testing.T) {
	t.Parallel()
	l, _ := serving(t)
	l.route("j", "one")
	l.backend("two", l.endpoint("b", 1))
	l.apply()
	file := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(l.dir, "current", name))
		return string(text)
	}
	l.within(time.Second, "the files have it", func() bool {
		return strings.Contains(file("maps/hosts.map"), "j v-j\n") && strings.Count(file("haproxy.cfg"), "    server ") == 2
	})
	var place struct {
		Placement struct{ Slots map[string]string }
	}
	_ = place
	if !strings.Contains(file("index.json"), `"two":"s2"`) {
		t.Error("the placement is not stored")
	}
}

func TestAnEmptyConfigurationRuns(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.config = model.Config{}
	if got := l.apply(); !got.Reloaded || got.Generation != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAFolderIsKnownByWhateverNameItHas(t *testing.T) {
	t.Parallel()
	l, _ := serving(t)
	time.Sleep(600 * time.Millisecond)
	l.crash()
	other := filepath.Join(haproxytest.Dir(t), "link")
	if err := os.Symlink(l.dir, other); err != nil {
		t.Fatal(err)
	}
	l.options.Dir = other
	l.start()
	if got := l.apply(); got.Reloaded || len(l.pids()) != 2 {
		t.Errorf("%+v with processes %v, want the same HAProxy", got, l.pids())
	}
}
