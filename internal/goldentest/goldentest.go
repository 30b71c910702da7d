// Package goldentest compares what tests make with golden files, and rewrites these with -update.
//
// Texts come in, differences go out as failures. Whoever imports it has the flag; make golden finds its importers.
package goldentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Cases runs a test for each folder testdata/<case>, which has an in.yaml; there must be one.
func Cases(t *testing.T, test func(t *testing.T, folder string)) {
	t.Helper()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, in := range cases {
		folder := filepath.Dir(in)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			test(t, folder)
		})
	}
}

// Compare fails where a text differs from a golden file.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with make golden, and review it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
