package behaviour

// Field reports, section L: scale. What is measured is counts and growth, never a bare time.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sizeOf is what an installation costs HAProxy.
type sizeOf struct {
	kib                        int // memory of its worker
	sections, entries, servers int // lines of configuration, entries of maps, servers
}

// TestB83CostsGrowNoFasterThanObjects: routes with six matches each, of Services with many endpoints. Twice as many cost
// HAProxy twice as much, and none of them is configuration.
func TestB83CostsGrowNoFasterThanObjects(t *testing.T) {
	t.Parallel()
	services, endpoints, most := 20, scaled(10, 50), scaled(300, 5000)
	size := func(routes int) sizeOf {
		w := Run(t, gateway, pods("one", 1))
		var all strings.Builder
		for i := range services {
			s := &service{name: fmt.Sprintf("many-%d", i)}
			for j := range endpoints {
				s.pods = append(s.pods, newPod(s.name, fmt.Sprintf("%s-%d", s.name, j), w.block.address(byte(100+j))))
			}
			all.WriteString(s.manifest())
		}
		for i := range routes {
			var matches []string
			for j := range 6 {
				matches = append(matches, fmt.Sprintf("{path: {value: /%d/%d}, headers: [{name: x-%d, value: v%d}]}", i, j, j, i))
			}
			all.WriteString(route(fmt.Sprintf("r%d", i), fmt.Sprintf("hostnames: [h%d.example]\nrules:\n- matches: [%s]\n  backendRefs: [{name: many-%d, port: 80}]", i, strings.Join(matches, ", "), i%services)))
		}
		w.Apply(t, gateway+all.String()+route("last", "hostnames: [last.example]\nrules:\n- backendRefs: [{name: one, port: 80}]"))
		w.restart(t)
		if got := w.ask(t, get("last.example/")).outcome(); got != "one" {
			t.Errorf("with %d routes: %s", routes, got)
		}
		_, set := w.limpet.rendered()
		found := sizeOf{kib: residentKiB(t, w.processes(t).worker), servers: set.Servers.Len()}
		for _, section := range set.Sections {
			found.sections += strings.Count(section.Text, "\n")
		}
		for _, entries := range set.Maps {
			found.entries += entries.Len()
		}
		return found
	}
	none, half, full := size(0), size(most/2), size(most)
	t.Logf("none %+v, %d routes %+v, %d routes %+v", none, most/2, half, most, full)
	if half.sections != full.sections || half.servers != full.servers {
		t.Errorf("more routes are more configuration: %+v, with twice as many %+v", half, full)
	}
	if grown, expected := full.entries-half.entries, half.entries-none.entries; grown > expected+expected/20 {
		t.Errorf("the second half of the routes needs %d entries of maps, the first %d", grown, expected)
	}
	// An allocator takes memory in pieces.
	if grown, expected := full.kib-half.kib, half.kib-none.kib; grown > 2*expected+4096 {
		t.Errorf("the second half of the routes costs %d KiB, the first %d KiB", grown, expected)
	}
	if each := (full.kib - none.kib) * 1024 / most; each > 32*1024 {
		t.Errorf("a route costs HAProxy %d bytes", each)
	}
}

// TestB84ANewRouteIsThereAtOnceOrNotYet: routes are added one by one to many. A client who asks all the while sees 404 and
// then the pod, nothing else and never back; each costs a few commands, whatever is there already.
func TestB84ANewRouteIsThereAtOnceOrNotYet(t *testing.T) {
	t.Parallel()
	var there strings.Builder
	for i := range scaled(300, 3000) {
		there.WriteString(route(fmt.Sprintf("there-%d", i), fmt.Sprintf("hostnames: [there%d.example]\nrules:\n- backendRefs: [{name: one, port: 80}]", i)))
	}
	base := gateway + there.String()
	w := Run(t, base, pods("one", 2), pods("two", 1))
	added := ""
	for i := range 20 {
		host := fmt.Sprintf("new%d.example", i)
		added += route(fmt.Sprintf("new-%d", i), fmt.Sprintf("hostnames: [%s]\nrules:\n- backendRefs: [{name: two, port: 80}]\n- matches: [{path: {value: /session}, headers: [{name: a, value: b}]}]\n  backendRefs: [{name: two, port: 80}]\n  sessionPersistence: {cookie: {name: c}}", host))
		done := make(chan bool)
		var wait sync.WaitGroup
		var seen [2][]string
		for n, r := range []request{get(host + "/"), get(host+"/session", "A: b")} {
			client := w.keepAlive(t)
			wait.Go(func() {
				for asked := 0; ; asked++ {
					seen[n] = append(seen[n], client.ask(t, r).outcome())
					select {
					case <-done:
						seen[n] = append(seen[n], client.ask(t, r).outcome())
						return
					default:
					}
				}
			})
		}
		w.Apply(t, base+added)
		close(done)
		wait.Wait()
		for _, outcomes := range seen {
			if steps := slices.Compact(slices.Clone(outcomes)); strings.Join(steps, ", ") != "404, two" && strings.Join(steps, ", ") != "two" {
				t.Errorf("%s: %v", host, steps)
			}
			if outcomes[len(outcomes)-1] != "two" {
				t.Errorf("%s: applied, and answered with %s", host, outcomes[len(outcomes)-1])
			}
		}
		if commands := w.limpet.result.Commands; commands > 16 {
			t.Errorf("%s needed %d commands", host, commands)
		}
	}
	if reloads := w.Reloads(t); reloads != 0 {
		t.Errorf("%d reloads", reloads)
	}
}

// TestB85SecretsOfOthersCostNothing: Secrets that nobody refers to come, change and go, many at a time. Nothing is
// rendered, told HAProxy, or written to a status.
func TestB85SecretsOfOthersCostNothing(t *testing.T) {
	t.Parallel()
	w := Run(t, listeners(twoPorts)+certificate("cert", "x.example")+route("shop", shopRules), pods("shop", 2))
	chain, key := pair("y.example")
	config, set := w.limpet.rendered()
	statuses, revision := w.limpet.status, w.limpet.result.Revision
	for round := range 10 {
		var all strings.Builder
		for i := range scaled(100, 1000) {
			if (i+round)%7 > 0 {
				all.WriteString(strings.Replace(secret(fmt.Sprintf("other-%d", i), chain, key), "metadata: {", fmt.Sprintf("metadata: {labels: {round: r%d}, namespace: ns%d, ", (round+i)%3, i%5), 1))
			}
		}
		w.write(t, "secrets.yaml", all.String())
		w.Sync(t)
		if r := w.limpet.result; r.Commands > 0 || r.Reloaded || r.Revision != revision {
			t.Errorf("round %d: %d commands, reloaded %t (%v)", round, r.Commands, r.Reloaded, r.Reasons)
		}
		if !slices.Equal(statuses, w.limpet.status) {
			t.Errorf("round %d: statuses are not the same", round)
		}
	}
	nowConfig, nowSet := w.limpet.rendered()
	for change := range config.Rules.Diff(nowConfig.Rules) {
		t.Errorf("a rule has changed: %+v", change)
	}
	for name := range set.Maps {
		for change := range set.Maps[name].Diff(nowSet.Maps[name]) {
			t.Errorf("%s: %+v", name, change)
		}
	}
}
