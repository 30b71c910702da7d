package files

import (
	"fmt"
	"testing"
)

func TestBindsAreWhatTheLinesSay(t *testing.T) {
	t.Parallel()
	set := Set{Sections: []Section{
		{Text: "# a comment\nfrontend p\n  bind 127.0.0.1:80 name p\n  bind [::1]:443,:81\n  bind *:82\n", Owners: map[int]string{2: "A", 3: "B"}},
		{Text: "frontend h\n  bind abns@x ssl\n  bind unix@/a/b:1\n  bind 127.0.0.1:1-9\n  bind name:80\n  bind\n"},
		{Text: "backend s1\n  bind 127.0.0.1:83\n", Slot: "s1"},
	}}
	const want = "[{A 127.0.0.1:80} {B [::1]:443} {B 0.0.0.0:81} { 0.0.0.0:82}]"
	if got := fmt.Sprint(set.Binds()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
