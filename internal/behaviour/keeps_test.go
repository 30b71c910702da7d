package behaviour

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/internal/keys"
)

// shop is a route with a rule for each carrier.
const shopRules = `
hostnames: [shop.example]
rules:
- matches: [{path: {value: /cookie}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {absoluteTimeout: 1h, cookie: {name: shop, lifetimeType: Permanent}}
- matches: [{path: {value: /generated}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {cookie: {}}
- matches: [{path: {value: /header}}]
  backendRefs: [{name: shop, port: 80}]
  sessionPersistence: {type: Header, header: {name: X-Session}}
`

// audience is visitors of all three rules.
type audience map[string]crowd

func (w *World) audience(t testing.TB, count int) audience {
	t.Helper()
	a := audience{}
	for _, path := range []string{"/cookie", "/generated", "/header"} {
		a[path] = crowd{}
		for range count {
			v := w.visitor("shop.example")
			if path == "/header" {
				v = w.headerVisitor("shop.example", "X-Session")
			}
			a[path][v] = v.ok(t, path)
		}
	}
	return a
}

// moved asks for everybody and returns how many moved, by the pod they came from.
func (a audience) moved(t testing.TB) map[string]int {
	t.Helper()
	all := map[string]int{}
	for path, c := range a {
		for pod, count := range c.moved(t, path) {
			all[pod] += count
		}
	}
	return all
}

func (a audience) on() map[string]int {
	all := map[string]int{}
	for _, c := range a {
		for pod, count := range c.on() {
			all[pod] += count
		}
	}
	return all
}

// stay fails if anybody moved.
func (a audience) stay(t testing.TB, what string) {
	t.Helper()
	if moved := a.moved(t); len(moved) > 0 {
		t.Errorf("%s: moved, by the pod they had: %v", what, moved)
	}
}

// reaches says which pods new sessions are opened on.
func (w *World) reaches(t testing.TB, count int) map[string]int {
	t.Helper()
	return w.count(t, count, get("shop.example/cookie"), func(a answer) string { return a.echo.Pod })
}

func TestB38NothingThatIsAboutOthersMovesASession(t *testing.T) {
	t.Parallel()
	shop := route("shop", shopRules)
	w := Run(t, gateway+shop, pods("shop", 3), pods("other", 2))
	a := w.audience(t, 6)
	other := route("other", "hostnames: [other.example]\nrules:\n"+sticky("/", "other", "{cookie: {}}"))
	edited := route("other", "hostnames: [other.example, \"*.shop.example\"]\nrules:\n"+sticky("/x", "other", "{cookie: {}}")+sticky("/y", "shop", "{type: Header, header: {name: X-Session}}"))
	sameHost := aged("01", "same-host", "hostnames: [shop.example]\nrules:\n"+sticky("/cookie/deeper", "other", "{cookie: {name: shop}}")+sticky("/", "shop", "{cookie: {name: shop}}"))
	foreign := strings.Replace(route("foreign", "rules:\n- backendRefs: [{name: shop, port: 80}]"), "name: gw", "name: another", 1)
	for _, c := range []struct{ what, manifests string }{
		{"another route", gateway + shop + other},
		{"another route edited", gateway + edited + shop},
		{"a route on the same host, with the same cookie name", sameHost + gateway + edited + shop},
		{"a certificate that nobody uses", gateway + shop + certificate("unused", "x.example")},
		{"a route of somebody else's", gateway + foreign + shop},
		{"nothing else", gateway + shop},
	} {
		w.Apply(t, c.manifests)
		a.stay(t, c.what)
	}
	w.scale(t, "other", 4)
	a.stay(t, "another Service scaled up")
	w.scale(t, "other", 0)
	a.stay(t, "another Service without endpoints")
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestWhatARuleIsKnownByOutlastsItsEdits(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4), pods("canary", 2))
	a := w.audience(t, 5)
	rules := strings.SplitAfter(strings.TrimSpace(shopRules), "\n- matches")
	head, blocks := strings.TrimSuffix(rules[0], "- matches"), []string{}
	for _, rule := range rules[1:] {
		blocks = append(blocks, "- matches"+strings.TrimSuffix(strings.TrimSuffix(rule, "- matches"), "\n"))
	}
	slices.Reverse(blocks)
	reordered := head + strings.Join(blocks, "\n")
	for _, c := range []struct{ what, manifests string }{
		{"reordered rules", gateway + route("shop", reordered)},
		{"a rule before all others", gateway + route("shop", strings.Replace(shopRules, "rules:", "rules:\n- matches: [{path: {value: /new}}]\n  backendRefs: [{name: canary, port: 80}]", 1))},
		{"the route gone and back", gateway},
		{"the route created again", gateway + aged("30", "shop", shopRules)},
		{"other limits", gateway + route("shop", strings.Replace(shopRules, "1h", "2h", 1))},
		{"a cookie for the browser's session", gateway + route("shop", strings.Replace(shopRules, ", lifetimeType: Permanent", "", 1))},
		{"filters", gateway + route("shop", strings.ReplaceAll(shopRules, "  backendRefs:", "  filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}]\n  backendRefs:"))},
		{"another weight", gateway + route("shop", strings.ReplaceAll(shopRules, "{name: shop, port: 80}", "{name: shop, port: 80, weight: 7}"))},
		{"more hostnames", gateway + route("shop", strings.Replace(shopRules, "[shop.example]", "[a.example, shop.example, \"*.shop.example\"]", 1))},
		{"a backend of no weight beside it", gateway + route("shop", strings.ReplaceAll(shopRules, "{name: shop, port: 80}", "{name: shop, port: 80}, {name: canary, port: 80, weight: 0}"))},
		{"a backend that does not exist beside it", gateway + route("shop", strings.ReplaceAll(shopRules, "{name: shop, port: 80}", "{name: shop, port: 80}, {name: missing, port: 80, weight: 0}"))},
		{"as it was", gateway + route("shop", shopRules)},
	} {
		w.Apply(t, c.manifests)
		if c.manifests == gateway {
			continue
		}
		a.stay(t, c.what)
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

func TestReloadsRestartsAndDeathsMoveNobody(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", shopRules)
	w := Run(t, manifests, pods("shop", 3))
	a := w.audience(t, 5)
	w.scale(t, "shop", 5)
	a.stay(t, "scaled up")
	before := w.processes(t)

	more := strings.Replace(manifests, "listeners: [", "listeners: [{name: more, port: 81, protocol: HTTP}, ", 1)
	w.Apply(t, more)
	a.stay(t, "a reload")
	if after := w.processes(t); after.reloads != before.reloads+1 || after.worker == before.worker || after.master != before.master {
		t.Errorf("a listener more made no reload: %+v, before %+v", after, before)
	}

	before = w.processes(t)
	w.restartLimpet(t)
	a.stay(t, "Limpet started again")
	if after := w.processes(t); after.master != before.master || after.worker != before.worker || after.reloads != before.reloads {
		t.Errorf("Limpet did not adopt HAProxy: %+v, before %+v", after, before)
	}
	w.scale(t, "shop", 6)
	a.stay(t, "scaled up by the second Limpet")
	if got := len(w.reaches(t, 60)); got != 6 {
		t.Errorf("new sessions reach %d endpoints, want 6", got)
	}

	w.kill(t)
	w.eventually(t, get("shop.example/cookie"), "shop")
	a.stay(t, "HAProxy killed")
	if after := w.processes(t); after.master == before.master {
		t.Error("HAProxy was not killed")
	}

	w.restart(t)
	a.stay(t, "both started again")
	if got := len(w.reaches(t, 60)); got != 6 {
		t.Errorf("new sessions reach %d endpoints, want 6", got)
	}
}

func TestB23ATokenIsGoodAtEveryReplica(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", shopRules)
	w := Run(t, manifests, pods("shop", 5))
	replica := Run(t, manifests, func(r *World) {
		r.services = []*service{{name: "shop", pods: slices.Clone(w.service("shop").pods), slices: 2}}
		rand.Shuffle(5, func(i, j int) {
			p := r.services[0].pods
			p[i], p[j] = p[j], p[i]
		})
	})
	a := w.audience(t, 6)
	for _, c := range a {
		for v := range c {
			v.world = replica
		}
	}
	a.stay(t, "at the other replica")
}

func TestB25NamesAndTokensBelongToOneInstallation(t *testing.T) {
	t.Parallel()
	manifests := gateway + route("shop", shopRules)
	w := Run(t, manifests, pods("shop", 3))
	foreign := Run(t, manifests, func(f *World) {
		f.services = w.services
		f.limpet.options.names, f.limpet.options.sign = []byte("others"), []keys.SignKey{{ID: "a", Secret: []byte(strings.Repeat("o", 32))}}
	})
	endpoints := func(w *World) map[string]bool {
		found := map[string]bool{}
		for range 12 {
			found[w.ok(t, get("shop.example/cookie")).token(t, "shop").endpoint] = true
		}
		return found
	}
	ours := endpoints(w)
	for endpoint := range endpoints(foreign) {
		if ours[endpoint] {
			t.Errorf("endpoint %s has its name in every installation", endpoint)
		}
	}
	k := w.ok(t, get("shop.example/cookie")).token(t, "shop")
	if foreign.ok(t, get("shop.example/cookie", "Cookie: shop="+k.String())).keeps() {
		t.Error("a token is good in an installation with other keys")
	}
}

// TestANewKeySignsAndTheOldOneIsBelieved also shows that Max-Age is what remains.
func TestANewKeySignsAndTheOldOneIsBelieved(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 4))
	a := w.audience(t, 4)
	first := w.ok(t, get("shop.example/cookie"))
	old := first.token(t, "shop")
	for _, c := range []struct {
		what string
		sign []keys.SignKey
		want string
	}{{"a second key that is only believed", []keys.SignKey{keyA, keyB}, "1a"}, {"the second key signs", []keys.SignKey{keyB, keyA}, "1b"}} {
		w.limpet.options.sign = c.sign
		w.restartLimpet(t)
		a.stay(t, c.what)
		if got := w.ok(t, get("shop.example/cookie")).token(t, "shop").version; got != c.want {
			t.Errorf("%s: new tokens begin with %s, want %s", c.what, got, c.want)
		}
	}
	time.Sleep(time.Until(old.expires(3 * time.Second)))
	renewed := w.ok(t, get("shop.example/cookie", "Cookie: shop="+old.String()))
	k := renewed.token(t, "shop")
	if renewed.echo.Pod != first.echo.Pod || k.version != "1b" || k.issued != old.issued || k.seen < old.seen+3 {
		t.Errorf("the token %s of %s became %s of %s", old, first.echo.Pod, k, renewed.echo.Pod)
	}
	if got, want := renewed.given()[0].MaxAge, 3600-int(k.seen-k.issued); got != want || want > 3597 {
		t.Errorf("Max-Age is %d, want what remains: %d", got, want)
	}
	w.limpet.options.sign = []keys.SignKey{keyB}
	w.restartLimpet(t)
	a.stay(t, "the old key retired: everybody was seen since")
	if w.ok(t, get("shop.example/cookie", "Cookie: shop="+old.String())).keeps() {
		t.Error("a token that a retired key signed is kept")
	}
}

func TestASplitDecidesFirstAndEachBackendHasItsCookie(t *testing.T) {
	t.Parallel()
	split := func(one, two int) string {
		return gateway + route("split", fmt.Sprintf(`
rules:
- matches: [{path: {value: /given}}]
  backendRefs: [{name: one, port: 80, weight: %[1]d}, {name: two, port: 80, weight: %[2]d}]
  sessionPersistence: {cookie: {name: c}}
- matches: [{path: {value: /made}}]
  backendRefs: [{name: one, port: 80, weight: %[1]d}, {name: two, port: 80, weight: %[2]d}]
  sessionPersistence: {cookie: {}}`, one, two))
	}
	w := Run(t, split(3, 1), pods("one", 4), pods("two", 3))
	for _, path := range []string{"/given", "/made"} {
		pinned := map[*visitor]map[string]string{}
		counts := map[string]int{}
		for range 6 {
			v := w.visitor("x.example")
			pinned[v] = map[string]string{}
			for range 40 {
				a := v.get(t, path)
				counts[a.outcome()]++
				if last, been := pinned[v][a.echo.Service]; been && (last != a.echo.Pod || !a.keeps()) {
					t.Errorf("%s: in %s from %s to %s", path, a.echo.Service, last, a.echo.Pod)
				} else if !been && a.keeps() {
					t.Errorf("%s: the first answer of %s gives no token", path, a.echo.Service)
				}
				pinned[v][a.echo.Service] = a.echo.Pod
			}
			if cookies := strings.Count(v.cookies(path), "="); cookies != len(pinned[v]) {
				t.Errorf("%s: %d cookies for %d backends", path, cookies, len(pinned[v]))
			}
		}
		if !within(counts["two"], 240, 0.25) || counts["one"]+counts["two"] != 240 {
			t.Errorf("%s: %v of 240, want 3 to 1", path, counts)
		}
		// Canary's steps: at weight 0 nobody gets there; when it gets weight again, everybody finds their endpoint.
		for _, step := range [][2]int{{1, 0}, {0, 1}, {1, 1}, {1, 99}, {3, 1}} {
			w.Apply(t, split(step[0], step[1]))
			for v, pods := range pinned {
				for range 8 {
					a := v.get(t, path)
					if step[0] == 0 && a.echo.Service == "one" || step[1] == 0 && a.echo.Service == "two" {
						t.Errorf("%s: %s answers at weight 0", path, a.echo.Service)
					}
					if last, been := pods[a.echo.Service]; been && last != a.echo.Pod {
						t.Errorf("%s at %v: in %s from %s to %s", path, step, a.echo.Service, last, a.echo.Pod)
					}
					pods[a.echo.Service] = a.echo.Pod
				}
			}
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

// TestACanarysFirstStepKeepsSessions: a second backend gives the cookie another name, and the old name's token is taken.
func TestACanarysFirstStepKeepsSessions(t *testing.T) {
	t.Parallel()
	one := gateway + route("shop", "rules:\n"+sticky("/", "shop", "{cookie: {name: c}}"))
	both := strings.Replace(one, "{name: shop, port: 80}", "{name: shop, port: 80, weight: 1}, {name: canary, port: 80, weight: 0}", 1)
	some := strings.Replace(both, "weight: 0", "weight: 1", 1)
	w := Run(t, one, pods("shop", 5), pods("canary", 2))
	c := w.crowd(t, 10, "shop.example", "/")
	stay := func(what string) {
		t.Helper()
		for v, last := range c {
			// With the canary's weight, some requests go there: what counts is where the others go.
			for range 30 {
				if a := v.get(t, "/"); a.echo.Service == "shop" && a.echo.Pod != last {
					t.Errorf("%s: from %s to %s", what, last, a.echo.Pod)
				}
			}
		}
	}
	w.Apply(t, both)
	stay("a canary without weight")
	w.Apply(t, some)
	stay("a canary with weight")
	fresh := w.crowd(t, 10, "shop.example", "/")
	w.Apply(t, one)
	stay("the canary gone again")
	for v, last := range fresh {
		if strings.HasPrefix(last, "shop") && v.ok(t, "/") != last {
			t.Errorf("opened beside the canary: moved from %s", last)
		}
	}
}

func TestASplitOfHeaderSessionsHasOneName(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("split", `
rules:
- backendRefs: [{name: one, port: 80}, {name: two, port: 80}]
  sessionPersistence: {type: Header, header: {name: X-Session}}`), pods("one", 3), pods("two", 3))
	v := w.headerVisitor("x.example", "X-Session")
	last := v.get(t, "/")
	for range 40 {
		a := v.get(t, "/")
		same := a.echo.Service == last.echo.Service
		if given := a.header.Get("X-Session") != ""; given == same || same && a.echo.Pod != last.echo.Pod {
			t.Errorf("from %s to %s, a new token: %t", last.echo.Pod, a.echo.Pod, given)
		}
		last = a
	}
}
