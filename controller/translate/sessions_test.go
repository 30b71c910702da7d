package translate

import (
	"regexp"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// sessionsOf translates one rule and returns its shares' sessions.
func sessionsOf(t *testing.T, rule *graph.Rule) []*model.Session {
	t.Helper()
	var sessions []*model.Session
	for _, share := range ruleOf(t, rule).Split {
		sessions = append(sessions, share.Session)
	}
	return sessions
}

func TestASessionHasWhatTheRuleAsksFor(t *testing.T) {
	t.Parallel()

	got := sessionsOf(t, sticky(to("a"), &graph.Session{
		Type: gatewayv1.CookieBasedSessionPersistence, Name: "c", Absolute: time.Hour, Permanent: true, Path: "/app",
	}))[0]
	want := &model.Session{
		ID: got.ID, Scope: got.Scope, Backend: got.Backend, OtherName: "c-" + got.Backend,
		Carrier: model.Cookie, Name: "c", Absolute: time.Hour, Permanent: true, Path: "/app",
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
	for what, text := range map[string]string{
		got.ID: "^s[a-z2-7]{12}$", got.Scope: "^[a-z2-7]{12}$", got.Backend: "^[a-z2-7]{8}$",
	} {
		if !regexp.MustCompile(text).MatchString(what) {
			t.Errorf("%q does not match %s", what, text)
		}
	}
}

func TestEachOptionalFieldOfASessionMayBeMissing(t *testing.T) {
	t.Parallel()

	got := sessionsOf(t, sticky(to("a"), &graph.Session{Type: gatewayv1.CookieBasedSessionPersistence}))[0]
	if got.Path != "/" || got.Absolute != 0 || got.Permanent || got.Carrier != model.Cookie {
		t.Errorf("a session without anything is %+v", got)
	}
}

func TestCookieNames(t *testing.T) {
	t.Parallel()

	suffixA, suffixB := backendDigest(service("a")), backendDigest(service("b"))
	type names struct{ name, other string }
	for name, c := range map[string]struct {
		rule *graph.Rule
		want []names
	}{
		"a given name stands alone with one backend":              {sticky(to("a"), cookie("c")), []names{{"c", "c-" + suffixA}}},
		"a given name gets a suffix for each of several backends": {sticky(to("a b"), cookie("c")), []names{{"c-" + suffixA, "c"}, {"c-" + suffixB, "c"}}},
		"a backend without weight counts":                         {sticky(to("a b:0"), cookie("c")), []names{{"c-" + suffixA, "c"}, {"c-" + suffixB, "c"}}},
		"an invalid backend counts":                               {sticky(to("a !b"), cookie("c")), []names{{"c-" + suffixA, "c"}, {}}},
		"one backend twice is one":                                {sticky(to("a a"), cookie("c")), []names{{"c", "c-" + suffixA}, {"c", "c-" + suffixA}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []names
			for _, s := range sessionsOf(t, c.rule) {
				if s == nil {
					got = append(got, names{})
					continue
				}
				got = append(got, names{s.Name, s.OtherName})
			}
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Errorf("names are %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestAGeneratedCookieNameIsUniqueAndOutlastsBackends(t *testing.T) {
	t.Parallel()

	alone := sessionsOf(t, sticky(to("a", prefix("/x")), cookie("")))[0]
	split := sessionsOf(t, sticky(to("a:1 b:9", prefix("/x")), cookie("")))
	other := sessionsOf(t, sticky(to("a", prefix("/y")), cookie("")))[0]
	if !regexp.MustCompile("^limpet-[a-z2-7]{12}$").MatchString(alone.Name) {
		t.Errorf("a generated name is %q", alone.Name)
	}
	if alone.Name != split[0].Name || alone.OtherName != "" {
		t.Errorf("with a second backend the name goes from %q to %q", alone.Name, split[0].Name)
	}
	if alone.Name == split[1].Name || alone.Name == other.Name {
		t.Error("two sessions have one generated name")
	}
}

func TestAHeaderHasItsNameAsGiven(t *testing.T) {
	t.Parallel()

	sessions := sessionsOf(t, sticky(to("a b"), &graph.Session{Type: gatewayv1.HeaderBasedSessionPersistence, Name: "X-Session", Absolute: time.Minute, Path: "/"}))
	for _, s := range sessions {
		if s.Carrier != model.HeaderLine || s.Name != "X-Session" || s.OtherName != "" || s.Path != "" || s.Absolute != time.Minute {
			t.Errorf("a header's session is %+v", s)
		}
	}
}

func TestOneRulesSessionsShareAScopeAndNoOther(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("one", "", sticky(to("a b", prefix("/1")), cookie("c")), sticky(to("a", prefix("/2")), cookie("c")))
	w.route("two", "", sticky(to("a", prefix("/3")), cookie("c")))
	scopes, ids := map[string][]string{}, map[string]bool{}
	for _, entry := range w.config(testTranslator()).Rules.Sorted() {
		for _, share := range entry.Value.Split {
			scopes[share.Session.Scope] = append(scopes[share.Session.Scope], entry.Key)
			ids[share.Session.ID] = true
		}
	}
	if len(scopes) != 3 || len(ids) != 4 {
		t.Errorf("scopes are %v and IDs %v; want one scope for each of three rules and an ID for each of four shares", scopes, ids)
	}
}

func TestB26ThreeRulesOnOneServiceHaveThreeBehaviours(t *testing.T) {
	t.Parallel()

	w := oneGateway(on(""))
	w.route("r", "", sticky(to("echo", prefix("/a")), cookie("a")), sticky(to("echo", prefix("/b")), cookie("b")), to("echo", prefix("/c")))
	translator := testTranslator()
	config := w.config(translator)
	if config.Backends.Len() != 1 || config.Rules.Len() != 3 {
		t.Errorf("got %d backends and %d rules, want one backend and three rules", config.Backends.Len(), config.Rules.Len())
	}
	again := w.config(translator)
	if !again.Rules.Same(config.Rules) || !again.Paths.Same(config.Paths) || !again.Backends.Same(config.Backends) {
		t.Error("the Config changes although nothing did")
	}
}

func TestSessionsOutlast(t *testing.T) {
	t.Parallel()

	before := sessionsOf(t, sticky(to("a:1 b:1", prefix("/x")), cookie("c")))[0]
	for name, rule := range map[string]*graph.Rule{
		"other weights":  sticky(to("a:0 b:9", prefix("/x")), cookie("c")),
		"other matches":  sticky(to("a b", prefix("/y")), cookie("c")),
		"other backends": sticky(to("z b a", prefix("/x")), cookie("c")),
		"other limits":   sticky(to("a b"), &graph.Session{Type: gatewayv1.CookieBasedSessionPersistence, Name: "c", Absolute: time.Hour, Path: "/z"}),
	} {
		var after *model.Session
		for _, s := range sessionsOf(t, rule) {
			if s.Backend == before.Backend {
				after = s
			}
		}
		if after == nil || after.ID != before.ID || after.Scope != before.Scope || after.Name != before.Name {
			t.Errorf("with %s the session of a is %+v, was %+v", name, after, before)
		}
	}
}

func TestWholeSecondsAreRoundedUp(t *testing.T) {
	t.Parallel()

	for d, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: time.Second, time.Second: time.Second, 1500 * time.Millisecond: 2 * time.Second,
	} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("%v is %v in whole seconds, want %v", d, got, want)
		}
	}
}

func TestAStickySessionHasOneCookieForAllBackends(t *testing.T) {
	t.Parallel()

	of := func(session graph.Session) []*model.Session {
		session.Sticky, session.Idle = true, time.Minute
		return sessionsOf(t, sticky(to("a b:0"), &session))
	}
	for _, c := range []struct {
		name     string
		session  graph.Session
		carrier  model.Carrier
		wantName string
	}{
		{"a given name", graph.Session{Type: gatewayv1.CookieBasedSessionPersistence, Name: "c"}, model.Cookie, "^c$"},
		{"a generated name", graph.Session{Type: gatewayv1.CookieBasedSessionPersistence}, model.Cookie, "^limpet-[a-z2-7]{12}$"},
		{"a header", graph.Session{Type: gatewayv1.HeaderBasedSessionPersistence, Name: "X-S"}, model.HeaderLine, "^X-S$"},
		{"a header with a generated name", graph.Session{Type: gatewayv1.HeaderBasedSessionPersistence}, model.HeaderLine, "^limpet-[a-z2-7]{12}$"},
	} {
		got := of(c.session)
		if got[0].Name != got[1].Name || !regexp.MustCompile(c.wantName).MatchString(got[0].Name) {
			t.Errorf("%s: the names are %q and %q", c.name, got[0].Name, got[1].Name)
		}
		for _, s := range got {
			if !s.Sticky || s.Idle != time.Minute || s.Carrier != c.carrier {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
		if got[0].Backend == got[1].Backend || got[0].ID == got[1].ID || got[0].Scope != got[1].Scope {
			t.Errorf("%s: the shares are told apart wrongly: %+v %+v", c.name, got[0], got[1])
		}
	}
	before := sessionsOf(t, sticky(to("a b"), cookie("c")))
	after := of(graph.Session{Type: gatewayv1.CookieBasedSessionPersistence, Name: "c"})
	if after[0].OtherName != before[0].Name || after[0].Scope != before[0].Scope {
		t.Errorf("whose session was of the other shape is moved: %+v, then %+v", before[0], after[0])
	}
}
