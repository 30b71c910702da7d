package behaviour

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/translate/translatetest"
)

// Words from which random routes and requests are made: few, so that they meet.
var (
	someHosts    = []string{"", "*.ex.com", "a.ex.com", "*.a.ex.com", "b.a.ex.com", "*.com", "x.org"}
	someSegments = []string{"a", "b", "ab", "a%20b", "1"}
	someMethods  = []string{"GET", "POST"}
	someValues   = []string{"1", "2", "12"}
	someRegexes  = []string{"1|2", "1.*", "[0-9]+", ".*"}
	someNames    = []string{"x", "y"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func somePath(r *rand.Rand) string {
	path := ""
	for range r.IntN(4) {
		path += "/" + pick(r, someSegments)
	}
	if path == "" || r.IntN(5) == 0 {
		path += "/"
	}
	return path
}

func someMatch(r *rand.Rand) string {
	var fields []string
	switch r.IntN(5) {
	case 0:
		fields = append(fields, fmt.Sprintf("path: {type: Exact, value: %q}", somePath(r)))
	case 1:
		fields = append(fields, fmt.Sprintf("path: {type: RegularExpression, value: %q}", strings.TrimSuffix(somePath(r), "/")+pick(r, []string{"/.*", "(/a|/b)*", "[a-z]+", "/?"})))
	case 2, 3:
		fields = append(fields, fmt.Sprintf("path: {value: %q}", somePath(r)))
	}
	if r.IntN(4) == 0 {
		fields = append(fields, "method: "+pick(r, someMethods))
	}
	for _, kind := range []string{"headers", "queryParams"} {
		var values []string
		for _, name := range someNames {
			switch r.IntN(8) {
			case 0:
				values = append(values, fmt.Sprintf("{name: %q, value: %q}", name, pick(r, someValues)))
			case 1:
				values = append(values, fmt.Sprintf("{name: %q, type: RegularExpression, value: %q}", name, pick(r, someRegexes)))
			}
		}
		if len(values) > 0 {
			fields = append(fields, kind+": ["+strings.Join(values, ", ")+"]")
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func someRule(r *rand.Rand) string {
	var matches []string
	for range 1 + r.IntN(3) {
		matches = append(matches, someMatch(r))
	}
	rule := "- matches: [" + strings.Join(matches, ", ") + "]\n"
	backend := func() string { return pick(r, []string{"one", "two", "three", "none", "missing"}) }
	switch r.IntN(6) {
	case 0:
		return rule + "  filters: [{type: RequestRedirect, requestRedirect: {hostname: r" + fmt.Sprint(r.IntN(9)) + ".example}}]\n"
	case 1:
		return rule + "  backendRefs: [{name: " + backend() + ", port: 80, weight: 0}, {name: " + backend() + ", port: 80}]\n"
	case 2:
		return rule + "  backendRefs: [{name: " + backend() + ", port: 80}]\n  sessionPersistence: {cookie: {}}\n"
	case 3:
		return rule + "  backendRefs: [{name: " + backend() + ", port: 80}]\n  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}]\n"
	default:
		return rule + "  backendRefs: [{name: " + backend() + ", port: 80}]\n"
	}
}

func someRoute(r *rand.Rand, name string) string {
	spec := "parentRefs: [{name: gw" + pick(r, []string{"", "", ", sectionName: every", ", sectionName: wild", ", sectionName: exact"}) + "}]\n"
	var hosts []string
	for range r.IntN(3) {
		if host := pick(r, someHosts); host != "" && !slices.Contains(hosts, fmt.Sprintf("%q", host)) {
			hosts = append(hosts, fmt.Sprintf("%q", host))
		}
	}
	if len(hosts) > 0 {
		spec += "hostnames: [" + strings.Join(hosts, ", ") + "]\n"
	}
	spec += "rules:\n"
	for range 1 + r.IntN(3) {
		spec += someRule(r)
	}
	return strings.Replace(routeOf(name, spec), "metadata: {", fmt.Sprintf(`metadata: {creationTimestamp: "2026-01-01T00:00:0%dZ", `, r.IntN(4)), 1)
}

// someRequest is a request as it is sent, and as the model's meaning knows it.
func someRequest(r *rand.Rand) (request, translatetest.Request) {
	sent := request{
		method: pick(r, someMethods), target: somePath(r),
		host: pick(r, []string{"a.ex.com", "b.a.ex.com", "c.a.ex.com", "z.ex.com", "ex.com", "a.com", "x.org", "y.org", "A.ex.com:80"}),
	}
	means := translatetest.Request{Host: sent.host, Path: sent.target, Method: sent.method, Headers: map[string]string{}, Query: map[string]string{}}
	query := url.Values{}
	for _, name := range someNames {
		if r.IntN(2) == 0 {
			value := pick(r, append(someValues, "3"))
			means.Headers[name] = value
			sent.headers = append(sent.headers, strings.ToUpper(name)+": "+value)
		}
		if r.IntN(2) == 0 {
			value := pick(r, append(someValues, "3"))
			means.Query[name] = value
			query.Set(name, value)
		}
	}
	if len(query) > 0 {
		sent.target += "?" + query.Encode()
	}
	return sent, means
}

// meaning is the outcome that the model asks for.
func meaning(t testing.TB, config model.Config, r translatetest.Request) string {
	t.Helper()
	answer := translatetest.Ask(config, r)
	switch {
	case answer.NoHost || answer.NoMatch:
		return "404"
	case answer.Redirect != nil:
		return "302 to " + answer.Redirect.Host
	case len(answer.Split) != 1:
		t.Fatalf("%d shares", len(answer.Split))
	}
	if share := answer.Split[0]; share.Status != 200 {
		return fmt.Sprint(share.Status)
	}
	return strings.Split(answer.Split[0].Backend, "/")[2]
}

// TestRandomRoutesAreServedAsTheModelMeans: what HAProxy does with a request is what the model says, after every change at
// run time and after a start from the files.
func TestRandomRoutesAreServedAsTheModelMeans(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	head := listeners(`
  - {name: every, port: 80, protocol: HTTP}
  - {name: wild, port: 80, protocol: HTTP, hostname: "*.ex.com"}
  - {name: exact, port: 80, protocol: HTTP, hostname: b.a.ex.com}
`)
	w := Run(t, head, pods("one", 1), pods("two", 2), pods("three", 1), pods("none", 0))
	routes := map[string]string{}
	for round := range 25 {
		for range 3 {
			name := fmt.Sprintf("r%d", random.IntN(8))
			if routes[name] = someRoute(random, name); random.IntN(4) == 0 {
				delete(routes, name)
			}
		}
		manifests := head
		for _, text := range routes {
			manifests += text
		}
		w.Apply(t, manifests)
		if round%12 == 11 {
			w.restart(t)
		}
		config, _ := w.limpet.rendered()
		port := config.Frame.Ports[0].ID
		for range 60 {
			sent, means := someRequest(random)
			means.Port = port
			got, want := w.ask(t, sent).outcome(), meaning(t, config, means)
			if strings.HasPrefix(got, "302 ") {
				location, _ := url.Parse(strings.TrimPrefix(got, "302 "))
				got = "302 to " + location.Host
			}
			if got != want {
				t.Fatalf("seed %d, round %d: %s%v: %s, want %s; the routes are\n%s", seed, round, firstLine(sent.text()), sent.headers, got, want, manifests)
			}
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
	sizes := w.sizes(t)
	_, set := w.limpet.rendered()
	for name, entries := range set.Maps {
		if size, used := sizes[name]; used && size != entries.Len() {
			t.Errorf("%s has %d entries, %d are wanted", name, size, entries.Len())
		}
	}
}
