package behaviour

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// catastrophic makes a backtracking engine try more ways than there are atoms, on a path of many a's.
const catastrophic = `/bad/(a|a|aa)+(a+a+)+b%d`

// TestCatastrophicExpressionsHurtNobodyElse: 64 on one path under load, of one route and of two that share a path. The
// neighbour's requests succeed, and HAProxy is the process that it was.
func TestCatastrophicExpressionsHurtNobodyElse(t *testing.T) {
	t.Parallel()
	expressions := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "  - {path: {type: RegularExpression, value: %q}, headers: [{name: x, type: RegularExpression, value: \"(x+x+)+y\"}]}\n", fmt.Sprintf(catastrophic, i))
		}
		return b.String()
	}
	w := Run(t, gateway+
		aged("00", "bad", "hostnames: [bad.example]\nrules:\n- matches:\n"+strings.ReplaceAll(expressions(0, 64), `, headers: [{name: x, type: RegularExpression, value: "(x+x+)+y"}]`, "")+"  backendRefs: [{name: one, port: 80}]\n")+
		aged("01", "worse", "hostnames: [worse.example]\nrules:\n- matches:\n"+expressions(0, 32)+"  backendRefs: [{name: one, port: 80}]\n- matches:\n"+strings.ReplaceAll(expressions(32, 64), "headers", "queryParams")+"  backendRefs: [{name: one, port: 80}]\n")+
		aged("02", "neighbour", "hostnames: [neighbour.example]\nrules:\n- backendRefs: [{name: two, port: 80}]\n")+
		aged("03", "same-host", "hostnames: [bad.example]\nrules:\n- matches: [{path: {value: /good}}]\n  backendRefs: [{name: two, port: 80}]\n"),
		pods("one", 1), pods("two", 2), problems())
	before := w.processes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	attack := func(r request) {
		wait.Go(func() {
			for ctx.Err() == nil {
				// Never an answer of a pod: nothing matches.
				if got := w.ask(t, r).outcome(); got != "404" && got != "500" && ctx.Err() == nil {
					t.Errorf("%s: %s", r.host, got)
				}
			}
		})
	}
	path := "/bad/" + strings.Repeat("a", 3000)
	for range 4 {
		attack(get("bad.example" + path))
		attack(get("worse.example"+path+"?x="+strings.Repeat("x", 3000), "X: "+strings.Repeat("x", 3000)))
	}
	asked := 0
	var slowest time.Duration
	for ; ctx.Err() == nil; asked++ {
		for _, url := range []string{"neighbour.example/", "bad.example/good"} {
			a := w.ask(t, get(url))
			if a.outcome() != "two" {
				t.Errorf("%s: %s", url, a.outcome())
			}
			slowest = max(slowest, a.took)
		}
	}
	wait.Wait()
	if after := w.processes(t); after.worker != before.worker || after.master != before.master {
		t.Errorf("HAProxy was %+v, and is %+v", before, after)
	}
	if asked < 10 {
		t.Errorf("the neighbour was asked %d times only, the slowest answer took %s", asked, slowest)
	}
	t.Logf("%d requests to the neighbour, the slowest took %s", asked, slowest)
}

// sizes are the entries of HAProxy's maps, by file.
func (w *World) sizes(t testing.TB) map[string]int {
	t.Helper()
	sizes := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^\S+ \(maps/([^)]+)\) .* entry_cnt=(\d+)$`).FindAllStringSubmatch(w.command(t, "show map"), -1) {
		sizes[match[1]], _ = strconv.Atoi(match[2])
	}
	return sizes
}

// TestManyLongMatchesArriveWhole: 64 matches with 16 headers of 4 KiB each. What HAProxy has is what was written, entry by
// entry, from the file and over the socket alike, and requests are answered rightly.
func TestManyLongMatchesArriveWhole(t *testing.T) {
	t.Parallel()
	long := func(c string) string { return strings.Repeat(c, 4096) }
	var matches strings.Builder
	for i := range 64 {
		var headers []string
		for j := range 16 {
			headers = append(headers, fmt.Sprintf("{name: X-%d, value: %s}", j, yamlText(fmt.Sprintf("%d;%d", i, j)+long("\\;\"'#%$ v")[:4088])))
		}
		fmt.Fprintf(&matches, "  - {path: {value: /many}, headers: [%s]}\n", strings.Join(headers, ", "))
	}
	// What a request can hold at all: three of 4 KiB, and one that is compared as an expression.
	fits := []string{"X-A: " + long("a"), "X-B: " + long("b"), "X-C: " + long(`c'\;`)[:4096]}
	manifests := gateway + aged("00", "many", "rules:\n- matches:\n"+matches.String()+"  backendRefs: [{name: two, port: 80}]\n") +
		aged("01", "fits", `
rules:
- matches:
  - path: {value: /many}
    headers: [{name: X-A, value: `+long("a")+`}, {name: X-B, value: `+long("b")+`}, {name: X-C, value: `+yamlText(long(`c'\;`)[:4096])+`}]
  backendRefs: [{name: three, port: 80}]
- matches: [{path: {value: /many}, headers: [{name: X-R, type: RegularExpression, value: "`+strings.Repeat("(r|s)?", 170)+`"}]}]
  backendRefs: [{name: three, port: 80}]
- matches: [{path: {value: `+"/"+strings.Repeat("p", 1023)+`}}]
  backendRefs: [{name: three, port: 80}]
- backendRefs: [{name: one, port: 80}]`)
	check := func(t *testing.T, w *World) {
		t.Helper()
		_, set := w.limpet.rendered()
		sizes := w.sizes(t)
		for name, entries := range set.Maps {
			if size, there := sizes[name]; !there || size != entries.Len() {
				t.Errorf("%s: %d entries in HAProxy, %d written", name, size, entries.Len())
			}
			for _, e := range entries.Sorted() {
				if len(e.Key)+1+len(e.Value.Value) > files.MaxLine {
					t.Errorf("%s: a line of %d bytes", name, len(e.Key)+1+len(e.Value.Value))
				}
			}
		}
		if entries := set.Maps["candidates.map"]; entries.Len() < 64*17 {
			t.Errorf("%d conditions and candidates", entries.Len())
		}
		w.check(t, []row{
			{"none of the headers", get("x.example/many/x"), "one"},
			{"some of the headers", get("x.example/many/x", "X-0: 0;0"), "one"},
			{"as many as a request can hold", get("x.example/many/x", fits...), "three"},
			{"all but the end of one", get("x.example/many/x", fits[0], fits[1], fits[2][:len(fits[2])-1]), "one"},
			{"all but one", get("x.example/many/x", fits[0], fits[1]), "one"},
			{"a long expression", get("x.example/many/x", "X-R: "+strings.Repeat("rs", 60)), "three"},
			{"a long expression that does not match", get("x.example/many/x", "X-R: t"), "one"},
			{"a long path", get("x.example/" + strings.Repeat("p", 1023) + "/x"), "three"},
			{"a longer one", get("x.example/" + strings.Repeat("p", 1024)), "one"},
			{"more than HAProxy reads of a request", get("x.example/many/x", append(fits, "X-D: "+long("d"))...), "400"},
		})
	}
	w := Run(t, manifests, pods("one", 1), pods("two", 1), pods("three", 1))
	t.Run("from the file", func(t *testing.T) { check(t, w) })
	w.Apply(t, gateway)
	_, set := w.limpet.rendered()
	for name, size := range w.sizes(t) {
		if size != set.Maps[name].Len() {
			t.Errorf("%s: %d entries are left, want %d", name, size, set.Maps[name].Len())
		}
	}
	t.Run("over the socket", func(t *testing.T) {
		w.Apply(t, manifests)
		if reloads := w.Reloads(t); reloads != 0 {
			t.Errorf("%d reloads", reloads)
		}
		check(t, w)
	})
}
