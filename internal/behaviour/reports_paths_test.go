package behaviour

// Field reports, section B: paths that are rewritten.

import (
	"fmt"
	"strings"
	"testing"
)

// TestB12ARewriteReplacesAPrefixBySegments: what stays of a path is joined with one slash, and is otherwise as it was sent:
// slashes that stand side by side, dots, encoded characters and the query.
func TestB12ARewriteReplacesAPrefixBySegments(t *testing.T) {
	t.Parallel()
	type rewrite struct{ at, to string }
	rewrites := []rewrite{
		{"/a", "/"}, {"/b/", "/"}, {"/c", ""}, {"/d", "/xyz"}, {"/e", "/xyz/"}, {"/f/", "/xyz"}, {"/g/h", "/x/y/z"}, {"/same", "/same"}, {"/", "/root"},
	}
	rules := "rules:"
	for _, r := range rewrites {
		rules += fmt.Sprintf("\n- matches: [{path: {value: %s}}]\n  filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: %q}}}]\n  backendRefs: [{name: one, port: 80}]", r.at, r.to)
	}
	w := Run(t, gateway+route("all", rules), pods("one", 1))
	for _, c := range []struct{ target, want string }{
		{"/a", "/"}, {"/a/", "/"}, {"/a/x", "/x"}, {"/a/x/", "/x/"}, {"/a//x", "//x"}, {"/a?q=/a", "/?q=/a"}, {"/a/x?q", "/x?q"}, {"/ax", "/root/ax"},
		{"/b", "/"}, {"/b/x", "/x"}, {"/c", "/"}, {"/c/x", "/x"},
		{"/d", "/xyz"}, {"/d/", "/xyz/"}, {"/d/x", "/xyz/x"}, {"/e", "/xyz/"}, {"/e/x", "/xyz/x"}, {"/f", "/xyz"}, {"/f/x", "/xyz/x"},
		{"/g/h/i", "/x/y/z/i"}, {"/g", "/root/g"}, {"/same/x", "/same/x"}, {"/", "/root/"},
		{"/d/a%2Fb//c/../d/./e;f=1?g=%2F&h=//", "/xyz/a%2Fb//c/../d/./e;f=1?g=%2F&h=//"}, {"/a/%61", "/%61"}, {"/a/a", "/a"},
	} {
		if a := w.ask(t, get("x.example"+c.target)); a.outcome() != "one" || a.echo.URI != c.want {
			t.Errorf("%s: %s, reaches the pod as %s, want %s", c.target, a.outcome(), a.echo.URI, c.want)
		}
	}
	// A long one too.
	long := strings.Repeat("/y", 2000)
	if a := w.ask(t, get("x.example/d"+long)); a.echo.URI != "/xyz"+long {
		t.Errorf("a path of %d bytes: %s, %d bytes reach the pod", len(long), a.outcome(), len(a.echo.URI))
	}
}
