package architecture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/limpet-gateway/limpet"

// Groups of packages that rules name. A pattern is a package with all that lies below it; one that ends in "$" is that
// package alone.
var (
	kubernetes = []string{"k8s.io", "sigs.k8s.io"}
	clients    = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	world      = []string{"os", "net$", "net/http$", "syscall"}
	runs       = []string{"os/exec", "net/http$"}
)

// rule says what the packages that match its pattern may import.
type rule struct {
	// packages is a pattern, without the module's path. The first rule that matches a package counts.
	packages string
	// own are the patterns of those of our packages that it may import; internal/table is always allowed.
	own []string
	// not are patterns of others' packages that it may not import itself.
	not [][]string
	// never are patterns of others' packages that it may not even reach through what it imports.
	never [][]string
}

// rules is the direction of design: objects to Snapshot, Graph, Config, Set, Plan, Result. A new package needs a line.
var rules = []rule{
	{packages: "cmd", own: []string{"api", "controller", "templates", "dataplane", "internal"}},
	{packages: "hack", own: []string{"api", "controller", "templates", "dataplane", "internal"}},
	{packages: "api"},

	{packages: "controller$", own: []string{"api", "controller", "templates", "dataplane", "internal"}},
	{packages: "controller/cluster", own: []string{"api"}},
	{packages: "controller/health"},
	{packages: "controller/metrics", own: []string{"controller/model", "dataplane"}, never: [][]string{kubernetes}},
	{packages: "controller/replicas", never: [][]string{kubernetes}},
	{packages: "controller/conditions", own: []string{"api"}, not: [][]string{clients, world}},
	{
		packages: "controller/graph",
		own:      []string{"api", "controller/cluster", "controller/conditions"},
		not:      [][]string{clients, world},
	},
	{
		packages: "controller/translate",
		own:      []string{"api", "controller/graph", "controller/conditions", "controller/model"},
		not:      [][]string{clients, world},
	},
	{packages: "controller/expose", own: []string{"api", "controller/cluster", "controller/graph"}, not: [][]string{world}},
	{
		packages: "controller/status",
		own:      []string{"api", "controller/expose", "controller/graph", "controller/conditions", "controller/model", "controller/cluster"},
		not: [][]string{
			{"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "k8s.io/client-go/dynamic", "k8s.io/client-go/tools"},
			{"sigs.k8s.io/controller-runtime"}, runs,
		},
	},
	{packages: "controller/leader", not: [][]string{runs}},

	// From here on, nothing knows of Kubernetes.
	{packages: "controller/model", never: [][]string{kubernetes}, not: [][]string{world}},
	{
		packages: "templates",
		own:      []string{"controller/model", "dataplane/files", "dataplane/placement", "internal/originator"},
		not:      [][]string{runs},
		never:    [][]string{kubernetes},
	},
	{
		packages: "dataplane$",
		own:      []string{"controller/model", "dataplane", "internal/keys", "internal/originator"},
		never:    [][]string{kubernetes},
	},
	{packages: "dataplane/files", own: []string{"dataplane/placement"}, never: [][]string{kubernetes}, not: [][]string{runs}},
	{packages: "dataplane/placement", own: []string{"controller/model"}, never: [][]string{kubernetes}, not: [][]string{world}},
	{packages: "dataplane/haproxy", own: []string{"controller/model", "dataplane/files"}, never: [][]string{kubernetes}},

	{packages: "internal/originator", never: [][]string{kubernetes}},
	{packages: "internal", own: []string{"internal"}},
}

// only names what a single package may import; its users say it in their own words there.
var only = []struct{ pattern, by string }{
	{"github.com/haproxytech/client-native", "dataplane/haproxy"},
	{"k8s.io/client-go/informers", "controller/cluster"},
	{"k8s.io/client-go/tools/cache", "controller/cluster"},
	{"k8s.io/client-go/metadata/metadatainformer", "controller/cluster"},
	{"k8s.io/client-go/dynamic/dynamicinformer", "controller/cluster"},
	{"sigs.k8s.io/controller-runtime/pkg/cache", "controller/cluster"},
}

// pkg is what go list tells of a package. Imports of tests are their own business.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// path is the package's path within the module.
func (p pkg) path() string { return local(p.ImportPath) }

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()

	for _, p := range packages(t) {
		for _, broken := range violations(p) {
			t.Error(broken)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()

	for _, p := range packages(t) {
		if len(p.GoFiles)+len(p.CgoFiles) == 0 {
			continue
		}
		if broken := headComment(t, p); broken != "" {
			t.Errorf("%s %s: say in it what comes in, what goes out and what it must never do", p.path(), broken)
		}
	}
}

// TestRulesBite shows that each kind of rule finds what it forbids.
func TestRulesBite(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		path    string
		imports []string
		deps    []string
		want    string
	}{
		"an allowed import":          {path: "controller/translate", imports: []string{module + "/controller/model"}},
		"the standard library":       {path: "controller/graph", imports: []string{"net/netip", "time", "strings"}},
		"a later stage":              {path: "controller/graph", imports: []string{module + "/controller/model"}, want: "may not import controller/model"},
		"against the flow":           {path: "dataplane/haproxy", imports: []string{module + "/templates"}, want: "may not import templates"},
		"a command":                  {path: "controller", imports: []string{module + "/cmd/limpet"}, want: "may not import cmd/limpet"},
		"Kubernetes in the model":    {path: "controller/model", imports: []string{"k8s.io/api/core/v1"}, deps: []string{"k8s.io/api/core/v1"}, want: "may not reach k8s.io/api/core/v1"},
		"Kubernetes around a corner": {path: "templates", imports: []string{"example.org/x"}, deps: []string{"example.org/x", "sigs.k8s.io/yaml"}, want: "may not reach sigs.k8s.io/yaml"},
		"a process in a pure stage":  {path: "controller/translate", imports: []string{"os/exec"}, want: "may not import os/exec"},
		"a web client in status":     {path: "controller/status", imports: []string{"net/http"}, want: "may not import net/http"},
		"client-native elsewhere":    {path: "dataplane", imports: []string{"github.com/haproxytech/client-native/v5/runtime"}, want: "only dataplane/haproxy may import"},
		"a client in status":         {path: "controller/status", imports: []string{"sigs.k8s.io/controller-runtime/pkg/client"}, want: "may not import sigs.k8s.io/controller-runtime/pkg/client"},
		"informers elsewhere":        {path: "controller", imports: []string{"k8s.io/client-go/informers"}, want: "only controller/cluster may import"},
		"a package without a rule":   {path: "controller/new", want: "has no rule"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := violations(pkg{ImportPath: module + "/" + c.path, Imports: c.imports, Deps: c.deps})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %q, want nothing", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want one that says %q", got, c.want)
			}
		})
	}
}

// violations says in words which rules the package breaks.
func violations(p pkg) []string {
	i := slices.IndexFunc(rules, func(r rule) bool { return matches(p.path(), r.packages) })
	if i < 0 {
		return []string{fmt.Sprintf("%s has no rule: add a line to rules that says what it may import", p.path())}
	}
	r := rules[i]

	var broken []string
	for _, imported := range p.Imports {
		own := strings.HasPrefix(imported, module+"/")
		switch {
		case own && !matches(local(imported), append(r.own, "internal/table$")...):
			broken = append(broken, fmt.Sprintf("%s may not import %s", p.path(), local(imported)))
		case !own && matches(imported, slices.Concat(r.not...)...):
			broken = append(broken, fmt.Sprintf("%s may not import %s", p.path(), imported))
		}
		for _, o := range only {
			if matches(imported, o.pattern) && p.path() != o.by {
				broken = append(broken, fmt.Sprintf("%s imports %s: only %s may import that", p.path(), imported, o.by))
			}
		}
	}
	for _, reached := range p.Deps {
		if matches(reached, slices.Concat(r.never...)...) {
			broken = append(broken, fmt.Sprintf("%s may not reach %s", p.path(), reached))
			break // One is enough: it brings dozens.
		}
	}
	return broken
}

// matches says whether any pattern holds for the path.
func matches(path string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		exact, alone := strings.CutSuffix(pattern, "$")
		return path == exact || !alone && strings.HasPrefix(path, pattern+"/")
	})
}

// local is a package's path within the module.
func local(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// headComment says what is wrong with the package's head comment, or "".
func headComment(t *testing.T, p pkg) string {
	t.Helper()

	want := "Package " + filepath.Base(p.ImportPath) + " "
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSpace(commentText(file.Doc)); text != "" {
			switch {
			case file.Name.Name != "main" && !strings.HasPrefix(text, want):
				return fmt.Sprintf("has a head comment that does not begin with %q", want)
			case strings.Count(text, ".") < 2:
				return "has a head comment of a single sentence"
			}
			return ""
		}
	}
	return "has no head comment"
}

func commentText(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	return group.Text()
}

// packages lists the module's packages. Where the result of this test is cached, a changed import goes unseen, so
// "make check" runs it with -count=1.
func packages(t *testing.T) []pkg {
	t.Helper()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,Imports,Deps", "./...")
	command.Dir = root
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}

	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p pkg
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list lists no package")
	}
	return all
}
