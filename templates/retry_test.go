package templates

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

// failing is a backend that answers the first requests of an id with a code, or late, and counts them.
type failing struct {
	mu    sync.Mutex
	tries map[string]int
}

func (f *failing) start(t testing.TB) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func (f *failing) count(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries[id]
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	query := r.URL.Query()
	f.mu.Lock()
	if f.tries == nil {
		f.tries = map[string]int{}
	}
	f.tries[query.Get("id")]++
	n := f.tries[query.Get("id")]
	f.mu.Unlock()
	if times, _ := strconv.Atoi(query.Get("times")); n <= times {
		if wait, err := time.ParseDuration(query.Get("wait")); err == nil {
			time.Sleep(wait)
		}
		if query.Has("cut") {
			panic(http.ErrAbortHandler)
		}
		if code, err := strconv.Atoi(query.Get("code")); err == nil {
			w.WriteHeader(code)
		}
	}
	fmt.Fprintf(w, "try %d of %d bytes", n, len(body))
}

func retrying(name string, retry model.Retry, addresses ...netip.AddrPort) table.Entry[*model.Backend] {
	entry := backend(name, addresses...)
	retry.Set = true
	entry.Value.Retry = retry
	return entry
}

func TestARequestIsTriedAsOftenAsItsProfileSays(t *testing.T) {
	port := freePort(t)
	var f failing
	address := f.start(t)
	dead := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(t))
	rules := []*model.Rule{to("none", "none", model.Filters{}), to("zero", "zero", model.Filters{}), to("two", "two", model.Filters{}), to("three", "three", model.Filters{}), to("many", "many", model.Filters{})}
	late, impatient, hop := to("late", "late", model.Filters{}), to("impatient", "impatient", model.Filters{}), bounded("hop", "three", 500*time.Millisecond)
	late.BackendTimeout, impatient.BackendTimeout = 300*time.Millisecond, 300*time.Millisecond
	run(t, serving(port, []table.Entry[*model.Backend]{
		backend("none", address), retrying("zero", model.Retry{}, address),
		retrying("two", model.Retry{Attempts: 2, Codes: "500 502 503 504"}, address), retrying("three", model.Retry{Attempts: 3, Codes: "500"}, address),
		retrying("many", model.Retry{Attempts: 100}, dead, address),
		retrying("late", model.Retry{Attempts: 3, Codes: "500", Timeouts: true}, address), retrying("impatient", model.Retry{Attempts: 3, Codes: "500"}, address),
	}, append(rules, late, impatient, hop)...))
	// On a connection that was used before, HAProxy leaves it to the client to try again what was cut off.
	transport := &http.Transport{DisableKeepAlives: true}
	for i, c := range []struct {
		path          string
		body          int
		status, tries int
		limit         time.Duration
	}{
		{"/none?code=500&times=1", 0, 500, 1, 0},
		{"/zero?code=500&times=1", 0, 500, 1, 0},
		{"/two?code=500&times=2", 0, 200, 3, 0},
		{"/two?code=504&times=2", 0, 200, 3, 0},
		{"/two?code=503&times=3", 0, 503, 3, 0},
		{"/two?code=501&times=1", 0, 501, 1, 0},
		{"/three?code=500&times=3", 0, 200, 4, 0},
		{"/three?code=500&times=9", 0, 500, 4, 0},
		{"/three?code=502&times=1", 0, 502, 1, 0},
		{"/three?code=500&times=1", 5_000, 200, 2, 0},
		{"/three?code=500&times=1", 100_000, 500, 1, 0}, // too long to be kept
		{"/three?cut=1&times=1", 0, 502, 1, 0},          // may have been processed
		{"/late?wait=600ms&times=1", 0, 200, 2, 0},
		{"/late?wait=1s&times=9", 0, 504, 4, 2 * time.Second},
		{"/impatient?wait=600ms&times=1", 0, 504, 1, 0},
		{"/hop?code=500&times=2", 0, 200, 3, 0},
		{"/hop?code=500&times=9&wait=300ms", 0, 504, 2, 900 * time.Millisecond},
	} {
		id := strconv.Itoa(i)
		start := time.Now()
		method, body := http.MethodGet, io.Reader(nil)
		if c.body > 0 {
			method, body = http.MethodPost, bytes.NewReader(bytes.Repeat([]byte("x"), c.body))
		}
		req, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://127.0.0.1:%d%s&id=%s", port, c.path, id), body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(c.path, err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if took := time.Since(start); res.StatusCode != c.status || f.count(id) != c.tries || took > max(c.limit, 900*time.Millisecond) {
			t.Errorf("%s, %d bytes: %d after %d tries in %v (%s), want %d after %d", c.path, c.body, res.StatusCode, f.count(id), took, text, c.status, c.tries)
		}
	}
	for range 10 {
		if got := send(t, port, "GET", "/many?x=y", nil); got.status != 200 {
			t.Errorf("one of two endpoints refuses: %d", got.status)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	if tries := f.count("16"); tries > 2 {
		t.Errorf("tried on behind a deadline that has passed: %d", tries)
	}
}

func TestARequestThatIsTriedElsewhereGetsANewToken(t *testing.T) {
	port := freePort(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("break") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Header().Set("Server-Name", "broken")
	}))
	t.Cleanup(broken.Close)
	session := &model.Session{ID: "s1", Scope: "x", Backend: "b", Carrier: model.Cookie, Name: "shop", Path: "/"}
	direct, hop := to("direct", "both", model.Filters{}), bounded("hop", "both", 5*time.Second)
	direct.Split[0].Session, hop.Split[0].Session = session, session
	run(t, serving(port, []table.Entry[*model.Backend]{
		retrying("both", model.Retry{Attempts: 2, Codes: "503"}, echo(t, "fine"), netip.MustParseAddrPort(broken.Listener.Addr().String())),
	}, direct, hop))
	for _, path := range []string{"/direct", "/hop"} {
		cookie := ""
		for range 50 {
			if got := send(t, port, "GET", path, nil); strings.Contains(got.header.Get("Set-Cookie"), ".b.e2.") {
				cookie, _, _ = strings.Cut(got.header.Get("Set-Cookie"), ";")
				break
			}
		}
		if got := send(t, port, "GET", path, http.Header{"Cookie": {cookie}}); got.server == "fine" || got.header["Set-Cookie"] != nil || cookie == "" {
			t.Errorf("%s: pinned: %v", path, got)
		}
		got := send(t, port, "GET", path+"?break", http.Header{"Cookie": {cookie}})
		if got.status != 200 || got.server != "fine" || !strings.Contains(got.header.Get("Set-Cookie"), ".b.e1.") {
			t.Errorf("%s: tried elsewhere: %v", path, got)
		}
	}
}

func TestAStreamBeginsWhereItCouldBeTriedAgain(t *testing.T) {
	port := freePort(t)
	run(t, serving(port, []table.Entry[*model.Backend]{retrying("sum", model.Retry{Attempts: 2, Codes: "500"}, summing(t))}, to("r", "sum", model.Filters{Request: &model.HeaderChange{Set: []model.Header{{Name: "A", Value: "b"}}}})))
	for name, client := range clients() {
		body, write := io.Pipe()
		go func() {
			for range 4 {
				_, _ = io.WriteString(write, "part;")
				time.Sleep(200 * time.Millisecond)
			}
			_ = write.Close()
		}()
		if got := post(t, client, port, "/r", body, nil); !strings.HasPrefix(got, "20 ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
