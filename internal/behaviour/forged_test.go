package behaviour

import (
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/internal/keys"
)

// TestATokenThatIsNotValidIsNeverAnError: whatever is wrong with a token, the request is balanced and a new one is given.
// It is shown for cookies and headers, with names that are written into the configuration and names that come from a map.
func TestATokenThatIsNotValidIsNeverAnError(t *testing.T) {
	t.Parallel()
	rules := route("all", "rules:\n"+
		sticky("/cookie", "one", "{absoluteTimeout: 1h, cookie: {name: c}}")+
		sticky("/header", "one", "{type: Header, absoluteTimeout: 1h, header: {name: X-Session}}")+
		sticky("/other", "one", "{absoluteTimeout: 1h, cookie: {name: other}}"))
	literal := Run(t, gateway+rules, pods("one", 3))
	later := Run(t, gateway, pods("one", 3))
	later.Apply(t, gateway+rules)
	if later.Reloads(t) != 0 {
		t.Fatal("the names that come later are literal too: nothing is shown")
	}
	for name, w := range map[string]*World{"literal": literal, "from a map": later} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("cookie", func(t *testing.T) {
				t.Parallel()
				testForged(t, w, "/cookie", "c", func(token string) []string { return []string{"Cookie: a=b; c=" + token + "; d=e"} })
			})
			t.Run("header", func(t *testing.T) {
				t.Parallel()
				testForged(t, w, "/header", "X-Session", func(token string) []string { return []string{"X-Session: " + token} })
			})
		})
	}
}

func testForged(t *testing.T, w *World, path, name string, with func(token string) []string) {
	t.Helper()
	given := func(a answer) string {
		if header := a.header.Get("X-Session"); header != "" {
			return header
		}
		if cookies := a.given(); len(cookies) > 0 {
			return cookies[0].Value
		}
		return ""
	}
	first := w.ok(t, get("x.example"+path))
	text := given(first)
	k, scope := parseToken(t, text), scopeOf(w.session(t, name))
	if again := k.signed(keyA, scope); again != k {
		t.Fatalf("the test signs otherwise than the gateway: %s, %s", again, k)
	}
	other := k
	for other.endpoint == k.endpoint {
		other = parseToken(t, given(w.ok(t, get("x.example"+path))))
	}
	now := time.Now().Unix()
	change := func(edit func(*token)) token { forged := k; edit(&forged); return forged }

	kept := map[string]string{
		"the token":                          text,
		"another one that is signed as ours": change(func(k *token) { k.issued -= 100 }).signed(keyA, scope).String(),
	}
	if path == "/cookie" {
		kept["given twice"] = text + "; c=" + text
	}
	for what, token := range kept {
		if a := w.ok(t, get("x.example"+path, with(token)...)); a.echo.Pod != first.echo.Pod || given(a) != "" {
			t.Errorf("%s is not kept: %q", what, token)
		}
	}

	refused := map[string]string{
		"another endpoint":               change(func(k *token) { k.endpoint = other.endpoint }).String(),
		"no endpoint":                    change(func(k *token) { k.endpoint = "" }).String(),
		"a longer life":                  change(func(k *token) { k.issued += 1000 }).String(),
		"seen later":                     change(func(k *token) { k.seen += 1000 }).String(),
		"another backend":                change(func(k *token) { k.backend = "aaaaaaaa" }).String(),
		"another token's MAC":            change(func(k *token) { k.mac = other.mac; k.issued-- }).String(),
		"a key that is unknown":          change(func(k *token) { k.version = "1z" }).String(),
		"a version that is unknown":      change(func(k *token) { k.version = "2a" }).String(),
		"signed by another key":          k.signed(keys.SignKey{ID: "a", Secret: []byte(strings.Repeat("x", 32))}, scope).String(),
		"signed for another scope":       k.signed(keyA, scopeOf(w.session(t, "other"))).String(),
		"signed for no scope":            k.signed(keyA, "").String(),
		"expired":                        change(func(k *token) { k.issued = now - 3600 }).signed(keyA, scope).String(),
		"expired long ago":               change(func(k *token) { k.issued = 1 }).signed(keyA, scope).String(),
		"signed, of an endpoint unknown": change(func(k *token) { k.endpoint = "aaaaaaaaaaaaa" }).signed(keyA, scope).String(),
		"without its end":                text[:len(text)-1],
		"with more at its end":           text + "x",
		"with more before":               "x" + text,
		"without MAC":                    k.unsigned() + ".",
		"without MAC and dot":            k.unsigned(),
		"with a seventh part":            text + ".x",
		"in capitals":                    strings.ToUpper(text),
		"in quotes":                      `"` + text + `"`,
		"encoded":                        strings.ReplaceAll(text, ".", "%2E"),
		"empty":                          "",
		"a dot":                          ".",
		"dots":                           ".....",
		"a version alone":                "1a",
		"a version and a dot":            "1a.",
		"a version and dots":             "1a.....",
		"a version and blanks":           "1a. . . . . ",
		"what looks like code":           `1a.%[env(HOME)].${HOME}.'".\.|`,
		"not UTF-8":                      "1a.\xff\xfe.\xc3.1.1.x",
		"4 KiB":                          strings.Repeat("x", 4096),
		"4 KiB after a beginning":        "1a." + strings.Repeat("y", 4096),
		"4 KiB of dots":                  "1a" + strings.Repeat(".", 4096),
		"10 KiB behind the token":        text + strings.Repeat("z", 10_000),
		"numbers without end":            "1a.b.c." + strings.Repeat("9", 150) + ".1.x",
		"a client's own":                 "my-session-42",
	}
	if path == "/cookie" {
		refused["bad, twice"] = "bad; c=worse"
	}
	for what, token := range refused {
		a := w.ok(t, get("x.example"+path, with(token)...))
		if fresh := given(a); fresh == "" || fresh == token {
			t.Errorf("%s: %.100q is kept", what, token)
		} else if again := w.ok(t, get("x.example"+path, with(fresh)...)); again.echo.Pod != a.echo.Pod || given(again) != "" {
			t.Errorf("%s: the new token is not kept", what)
		}
	}
	// Of several cookies the proven one counts.
	if path == "/cookie" {
		foreign := k.signed(keyA, "another scope").String()
		for _, lines := range [][]string{
			{"Cookie: c=" + text + "; c=bad"}, {"Cookie: c=bad; c=" + text}, {"Cookie: c=bad", "Cookie: c=" + text}, {"Cookie: c=" + text, "Cookie: c=bad"},
			{"Cookie: c=" + foreign + "; c=" + text}, {"Cookie: c=" + text + "; c=" + foreign}, {"Cookie: c=" + strings.Repeat("x", 4096) + "; c=" + text},
		} {
			if a := w.ok(t, get("x.example"+path, lines...)); a.echo.Pod != first.echo.Pod || given(a) != "" {
				t.Errorf("a proven token among others is not kept: %.200q", lines)
			}
		}
	}
	// A token beyond what HAProxy reads of a request is HTTP's own error.
	if got := w.ask(t, get("x.example"+path, with(strings.Repeat("x", 17_000))...)).status; got != 400 {
		t.Errorf("a token of 17 KiB: %d, want 400", got)
	}
}
