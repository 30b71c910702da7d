package expose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/internal/goldentest"
)

// TestGolden shows the changes that each case's objects lead to, round after round, and the addresses in the end.
func TestGolden(t *testing.T) {
	t.Parallel()
	goldentest.Cases(t, func(t *testing.T, folder string) {
		source, err := os.ReadFile(filepath.Join(folder, "in.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Compare(t, filepath.Join(folder, "out.yaml"), rounds(t, newWorld(t, string(source))))
	})
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
