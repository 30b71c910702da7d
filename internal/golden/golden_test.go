package golden

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/goldentest"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/internal/table"
)

// TestGolden takes each case's objects, with those of base.yaml, through the pipeline.
func TestGolden(t *testing.T) {
	t.Parallel()
	goldentest.Cases(t, func(t *testing.T, folder string) {
		out := run(t, documents(t, "testdata/base.yaml", filepath.Join(folder, "in.yaml")))
		checkWithHAProxy(t, out.preview)
		for _, file := range []struct{ name, text string }{
			{"model.yaml", out.model(t)}, {"status.yaml", out.status(t)}, {"files.txt", out.files()},
		} {
			goldentest.Compare(t, filepath.Join(folder, file.name), file.text)
		}
	})
}

// TestShuffledObjectsGiveTheSameBytes: nothing depends on the order in which objects are written.
func TestShuffledObjectsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range cases {
		all := documents(t, "testdata/base.yaml", in)
		want := run(t, all)
		for seed := range uint64(5) {
			random := rand.New(rand.NewPCG(seed, 9))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			got := run(t, all)
			if diff := cmp.Diff(want.everything(t), got.everything(t)); diff != "" {
				t.Fatalf("%s, seed %d:\n%s", in, seed, diff)
			}
		}
	}
}

// outcome is what came out of the pipeline.
type outcome struct {
	preview *controller.Preview
	config  model.Config
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// documents are those of some files, each with its kind.
func documents(t testing.TB, paths ...string) []string {
	t.Helper()
	var all []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range separator.Split(string(text), -1) {
			if strings.Contains(document, "kind:") {
				all = append(all, document)
			}
		}
	}
	return all
}

var secret = []byte("thirty-two bytes are no secret..")

func run(t testing.TB, documents []string) outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, problems := cluster.NewFiles(cluster.FilesOptions{Paths: []string{file}}).Load()
	for _, problem := range problems {
		if problem.Severity == cluster.Error {
			t.Fatal(problem)
		}
	}
	graphOptions, translateOptions := graph.Options{PortOffset: 8000}, translate.Options{NamesKey: secret}
	preview, err := controller.NewPreview(snapshot, graphOptions, translateOptions,
		controller.Settings("/run/limpet", []keys.SignKey{{ID: "a", Secret: secret}}))
	if err != nil {
		t.Fatal(err)
	}
	return outcome{preview, translate.New(translateOptions).Config(graph.NewBuilder(graphOptions).Build(snapshot))}
}

func (o outcome) everything(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, s := range o.preview.Set.Sections {
		all.WriteString(s.Text)
	}
	return o.model(t) + o.status(t) + o.files() + all.String()
}

// model is the model as YAML, its tables in order; certificates are shown by their length.
func (o outcome) model(t testing.TB) string {
	t.Helper()
	certificates, authorities := map[string]model.Certificate{}, map[string]model.Authority{}
	for _, e := range o.config.Certificates.Sorted() {
		shown := *e.Value
		shown.PEM = fmt.Sprintf("(%d bytes of PEM)", len(shown.PEM))
		certificates[e.Key] = shown
	}
	for _, e := range o.config.Authorities.Sorted() {
		shown := *e.Value
		shown.PEM = fmt.Sprintf("(%d bytes of PEM)", len(shown.PEM))
		authorities[e.Key] = shown
	}
	text, err := yaml.Marshal(map[string]any{
		"frame": o.config.Frame, "hosts": asMap(o.config.Hosts), "parents": asMap(o.config.Parents), "paths": asMap(o.config.Paths),
		"rules": asMap(o.config.Rules), "backends": asMap(o.config.Backends), "certificates": certificates, "authorities": authorities,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	text, err = yaml.Marshal(said(all))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// said leaves out the fields that say nothing, so that a new one changes no case that does not use it.
func said(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field = said(field); field == nil || field == "" || field == false || field == 0.0 && key != "Weight" {
				delete(value, key)
				continue
			}
			value[key] = field
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = said(value[i])
		}
	}
	return value
}

func asMap[V comparable](entries table.Table[V]) map[string]V {
	all := map[string]V{}
	for _, e := range entries.Sorted() {
		all[e.Key] = e.Value
	}
	return all
}

func (o outcome) status(t testing.TB) string {
	t.Helper()
	text, err := status.Marshal(o.preview.Updates)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files are the sections that a case has of its own, and the maps. What every configuration has is shown by none.
func (o outcome) files() string {
	var b strings.Builder
	used := map[string][]files.Server{}
	for _, e := range o.preview.Set.Servers.Sorted() {
		used[e.Value.Slot] = append(used[e.Value.Slot], e.Value)
	}
	for _, s := range o.preview.Set.Sections {
		own := s.Slot == "" && !strings.Contains(s.Name, "limpet-") && s.Name != "global"
		if len(used[s.Slot]) == 0 && !own {
			continue
		}
		b.WriteString(s.Text)
		for _, server := range used[s.Slot] {
			b.WriteString(server.Line())
		}
	}
	for _, name := range slices.Sorted(keysOf(o.preview.Set.Maps)) {
		entries := o.preview.Set.Maps[name].Sorted()
		if len(entries) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n==> %s <==\n", name)
		for _, e := range entries {
			fmt.Fprintf(&b, "%s %s\n", strings.ReplaceAll(e.Key, model.ExactEnd, `\x01`), e.Value.Value)
		}
	}
	return b.String()
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// checkWithHAProxy lets a real HAProxy read all of it.
func checkWithHAProxy(t *testing.T, preview *controller.Preview) {
	t.Helper()
	store, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	number, left, err := store.Write(preview.Set, preview.Placement)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	arguments := []string{"-c", "-C", store.Path(number)}
	for _, name := range files.ConfigFiles() {
		arguments = append(arguments, "-f", name)
	}
	if out, err := exec.CommandContext(context.Background(), haproxy(t), arguments...).CombinedOutput(); err != nil {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
}

// haproxy is the binary that checks: there is no golden file without it.
func haproxy(t testing.TB) string {
	t.Helper()
	for _, path := range []string{os.Getenv("HAPROXY"), "../../.cache/bin/haproxy", "haproxy"} {
		if found, err := exec.LookPath(path); path != "" && err == nil {
			absolute, err := filepath.Abs(found)
			if err != nil {
				t.Fatal(err)
			}
			return absolute
		}
	}
	t.Fatal("no haproxy: run the tests with make test")
	return ""
}
