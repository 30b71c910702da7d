package behaviour

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var updateHot = flag.Bool("hot", false, "rewrite docs/hot.md")

const (
	hotFile = "../../docs/hot.md"
	hotHead = `<!-- Written by TestHotOrNot in internal/behaviour. Do not edit: run make hot. -->
# What each kind of change does

Each row is a change that a test makes while requests are under way, old sessions and new ones, plain and over TLS: none of them
fails, and no session moves that need not. "Commands" is a change in the running HAProxy over its socket. A reload starts a new
worker beside the old one, which finishes what it has; its reason is what Limpet logs (names that are hashes end here with …).
Several changes within a moment cost one reload. What every other object, label or annotation says changes nothing.
`
)

// A change is one row: what there is becomes something else.
type change struct {
	what     string
	from, to string
	// pods changes what Services have, rather than objects.
	pods func(w *World)
	// refused is set where an object has a condition of status False afterwards, as it should.
	refused bool
	// rest says that the engine is left alone before it.
	rest bool
}

// topic is the rows under one heading.
type topic struct {
	name    string
	changes []change
}

// life is a thing that is added, becomes another, and is removed.
func life(what, without, one, other string) []change {
	return []change{
		{what: what + " added", from: without, to: one},
		{what: what + " changed", from: one, to: other},
		{what: what + " removed", from: other, to: without},
	}
}

func TestHotOrNot(t *testing.T) {
	t.Parallel()
	base := hotBase()
	w := Run(t, base, pods("shop", 3), pods("other", 2), pods("empty", 0))
	page := hotHead
	for _, topic := range topics(base) {
		page += "\n## " + topic.name + "\n\n| change | what it takes |\n|---|---|\n"
		for _, c := range topic.changes {
			page += "| " + c.what + " | " + w.measure(t, c) + " |\n"
		}
	}
	if *updateHot {
		if err := os.WriteFile(hotFile, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(hotFile)
	if err != nil {
		t.Fatal(err)
	}
	said, happened := strings.Split(string(was), "\n"), strings.Split(page, "\n")
	for _, line := range happened {
		if !slices.Contains(said, line) {
			t.Errorf("docs/hot.md does not say, and it happened (if that is meant, run make hot): %s", line)
		}
	}
	if !t.Failed() && page != string(was) {
		t.Error("docs/hot.md says more than what happened, or in another order: run make hot")
	}
}

// resting is how long the engine has for what it does by itself.
const resting = 4 * time.Second

// measure makes the change while requests are under way, and says what it took.
func (w *World) measure(t *testing.T, c change) string {
	t.Helper()
	if c.from != "" {
		w.Apply(t, c.from)
		w.allWell(t, c.what+", before")
	}
	defer w.underWay(t, c.what)()
	if c.rest {
		time.Sleep(resting)
	}
	before := w.Reloads(t)
	if c.pods == nil {
		w.Apply(t, c.to)
	} else {
		c.pods(w)
		w.Sync(t)
	}
	if !c.refused {
		w.allWell(t, c.what)
	}
	result := w.limpet.result
	if reloads := w.Reloads(t) - before; (reloads == 1) != result.Reloaded || reloads > 1 {
		t.Errorf("%s: HAProxy was reloaded %d times, and Limpet says %t", c.what, reloads, result.Reloaded)
	}
	switch {
	case result.Err != nil:
		t.Errorf("%s: %v", c.what, result.Err)
	case result.Reloaded:
		return "reload: " + w.reasons(result.Reasons)
	case result.Commands > 0:
		return "commands"
	}
	return "nothing"
}

// allWell fails if a condition says that something is not served: a row must not measure what is refused.
func (w *World) allWell(t *testing.T, what string) {
	t.Helper()
	for _, update := range w.limpet.status {
		for _, section := range update.Sections() {
			for _, condition := range section.Conditions {
				switch condition.Type {
				case "Accepted", "ResolvedRefs", "Programmed":
					if condition.Status != "True" {
						t.Errorf("%s: %s, %s: %s=%s, %s: %s", what, update.Object, section.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
					}
				}
			}
		}
	}
}

// underWay has requests sent until the function that it returns is called, which fails if one of them did or a session moved.
func (w *World) underWay(t *testing.T, what string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wait sync.WaitGroup
	all := []*steady{{visitor: w.visitor("steady.example")}, {visitor: w.visitor("steady.example")}}
	all[1].visitor.tls = true
	for _, s := range all {
		s.home = s.visitor.ok(t, "/session")
		wait.Go(func() { s.walk(t, done) })
	}
	return func() {
		time.Sleep(20 * time.Millisecond)
		close(done)
		wait.Wait()
		for _, s := range all {
			if len(s.wrong) > 0 || s.asked == 0 {
				t.Errorf("%s: of %d requests %v", what, s.asked, s.wrong)
			}
			if s.moved != "" && w.serves(s.home) {
				t.Errorf("%s: a session moved from %s to %s", what, s.home, s.moved)
			}
		}
	}
}

// steady is a visitor who keeps asking.
type steady struct {
	visitor     *visitor
	home, moved string
	asked       int
	wrong       []string
}

func (s *steady) walk(t *testing.T, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(2 * time.Millisecond):
		}
		inSession := s.visitor.get(t, "/session")
		without := s.visitor.world.ask(t, request{host: s.visitor.host, target: "/", tls: s.visitor.tls})
		for _, a := range []answer{inSession, without} {
			s.asked++
			if a.outcome() != "shop" {
				s.wrong = append(s.wrong, a.outcome())
			}
		}
		if inSession.echo.Pod != s.home {
			s.moved = inSession.echo.Pod
		}
	}
}

// serves says whether the pod is one that sessions stay on.
func (w *World) serves(name string) bool {
	for _, s := range w.services {
		for _, p := range s.pods {
			if p.name == name {
				return p.serving && !p.gone
			}
		}
	}
	return false
}

// reasons are why there was a reload, without what is another each time: the World's address, and names that are hashes.
func (w *World) reasons(all []string) string {
	all = strings.Split(strings.Join(all, "; "), "; ")
	known := make([]string, len(all))
	for i, reason := range all {
		reason = hashes.ReplaceAllString(reason, "$1$2…")
		known[i] = strings.ReplaceAll(portsOf(reason), w.address().String(), "192.0.2.1")
	}
	slices.Sort(known)
	return strings.Join(slices.Compact(known), "; ")
}

var (
	hashes = regexp.MustCompile(`\b(?:([ptdu]|certs/|lists/t)[a-z2-7]{12}[hd]?|(s)[0-9]+/)\b`)
	ports  = regexp.MustCompile(`:[0-9]{4,5}\b`)
)

// portsOf gives Gateways' ports for those that a World binds.
func portsOf(reason string) string {
	return ports.ReplaceAllStringFunc(reason, func(text string) string {
		port, err := strconv.Atoi(text[1:])
		if err != nil {
			return text
		}
		return fmt.Sprint(":", port-portOffset)
	})
}
