package expose

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden shows the changes that each case's objects lead to, round after round, and the addresses in the end.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, string(source))
			compare(t, filepath.Join(dir, "out.yaml"), rounds(t, w))
		})
	}
}

func rounds(t *testing.T, w *world) string {
	t.Helper()
	var out strings.Builder
	for round := 1; round <= 5; round++ {
		wanted := w.compute()
		if len(wanted.Changes) == 0 {
			out.WriteString("---\n# addresses\n" + exposures(wanted.Exposures))
			return out.String()
		}
		for _, change := range wanted.Changes {
			text, err := yaml.Marshal(change.Object)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.Replace(string(text), "status:\n  loadBalancer: {}\n", "", 1))
			fmt.Fprintf(&out, "---\n# round %d: %s\n%s", round, change.Verb, text)
		}
		w.apply(t, wanted.Changes)
	}
	t.Fatalf("there is no end of changes:\n%s", out.String())
	return ""
}

func exposures(all map[types.NamespacedName]Exposure) string {
	var lines []string
	for name, exposure := range all {
		line := name.String() + ":"
		for _, address := range exposure.Addresses {
			line += fmt.Sprintf(" %s %s", *address.Type, address.Value)
		}
		if exposure.Reason != "" {
			line += fmt.Sprintf(" %s: %s", exposure.Reason, exposure.Problem)
		}
		lines = append(lines, "# "+line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: write it with make golden, and review it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
