//go:build linux

package conformance

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var update = flag.Bool("update", false, "rewrite docs/conformance/files.md after a run of all tests")

// checkPage compares docs/conformance/files.md with what a run of all tests has just shown, or writes it.
func checkPage(t *testing.T, passed map[string]bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "conformance", "files.md")
	wanted := page(passed)
	if *update {
		if err := os.WriteFile(path, wanted, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if there, _ := os.ReadFile(path); !bytes.Equal(there, wanted) {
		t.Error("docs/conformance/files.md is not what this run has shown: write it with make conformance-files TESTFLAGS=-update")
	}
}

// page is what a run has shown.
func page(passed map[string]bool) []byte {
	var text, rows bytes.Buffer
	count := map[string]int{}
	for _, test := range slices.SortedFunc(slices.Values(all()), byName) {
		group, result := resultOf(test.ShortName, passed)
		count[group]++
		if test.Provisional {
			result += " (a provisional test)"
		}
		if !slices.ContainsFunc(upstream(), func(o suite.ConformanceTest) bool { return o.ShortName == test.ShortName }) {
			result += " (our own test, of what GEP-1619 describes)"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", test.ShortName, featuresOf(test), result)
	}
	fmt.Fprintf(&text, `# Conformance

<!-- Written by a run: make conformance-files TESTFLAGS=-update. Do not edit. -->

The tests of Gateway API's conformance suite, v1.7.0, as they are, on `+"`limpet serve`"+` with a real HAProxy and the suite's own back end.
A small stand-in takes the place of a cluster ([CONTRIBUTING](../../CONTRIBUTING.md#conformance)), so this is no conformance report:
%d pass, %d fail, and %d are not run.

| test | needs | result |
|---|---|---|
`, count["passes"], count["fails"], count["left"])
	text.Write(rows.Bytes())
	return text.Bytes()
}

func byName(a, b suite.ConformanceTest) int { return cmp.Compare(a.ShortName, b.ShortName) }

func resultOf(name string, passed map[string]bool) (group, text string) {
	if why, left := outOfScope[name]; left {
		return "left", "not run: " + why
	}
	if passed[name] {
		return "passes", "passes"
	}
	return "fails", "fails" + cmp.Or(missing(name), ": it should not")
}

func missing(name string) string {
	if what, waits := pending[name]; waits {
		return ": " + what + " is not built yet"
	}
	return ""
}

func featuresOf(test suite.ConformanceTest) string {
	var names []string
	for _, feature := range test.Features {
		names = append(names, string(feature))
	}
	return strings.Join(names, ", ")
}
