package behaviour

import (
	"net/http"
	"testing"
	"time"
)

// A pod ends while it works on requests, as one does that does not wait for them in a rollout. RFC 9110, 9.2.2: a proxy may
// repeat what only asks, and must not repeat what may have had an effect.
func TestAPodThatEndsUnderARequestFailsNoReader(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 2))
	for _, c := range []struct {
		method string
		status int
		repeat int64
	}{
		{http.MethodGet, http.StatusOK, 1},
		{http.MethodHead, http.StatusOK, 1},
		{http.MethodPost, http.StatusBadGateway, 0},
		{http.MethodDelete, http.StatusBadGateway, 0},
	} {
		v := w.visitor("shop.example")
		first := v.get(t, "/cookie").echo.Pod
		on, other := w.pod(first), w.pod("shop-1")
		if other == on {
			other = w.pod("shop-2")
		}
		before := other.requests.Load()
		on.wait.Store(int64(time.Minute))
		arrived := on.requests.Load()
		result := make(chan answer, 1)
		go func() {
			result <- w.ask(t, request{method: c.method, host: "shop.example", target: "/cookie", headers: []string{"Cookie: " + v.cookies("/cookie")}})
		}()
		w.until(t, func() bool { return on.requests.Load() > arrived }, "the request did not arrive")
		on.stop()
		a := <-result
		if a.err != nil || a.status != c.status {
			t.Errorf("%s: %s, %d was expected", c.method, a.outcome(), c.status)
		}
		if n := other.requests.Load() - before; n != c.repeat {
			t.Errorf("%s: the other pod got %d requests, %d were expected", c.method, n, c.repeat)
		}
		if moved := a.header.Get("Set-Cookie") != ""; moved != (c.repeat > 0) {
			t.Errorf("%s: a new token: %t", c.method, moved)
		}
		on.wait.Store(0)
		on.start(t)
	}
}
