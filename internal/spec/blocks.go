package spec

import (
	"regexp"
	"strings"
)

var (
	marker = regexp.MustCompile(`^\s*\+[a-zA-Z]`)                                // +kubebuilder:…, +optional
	tagged = regexp.MustCompile(`^\s*</?gateway:[^>]*validat`)                   // a rule for the CRD generator
	tag    = regexp.MustCompile(`</?gateway:[^>]*>`)                             // a span for the CRD generator
	bullet = regexp.MustCompile(`^\s*([*+-]|[0-9]+[.)]|[A-Z][)])\s+(\[.\]\s+)?`) // an item of a list
	hash   = regexp.MustCompile(`^#+\s`)                                         // a heading
)

// blocks cuts comment or prose lines into paragraphs and items. Headings, code and what speaks to generators are left out.
func blocks(lines []string) []block {
	var all []block
	var open *block
	shut := func() {
		if open != nil && strings.TrimSpace(open.text) != "" {
			all = append(all, *open)
		}
		open = nil
	}
	code := false
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			shut()
			continue
		}
		if code || marker.MatchString(line) || tagged.MatchString(line) {
			continue
		}
		if tag.MatchString(line) {
			line = tag.ReplaceAllString(line, "")
			if strings.TrimSpace(line) == "" {
				shut()
				continue
			}
		}
		switch {
		case strings.TrimSpace(line) == "", hash.MatchString(line):
			shut()
		case bullet.MatchString(line):
			shut()
			open = &block{text: bullet.ReplaceAllString(line, ""), item: true}
		case open == nil:
			open = &block{text: line}
		default:
			open.text += "\n" + line
		}
	}
	shut()
	return all
}
