package dataplane

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

func TestOnAFullDiskTheLastGoodIsServedAndDataGoesOn(t *testing.T) {
	dir := haproxytest.Dir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=640k,mode=0700"); err != nil {
		t.Skipf("mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	l := newLab(t, func(o *Options) { o.Dir = dir })
	address := l.port("p1", "Gateway a")
	l.backend("one", l.endpoint("a", 1))
	l.route("h", "one")
	l.apply()
	full := strings.Repeat("x", 240)
	for i := range 2000 {
		l.route(strings.Repeat("y", i%10)+full[:i/10], "one")
	}
	l.route("j", "one")
	l.apply() // at run time, there is room
	l.within(5*time.Second, "the files cannot follow", func() bool { return strings.Contains(l.logged(), "make room on that file system") })
	port := l.port("p2", "Gateway b")
	got := l.try(30 * time.Second)
	if got.Err == nil || !strings.Contains(got.Err.Error(), "make room on that file system") || !strings.Contains(got.Err.Error(), "keeps generation 1") {
		t.Errorf("%+v, want an error that says what to do", got.Err)
	}
	if answer := l.get(address, "j"); answer != "a" {
		t.Errorf("j answers %q", answer)
	}
	for i := range 2000 {
		l.route(strings.Repeat("y", i%10)+full[:i/10], "")
	}
	if got := l.apply(); !got.Reloaded || l.get(port, "j") != "a" {
		t.Errorf("with room again: %+v", got)
	}
}
