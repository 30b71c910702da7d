package golden

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/templates"
)

// stages are those of the pipeline that remember.
type stages struct {
	files      *cluster.Files
	builder    *graph.Builder
	translator *translate.Translator
	renderer   *templates.Renderer
	computer   *status.Computer
	place      placement.Placement
	backends   []string
}

func newStages(t testing.TB, file string) *stages {
	t.Helper()
	renderer, err := templates.NewRenderer(controller.Settings("/run/limpet", []keys.SignKey{{ID: "a", Secret: secret}}))
	if err != nil {
		t.Fatal(err)
	}
	return &stages{
		files:   cluster.NewFiles(cluster.FilesOptions{Paths: []string{file}}),
		builder: graph.NewBuilder(graph.Options{PortOffset: 8000}), translator: translate.New(translate.Options{NamesKey: secret}),
		renderer: renderer, computer: status.NewComputer(graph.DefaultControllerName),
	}
}

// pass takes what the file holds now through the stages.
func (s *stages) pass(t testing.TB) outcome {
	t.Helper()
	snapshot, _ := s.files.Load()
	g := s.builder.Build(snapshot)
	config := s.translator.Config(g)
	var backends []string
	for _, e := range config.Backends.Sorted() {
		backends = append(backends, e.Key)
	}
	gone := slices.DeleteFunc(slices.Clone(s.backends), func(name string) bool { return slices.Contains(backends, name) })
	s.place = s.place.Update(placement.Backends(config), gone)
	s.place = s.place.Released(s.place.Leaving()...)
	s.backends = backends
	set, faults, err := s.renderer.Render(config, s.place)
	if err != nil || len(faults) > 0 {
		t.Fatal(faults, err)
	}
	updates := s.computer.Compute(g, status.Result{Running: g})
	status.Sort(updates)
	return outcome{&controller.Preview{Graph: g, Set: set, Placement: s.place, Updates: updates}, config}
}

// TestObjectsThatComeOneByOneGiveTheSameBytes: what the stages remember shows in nothing, in whatever order objects come,
// change and go.
func TestObjectsThatComeOneByOneGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for seed, in := range cases {
		t.Run(filepath.Base(filepath.Dir(in)), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 3))
			all := append(documents(t, "testdata/base.yaml", in), documents(t, cases[random.IntN(len(cases))])...)
			file := filepath.Join(t.TempDir(), "in.yaml")
			write := func(texts []string) {
				if err := os.WriteFile(file, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(nil)
			remembering := newStages(t, file)
			present := map[int]bool{}
			for step := range 3 * len(all) {
				i := random.IntN(len(all))
				present[i] = !present[i]
				var texts []string
				for i, text := range all {
					if present[i] {
						texts = append(texts, text)
					}
				}
				write(texts)
				got := remembering.pass(t)
				if step%4 > 0 {
					continue
				}
				fresh := newStages(t, file)
				fresh.place, fresh.backends = remembering.place, remembering.backends
				// A generation counts changes, and only a source that remembers knows them.
				if diff := cmp.Diff(ageless(fresh.pass(t).everything(t)), ageless(got.everything(t))); diff != "" {
					t.Fatalf("step %d (-fresh +remembering):\n%s", step, diff)
				}
			}
		})
	}
}

func ageless(text string) string {
	for generation := range 40 {
		text = strings.ReplaceAll(text, fmt.Sprintf("observedGeneration: %d\n", generation), "observedGeneration: 1\n")
	}
	return text
}
