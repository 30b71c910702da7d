package haproxy

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

func TestHAProxyOutlivesLimpetAndIsAdopted(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	pid := l.process.PID()
	l.exec(AddMap(paths, "a", "1"))
	again := l.another()
	if found, err := again.Find(t.Context()); err != nil || !found || again.PID() != pid || !again.Alive() {
		t.Fatalf("found %v (%v) with pid %d, want %d", found, err, again.PID(), pid)
	}
	l.mapIs(paths, map[string]string{"a": "1"})
	if generation, err := l.client.Generation(t.Context()); err != nil || generation != 1 {
		t.Errorf("generation %d %v, want 1", generation, err)
	}
	if session, err := syscall.Getpgid(pid); err != nil || session == syscall.Getpgrp() {
		t.Errorf("HAProxy is in our process group (%v): it would get our signals", err)
	}
	if err := again.Stop(l.ctx(10 * time.Second)); err != nil || again.Alive() {
		t.Errorf("an adopted HAProxy is not stopped: %v", err)
	}
	l.within(5*time.Second, "its parent sees the end", func() bool { return !l.process.Alive() })
}

func TestNothingIsFoundWhereNobodyAnswers(t *testing.T) {
	t.Parallel()
	l := prepare(t, skeleton)
	if found, err := l.process.Find(t.Context()); found || err != nil {
		t.Errorf("found %v %v in an empty folder", found, err)
	}
	// A socket file that nobody listens at, and a pid that belongs to somebody else.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: masterSocket(l.dir), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	if err := os.WriteFile(filepath.Join(l.dir, runFolder, pidFile), []byte(strconv.Itoa(other.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := l.process.Find(t.Context()); found || err != nil {
		t.Errorf("found %v %v by a stale socket", found, err)
	}
	if err := l.process.Start(l.ctx(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := l.process.Stop(l.ctx(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a stranger's process was ended: %v", err)
	}
}

func TestSomebodyElsesProcessIsNotSignalled(t *testing.T) {
	t.Parallel()
	one, other := run(t, skeleton), run(t, skeleton)
	if ours, known := proven(one.process.PID(), other.dir); ours || !known {
		t.Errorf("the HAProxy of %s is taken for that of %s", one.dir, other.dir)
	}
	// A process that only has our words in its command line.
	fake := exec.Command("sh", "-c", "sleep 60; :", "-W", "unix@"+masterSocket(one.dir)+",mode,600")
	fake.Dir = "/"
	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Process.Kill(); _ = fake.Wait() })
	if err := one.process.Start(one.ctx(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if !other.process.Alive() || fake.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("a process was ended that is not ours")
	}
}

func TestAKilledHAProxyIsSeenAndStartedAgain(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"master", "worker"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			l := run(t, skeleton)
			pid := map[string]int{"master": l.process.PID(), "worker": l.worker()}[victim]
			l.kill(pid)
			l.within(5*time.Second, "its end is seen", func() bool { return !l.process.Alive() })
			if err := l.process.Start(l.ctx(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			l.mapIs(paths, nil)
			if pids := leftovers(l.dir); len(pids) != 2 {
				t.Errorf("processes %v, want a master and a worker", pids)
			}
		})
	}
}

func TestAWorkerThatHangsDoesNotOutliveItsMasterForLong(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	hung := l.worker()
	l.pause()
	l.kill(l.process.PID())
	l.within(5*time.Second, "the master's end is seen", func() bool { return !l.process.Alive() })
	if err := l.process.Start(l.ctx(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, pid := range leftovers(l.dir) {
		if pid == hung {
			t.Error("the hung worker still takes its part of the connections")
		}
	}
}

func TestAHungMasterIsUnavailableAndNotTakenForNone(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	haproxytest.Pause(t, l.process.PID())
	start := time.Now()
	if found, err := l.another().Find(l.ctx(300 * time.Millisecond)); found || !errors.Is(err, ErrUnavailable) || time.Since(start) > 2*time.Second {
		t.Errorf("found %v %v after %s, want ErrUnavailable", found, err, time.Since(start))
	}
}

func TestAReloadServesTheNewFiles(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	set := skeleton(l.dir)
	edit := set.Maps[paths].Edit()
	edit.Set("new", files.Entry{Value: "1"})
	set.Maps[paths] = edit.Table()
	l.write(set)
	if err := l.process.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.mapIs(paths, map[string]string{"new": "1"})
	if generation, err := l.client.Generation(t.Context()); err != nil || generation != 2 {
		t.Errorf("generation %d %v, want 2", generation, err)
	}
	if !l.process.Alive() {
		t.Error("the process is not known any more")
	}
	l.within(5*time.Second, "the old worker is gone", func() bool { return len(leftovers(l.dir)) == 2 })
}

func TestARefusedReloadKeepsTheOldWorkerAndNamesTheLine(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	l.exec(AddMap(paths, "a", "1"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	set := haproxytest.Skeleton{Dir: l.dir, Slots: 4, Ports: []haproxytest.Port{{Name: "p1", Address: taken.Addr().String(), Owner: "X"}}}.Set()
	l.write(set)
	if err := Check(t.Context(), haproxytest.Binary(t), l.store.Path(2)); err != nil {
		t.Fatalf("a check does not bind, but: %v", err)
	}
	var refused *RefusedError
	if err := l.process.Reload(t.Context()); !errors.As(err, &refused) || len(refused.Alerts) != 1 {
		t.Fatalf("%v, want one alert", err)
	}
	alert := refused.Alerts[0]
	if got := set.Owner(alert.File, alert.Line); got != "X" || !strings.Contains(alert.Message, "Address already in use") {
		t.Errorf("alert %+v is %q's, want X's", alert, got)
	}
	l.mapIs(paths, map[string]string{"a": "1"})
	l.write(skeleton(l.dir))
	if err := l.process.Reload(t.Context()); err != nil {
		t.Errorf("the next reload: %v", err)
	}
}

func TestAStartThatIsRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	l := prepare(t, func(dir string) files.Set {
		set := skeleton(dir)
		set.Sections[1].Text += "    frobnicate\n"
		return set
	})
	var refused *RefusedError
	err := l.process.Start(l.ctx(20 * time.Second))
	if !errors.As(err, &refused) || len(refused.Alerts) != 1 || !strings.Contains(refused.Alerts[0].Message, "unknown keyword 'frobnicate'") {
		t.Errorf("%v, want HAProxy's words", err)
	}
	if pids := leftovers(l.dir); len(pids) > 0 || l.process.Alive() {
		t.Errorf("processes are left: %v", pids)
	}
}

func TestAPathThatIsTooLongForASocketIsRefused(t *testing.T) {
	t.Parallel()
	_, err := NewProcess("haproxy", "/"+strings.Repeat("x", 100), nil)
	if err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("%v, want what to do", err)
	}
}

func TestTheLogStaysInBounds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), logFile)
	for range 3 {
		file, _, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			_, _ = file.WriteString(strings.Repeat("x", maxLog/10) + "\n")
		}
		if err := trimLog(path); err != nil {
			t.Fatal(err)
		}
		_, _ = file.WriteString("last\n")
		_ = file.Close()
		now, _ := os.Stat(path)
		old, err := os.Stat(path + ".1")
		if err != nil || now.Size() != 5 || old.Size() > maxLog {
			t.Fatalf("%v: the log has %d bytes", err, now.Size())
		}
	}
}

func TestAWorkerTellsOfItself(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	info, err := l.client.Info(t.Context())
	if err != nil || info.PID != l.worker() || !strings.HasPrefix(info.Version, "3.") || info.MaxConnections == 0 || info.Stopping {
		t.Errorf("%+v %v", info, err)
	}
}
