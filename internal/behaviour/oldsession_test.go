package behaviour

import (
	"strings"
	"testing"
	"time"
)

// oldSplit is a rule with a session as v1.1 to v1.6 of the API wrote it, over two backends.
func oldSplit(weights, session string) string {
	return gateway + route("all", "rules:\n- name: shop\n  backendRefs: "+weights+"\n  sessionPersistence: "+session)
}

// TestASessionInTheOldShapeDecidesTheBackendToo also is B29: of the fields some are missing.
func TestASessionInTheOldShapeDecidesTheBackendToo(t *testing.T) {
	t.Parallel()
	const even, moved = "[{name: blue, port: 80}, {name: green, port: 80}]", "[{name: blue, port: 80, weight: 0}, {name: green, port: 80}]"
	for name, session := range map[string]string{
		"a given cookie":     "{type: Cookie, sessionName: sid, absoluteTimeout: 1h, idleTimeout: 30m, cookieConfig: {lifetimeType: Permanent}}",
		"a generated cookie": "{}",
		"a header":           "{type: Header, sessionName: X-Session}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := Run(t, oldSplit(even, session), pods("blue", 2), pods("green", 2))
			var visitors []*visitor
			var at []string
			services := map[string]bool{}
			for range 10 {
				v := w.headerVisitor("x.example", "X-Session")
				visitors, at = append(visitors, v), append(at, v.ok(t, "/"))
				services[at[len(at)-1][:4]] = true
			}
			if len(services) != 2 {
				t.Fatalf("10 visitors are on %v", services)
			}
			check := func(when string) {
				for i, v := range visitors {
					for range 3 {
						if pod := v.ok(t, "/"); pod != at[i] {
							t.Errorf("%s: visitor %d is at %s, want %s", when, i, pod, at[i])
						}
					}
				}
			}
			check("at first")
			w.Apply(t, oldSplit(moved, session))
			check("when blue has no weight")
			if pod := w.visitor("x.example").ok(t, "/"); pod[:5] != "green" {
				t.Errorf("a new visitor is at %s", pod)
			}
		})
	}
}

func TestASessionThatIsNotUsedEnds(t *testing.T) {
	t.Parallel()
	w := Run(t, oldSplit("[{name: blue, port: 80}]", "{sessionName: sid, idleTimeout: 3s}"), pods("blue", 8))
	v := w.visitor("x.example")
	pod := v.ok(t, "/")
	for range 5 {
		time.Sleep(time.Second)
		if now := v.ok(t, "/"); now != pod {
			t.Fatalf("a session that is used moved from %s to %s", pod, now)
		}
	}
	moved := false
	for range 3 {
		before := v.cookies("/")
		time.Sleep(4 * time.Second)
		v.ok(t, "/")
		moved = moved || v.cookies("/") != before
	}
	if !moved {
		t.Error("a session that nobody used for longer than idleTimeout goes on")
	}
}

func TestTheGuideToSessionsInTheOldShapeIsServedAsItIsWritten(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(guide(t, "sessions.md"), "---\n    sessionPersistence:")
	section, _, _ = strings.Cut(section, "---\n")
	if !found {
		t.Fatal("the guide has no such section")
	}
	rule := "rules:\n  - name: pages\n    sessionPersistence:" + section + "    backendRefs: "
	at := func(refs string) string { return gateway + route("shop", strings.ReplaceAll(rule+refs, "\n  ", "\n")) }
	w := Run(t, at("[{name: blue, port: 80}, {name: green, port: 80, weight: 0}]"), pods("blue", 2), pods("green", 2))
	v := w.visitor("shop.example")
	a := v.get(t, "/")
	if given := a.given(); len(given) != 1 || !strings.HasPrefix(given[0].Name, "shop-session") || given[0].MaxAge != 8*60*60 {
		t.Fatalf("the cookie is %v", given)
	}
	home := a.echo.Pod
	w.Apply(t, at("[{name: blue, port: 80, weight: 0}, {name: green, port: 80}]"))
	for range 5 {
		if pod := v.ok(t, "/"); pod != home {
			t.Errorf("at %s, want %s", pod, home)
		}
	}
}
