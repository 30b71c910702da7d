package files

import (
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Without returns the set without the sections' lines and the assets of some owners. A section whose first line goes
// goes as a whole, and with an asset the lines of others that begin with its name. Further are the owners of assets of
// which nothing is left then, and of lines that name one that is gone: what uses such a file is refused as well. Entries and
// servers stay as they are.
func (s Set) Without(out func(owner string) bool) (rest Set, further []string) {
	rest = s
	rest.Sections = nil
	for _, section := range s.Sections {
		if section, some := section.without(out); some {
			rest.Sections = append(rest.Sections, section)
		}
	}
	rest.Assets, further = assetsWithout(s.Assets, out)
	return rest, append(further, rest.orphans(s.Assets)...)
}

// orphans are the owners of lines that name an asset which was in a set of them and is not in this one.
func (s Set) orphans(before table.Table[Asset]) []string {
	gone := map[string]bool{}
	for change := range s.Assets.Diff(before) {
		if !change.HasNew {
			gone[change.Key] = true
		}
	}
	var owners []string
	for _, section := range s.Sections {
		number := 0
		for line := range strings.Lines(section.text()) {
			if owner := section.Owners[number]; len(gone) > 0 && owner != "" && namesAny(line, gone) {
				owners = append(owners, owner)
			}
			number++
		}
	}
	return owners
}

func namesAny(line string, names map[string]bool) bool {
	return slices.ContainsFunc(unquoted(line), func(word string) bool { return names[word] })
}

func (s Section) without(out func(owner string) bool) (Section, bool) {
	goes := false
	for _, owner := range s.Owners {
		goes = goes || out(owner)
	}
	if !goes {
		return s, true
	}
	rest := Section{Name: s.Name, Slot: s.Slot, Owners: map[int]string{}}
	var text strings.Builder
	number, kept, begun := 0, 0, false
	for line := range strings.Lines(s.text()) {
		owner, owned := s.Owners[number]
		number++
		stays := !owned || !out(owner)
		if !begun && isStatement(line) {
			if begun = true; !stays {
				return Section{}, false
			}
		}
		if !stays {
			continue
		}
		text.WriteString(line)
		if owned {
			rest.Owners[kept] = owner
		}
		kept++
	}
	rest.Text = text.String()
	return rest, true
}

// isStatement tells a line that HAProxy reads from a blank one and a comment.
func isStatement(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}

func assetsWithout(assets table.Table[Asset], out func(owner string) bool) (rest table.Table[Asset], further []string) {
	edit := assets.Edit()
	gone := map[string]bool{}
	for _, e := range assets.Sorted() {
		if e.Value.Owner != "" && out(e.Value.Owner) {
			edit.Delete(e.Key)
			gone[e.Key] = true
		}
	}
	if len(gone) == 0 {
		return assets, nil
	}
	rest = edit.Table()
	edit = rest.Edit()
	for _, e := range rest.Sorted() {
		if e.Value.Secret {
			continue
		}
		text, cut, left := linesWithout(e.Value.Text, gone)
		if !cut {
			continue
		}
		if !left && e.Value.Owner != "" {
			further = append(further, e.Value.Owner)
		}
		e.Value.Text = text
		edit.Set(e.Key, e.Value)
	}
	return edit.Table(), further
}

// linesWithout cuts the lines that begin with the name of an asset that is gone. It tells whether it cut any, and whether
// a statement is left.
func linesWithout(text string, gone map[string]bool) (rest string, cut, left bool) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && gone[words[0]] {
			cut = true
			continue
		}
		left = left || isStatement(line)
		b.WriteString(line)
	}
	return b.String(), cut, left
}

// Mentioned returns the names of the assets that words about a line of haproxy.cfg mention between quotes and that the
// line leads to: words may also quote what somebody wrote to blame another. Of a list and the certificate in it, the
// certificate is meant.
func (s Set) Mentioned(words string, line int) []string {
	led := s.ledTo(line)
	var names []string
	for _, part := range quoted(words) {
		if led[part] && !slices.Contains(names, part) {
			names = append(names, part)
		}
	}
	var meant []string
	for _, name := range names {
		if asset, _ := s.Assets.Get(name); !leadsToAny(asset, names) {
			meant = append(meant, name)
		}
	}
	return meant
}

// ledTo are the assets that a line of haproxy.cfg names, and those that they name in turn.
func (s Set) ledTo(line int) map[string]bool {
	led := map[string]bool{}
	for _, word := range unquoted(s.line(line - 1)) {
		asset, is := s.Assets.Get(word)
		if !is {
			continue
		}
		led[word] = true
		if asset.Secret {
			continue
		}
		for text := range strings.Lines(asset.Text) {
			if words := strings.Fields(text); len(words) > 0 {
				if _, is := s.Assets.Get(words[0]); is {
					led[words[0]] = true
				}
			}
		}
	}
	return led
}

// line is a line of haproxy.cfg, counted from 0; "" if there is none.
func (s Set) line(number int) string {
	text, _ := s.configText()
	for line := range strings.Lines(text) {
		if number == 0 {
			return line
		}
		number--
	}
	return ""
}

// OwnerOfMentioned returns the owner of the section whose name is the first that words have between quotes: HAProxy says
// "Proxy 'name': what is wrong".
func (s Set) OwnerOfMentioned(words string) string {
	parts := quoted(words)
	if len(parts) == 0 {
		return ""
	}
	for _, section := range s.Sections {
		if words := strings.Fields(section.Name); len(words) > 1 && words[1] == parts[0] {
			return section.owner()
		}
	}
	return ""
}

// owner is that of a section's first statement.
func (s Section) owner() string {
	number := 0
	for line := range strings.Lines(s.text()) {
		if isStatement(line) {
			return s.Owners[number]
		}
		number++
	}
	return ""
}

func quoted(text string) []string {
	var parts []string
	for i, part := range strings.Split(text, "'") {
		if i%2 == 1 {
			parts = append(parts, part)
		}
	}
	return parts
}

func leadsToAny(asset Asset, names []string) bool {
	if asset.Secret {
		return false
	}
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	_, leads, _ := linesWithout(asset.Text, gone)
	return leads
}
