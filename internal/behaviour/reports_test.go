package behaviour

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/limpet-gateway/limpet/internal/spec"
)

// TestEveryFieldReportIsATest: each row of docs/field-reports.md names tests that are there and have its number, or says
// why it needs a cluster; and each test with a number is in the rows of its numbers.
func TestEveryFieldReportIsATest(t *testing.T) {
	t.Parallel()
	const home = "internal/behaviour"
	page, err := os.ReadFile("../../docs/field-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, rows, last := spec.NewTests(os.DirFS("../..")), map[string]string{}, ""
	for line := range strings.Lines(string(page)) {
		number := regexp.MustCompile(`^\| \[?(B\d\d)`).FindStringSubmatch(line)
		if number == nil {
			continue
		}
		report, shown := number[1], line[strings.LastIndex(strings.TrimRight(line, " |\n"), " | ")+3:]
		if report <= last {
			t.Errorf("%s comes after %s", report, last)
		}
		last, rows[report] = report, shown
		named := false
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(shown, -1) {
			name := quoted[1]
			if strings.HasPrefix(name, "Test") {
				name = home + "." + name
			}
			if err := tests.Find(name); err != nil {
				t.Errorf("%s: %v", report, err)
			}
			named = named || strings.Contains(name, report)
		}
		if !named && !strings.HasPrefix(shown, "Needs a cluster: ") {
			t.Errorf("%s has no test of its number, and does not say why: %s", report, shown)
		}
	}
	if len(rows) < 50 {
		t.Errorf("%d reports", len(rows))
	}
	for _, folder := range []string{home, "controller/translate"} {
		names, err := tests.Names(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for _, report := range regexp.MustCompile(`B\d\d`).FindAllString(strings.TrimPrefix(name, "Test"), -1) {
				if !strings.Contains(rows[report], "`"+strings.TrimPrefix(folder+"."+name, home+".")+"`") {
					t.Errorf("%s is not in the row of %s", name, report)
				}
			}
		}
	}
}
