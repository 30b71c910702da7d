// Table tells what a run of the conformance suite has shown: of each feature of Gateway API, whether its tests passed, or why they
// were not run. The suite's log goes in on standard input, and Markdown comes out.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func main() {
	results, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "table: %v\n", err)
		os.Exit(1)
	}
	fmt.Print(page(results))
}

var verdict = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): TestConformance/([^/ ]+) `)

// read returns the verdict of each test.
func read(log io.Reader) (map[string]string, error) {
	results := map[string]string{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if found := verdict.FindStringSubmatch(lines.Text()); found != nil {
			results[found[2]] = found[1]
		}
	}
	return results, lines.Err()
}

func page(results map[string]string) string {
	var text strings.Builder
	passed, failed := with(results, "PASS"), with(results, "FAIL")
	left := len(tests.ConformanceTests) - len(passed) - len(failed)
	fmt.Fprintf(&text, "%d tests passed, %d failed, and %d were not run.\n\n", len(passed), len(failed), left)
	if len(failed) > 0 {
		fmt.Fprintf(&text, "Failed: %s.\n\n", strings.Join(failed, ", "))
	}
	text.WriteString("| feature | tests | result |\n|---|---|---|\n")
	for _, feature := range allFeatures() {
		fmt.Fprintln(&text, row(feature, results))
	}
	return text.String()
}

func with(results map[string]string, wanted string) []string {
	var names []string
	for name, result := range results {
		if result == wanted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func allFeatures() []features.FeatureName {
	return slices.SortedFunc(slices.Values(features.SetsToNamesSet(features.AllFeatures).UnsortedList()),
		func(a, b features.FeatureName) int { return cmp.Compare(a, b) })
}

// row is what the tests say that need a feature.
func row(feature features.FeatureName, results map[string]string) string {
	var needing, failed, left int
	for _, test := range tests.ConformanceTests {
		if !slices.Contains(test.Features, feature) {
			continue
		}
		needing++
		switch results[test.ShortName] {
		case "PASS":
		case "FAIL":
			failed++
		default:
			left++
		}
	}
	return fmt.Sprintf("| %s | %d | %s |", feature, needing, result(feature, needing, failed, left))
}

func result(feature features.FeatureName, needing, failed, left int) string {
	switch {
	case needing == 0:
		return "the suite has no test of it"
	case left == needing:
		return "not claimed: " + why(feature)
	case failed > 0:
		return fmt.Sprintf("%d failed", failed)
	case left > 0:
		return fmt.Sprintf("passed; %d were not run, which need a feature that is not claimed too", left)
	}
	return "passed"
}

func why(feature features.FeatureName) string {
	switch {
	case strings.HasPrefix(string(feature), "Mesh"):
		return "Limpet is no mesh"
	case strings.HasPrefix(string(feature), "UDP"):
		return "HAProxy does not forward UDP"
	}
	return "not built"
}
