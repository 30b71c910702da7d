package behaviour

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestMoreBackendsThanSlotsMoveNobody: the configuration has slots for so many Services; more of them cost a reload, and
// those that come back after others have gone get what is free.
func TestMoreBackendsThanSlotsMoveNobody(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3), pods("many", 1))
	a := w.audience(t, 4)
	many := w.service("many")
	routes := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			if (i-from)%16 == 0 {
				b.WriteString(strings.TrimSuffix(route(fmt.Sprintf("many-%d", i), "hostnames: [many.example]\nrules:"), "\n") + "\n")
			}
			fmt.Fprintf(&b, "  - matches: [{path: {value: /%d}}]\n    backendRefs: [{name: many-%d, port: 80}]\n", i, i)
		}
		return b.String()
	}
	manifest := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString((&service{name: fmt.Sprintf("many-%d", i), pods: many.pods}).manifest())
		}
		return gateway + route("shop", shopRules) + b.String() + routes(from, to)
	}
	for _, span := range [][2]int{{0, 30}, {0, 160}, {100, 190}, {0, 20}, {0, 250}} {
		w.Apply(t, manifest(span[0], span[1]))
		a.stay(t, fmt.Sprintf("with the backends %v", span))
		client := w.keepAlive(t)
		for i := range 260 {
			want := "404"
			if i >= span[0] && i < span[1] {
				want = "many"
			}
			if got := client.ask(t, get(fmt.Sprintf("many.example/%d", i))).outcome(); got != want {
				t.Fatalf("with the backends %v, /%d: %s, want %s", span, i, got, want)
			}
		}
	}
	if reloads := w.Reloads(t); reloads < 1 || reloads > 4 {
		t.Errorf("%d reloads, want one or two for what did not fit", reloads)
	}
}

// TestB78APortThatIsTakenLeavesTheOthersAlone: what cannot be bound is said, and heals.
func TestB78APortThatIsTakenLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	w := Run(t, gateway+route("shop", shopRules), pods("shop", 3), problems())
	a := w.audience(t, 3)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", w.at(81))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	more := strings.Replace(gateway, "listeners: [", "listeners: [{name: taken, port: 81, protocol: HTTP}, {name: free, port: 82, protocol: HTTP}, ", 1) + route("shop", shopRules)
	w.Apply(t, more)
	a.stay(t, "a listener on a port that is taken")
	if got := w.ask(t, request{host: "shop.example", target: "/cookie", port: 82}).outcome(); got != "shop" {
		t.Errorf("the listener beside it: %s", got)
	}
	found := ""
	for _, update := range w.limpet.status {
		if update.Object.String() != "Gateway default/gw" {
			continue
		}
		for _, section := range update.Sections() {
			for _, c := range section.Conditions {
				if section.Name == "listener taken" && c.Type == "Programmed" {
					found = string(c.Status) + " " + c.Reason + ": " + c.Message
				}
			}
		}
	}
	if !strings.HasPrefix(found, "False ") {
		t.Errorf("the listener's Programmed is %q", found)
	}
	// Changes at run time go on meanwhile.
	w.scale(t, "shop", 4)
	a.stay(t, "scaled up")
	_ = taken.Close()
	w.Apply(t, gateway+route("shop", shopRules))
	w.Apply(t, more)
	w.eventually(t, request{host: "shop.example", target: "/cookie", port: 81}, "shop")
	a.stay(t, "the port is free")
}
