package behaviour

import (
	"strings"
	"testing"
)

func TestAHeaderKeepsItsEndpoint(t *testing.T) {
	t.Parallel()
	names := []string{"X-Session", "Mcp-Session-Id", "x-lower", "X!#$%&'*+-.^_|~1"}
	var rules strings.Builder
	for i, name := range names {
		rules.WriteString(sticky("/"+string(rune('a'+i)), "one", "{type: Header, header: {name: "+yamlText(name)+"}}"))
	}
	manifests := gateway + route("all", "rules:\n"+rules.String())
	check := func(t *testing.T, w *World) {
		t.Helper()
		for i, name := range names {
			path := "/" + string(rune('a'+i))
			seen := map[string]bool{}
			for range 8 {
				v := w.headerVisitor("x.example", name)
				first := v.get(t, path)
				if first.err != nil || v.token == "" {
					t.Fatalf("%s: the first answer gives no token: %s %v", name, first.outcome(), first.header)
				}
				if lines := first.header.Values(name); len(lines) != 1 || !first.keeps() {
					t.Errorf("%s: given %q, and cookies %q", name, lines, first.header.Values("Set-Cookie"))
				}
				seen[first.echo.Pod] = true
				for range 3 {
					a := v.get(t, path)
					if a.echo.Pod != first.echo.Pod || a.header.Get(name) != "" {
						t.Errorf("%s: %s, want %s; given %q", name, a.echo.Pod, first.echo.Pod, a.header.Get(name))
					}
					if got := a.seen(name); len(got) != 1 || got[0] != v.token {
						t.Errorf("%s: the pod sees %q", name, got)
					}
				}
			}
			if len(seen) < 4 {
				t.Errorf("%s: 8 sessions on %d endpoints", name, len(seen))
			}
		}
	}
	w := Run(t, manifests, pods("one", 4))
	check(t, w)
	t.Run("with names that come later", func(t *testing.T) {
		later := Run(t, gateway, pods("one", 4))
		later.Apply(t, manifests)
		if later.Reloads(t) != 0 {
			t.Error("a new name needs a reload")
		}
		check(t, later)
	})
	t.Run("a name is one in any case", func(t *testing.T) {
		first := w.ok(t, get("x.example/a"))
		if a := w.ok(t, get("x.example/a", "x-sESSION: "+first.header.Get("X-Session"))); a.echo.Pod != first.echo.Pod || a.header.Get("X-Session") != "" {
			t.Errorf("%s, want %s", a.echo.Pod, first.echo.Pod)
		}
	})
	t.Run("given twice the last counts", func(t *testing.T) {
		first := w.ok(t, get("x.example/a"))
		if a := w.ok(t, get("x.example/a", "X-Session: bad", "X-Session: "+first.header.Get("X-Session"))); a.echo.Pod != first.echo.Pod || a.header.Get("X-Session") != "" {
			t.Errorf("%s, want %s", a.echo.Pod, first.echo.Pod)
		}
		w.ok(t, get("x.example/a", "X-Session: "+first.header.Get("X-Session"), "X-Session: bad"))
	})
	t.Run("B37: what a client chose itself is replaced by a token of ours", func(t *testing.T) {
		a := w.ok(t, get("x.example/a", "X-Session: my-process-7"))
		parseToken(t, a.header.Get("X-Session"))
	})
	t.Run("what the pod says under the name is replaced", func(t *testing.T) {
		a := w.ok(t, get("x.example/a", "X-Reply: X-Session: of the pod"))
		if got := a.header.Values("X-Session"); len(got) != 1 || parseToken(t, got[0]).version != "1a" {
			t.Errorf("X-Session: %q", got)
		}
	})
}
