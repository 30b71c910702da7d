package templates

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/table"
)

func TestAStickySessionChoosesTheShare(t *testing.T) {
	port := freePort(t)
	session := func(backend string, carrier model.Carrier) *model.Session {
		return &model.Session{
			ID: "s" + backend + string(carrier), Scope: "x", Backend: "b" + backend, Carrier: carrier, Name: "Shop", Path: "/", Sticky: true,
			Idle: time.Hour, Absolute: time.Hour,
		}
	}
	rule := func(id string, carrier model.Carrier, one, two uint32) *model.Rule {
		return &model.Rule{ID: id, Split: []model.Share{
			{Weight: one, Backend: "one", Session: session("one", carrier)}, {Weight: two, Backend: "two", Session: session("two", carrier)}, {Weight: 1, Backend: "three"},
		}}
	}
	run(t, serving(port, []table.Entry[*model.Backend]{backend("one", echo(t, "one")), backend("two", echo(t, "two")), backend("three", echo(t, "three"))},
		rule("first", model.Cookie, 1000, 0), rule("later", model.Cookie, 0, 1000), rule("even", model.Cookie, 500, 500), rule("header", model.HeaderLine, 500, 500)))
	cookie := func(path, server string) string {
		for range 20 {
			if got := send(t, port, "GET", path, nil); got.server == server {
				text, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
				return text
			}
		}
		t.Fatalf("%s never went to %s", path, server)
		return ""
	}
	one := cookie("/first", "one")
	time.Sleep(1100 * time.Millisecond)
	two := cookie("/later", "two")
	for _, c := range []struct{ path, cookies, want string }{
		{"/even", one, "one"}, {"/even", two, "two"}, {"/later", one, "one"}, {"/first", two, "two"},
		{"/even", one + "; " + two, "two"}, {"/even", "a=b; " + two + "; c=d; " + one, "two"},
		{"/even", strings.Replace(two, ".btwo.", ".bone.", 1) + "; " + one, "one"}, {"/even", two + "x; " + one, "one"},
	} {
		for range 10 {
			if got := send(t, port, "GET", c.path, http.Header{"Cookie": {c.cookies}}); got.server != c.want || got.header["Set-Cookie"] != nil {
				t.Fatalf("%s with %s: %s %v", c.path, c.cookies, got.server, got.header)
			}
		}
	}
	first := send(t, port, "GET", "/header", nil)
	for first.server == "three" {
		first = send(t, port, "GET", "/header", nil)
	}
	for range 10 {
		if got := send(t, port, "GET", "/header", http.Header{"Shop": {first.header.Get("Shop")}}); got.server != first.server {
			t.Fatalf("by a header: %s, then %s", first.server, got.server)
		}
	}
	if got := send(t, port, "GET", "/first", http.Header{"Cookie": {strings.Repeat("Shop=1a.bone.e1.1.1.x; ", 600)}}); got.status != 200 {
		t.Errorf("many forged tokens: %d", got.status)
	}
}
