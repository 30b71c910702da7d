package dataplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
)

func TestARetryProfileTakesAReloadOnce(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	retried := func(name, host string, retry model.Retry) {
		l.backend(name, l.endpoint(name, 1))
		edit := l.config.Backends.Edit()
		backend, _ := edit.Get(name)
		backend.Retry = retry
		edit.Set(name, backend)
		l.config.Backends = edit.Table()
		l.route(host, name)
	}
	often := model.Retry{Set: true, Attempts: 5, Codes: "500 503"}
	stop := l.traffic(address, "h", "a", 3)
	retried("three", "j", often)
	got := l.apply()
	if !got.Reloaded || !slices.Contains(got.Reasons, "3 slots instead of 0 for backends with 5 retries on 500 503") || l.get(address, "j") != "three" {
		t.Errorf("the first: %+v", got)
	}
	retried("four", "k", often)
	if got := l.apply(); got.Reloaded || l.get(address, "k") != "four" {
		t.Errorf("the second: %+v, want no reload", got)
	}
	// What a backend is tried again on changes.
	retried("two", "i", often)
	if got := l.apply(); got.Reloaded || l.get(address, "i") != "two" {
		t.Errorf("a backend that is served: %+v, want no reload", got)
	}
	l.within(5*time.Second, "the spares are back", func() bool { return strings.Contains(l.logged(), "slots are free") })
	if got := l.apply(); got.Reloaded || got.Commands != 0 {
		t.Errorf("afterwards: %+v, want nothing to do", got)
	}
	if _, wrong := stop(); wrong != "" {
		t.Errorf("an answer was %q", wrong)
	}
	l.crash()
	l.start()
	if got := l.apply(); got.Reloaded || l.get(address, "k") != "four" {
		t.Errorf("after a crash: %+v", got)
	}
}
