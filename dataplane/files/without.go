package files

import (
	"strings"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Without returns the set without the sections' lines and the assets of some owners. A section whose first line goes
// goes as a whole, and with an asset the lines of others that begin with its name. Further are the owners of assets of
// which nothing is left then: what uses such a file is refused as well. Entries and servers stay as they are.
func (s Set) Without(out func(owner string) bool) (rest Set, further []string) {
	rest = s
	rest.Sections = nil
	for _, section := range s.Sections {
		if section, some := section.without(out); some {
			rest.Sections = append(rest.Sections, section)
		}
	}
	rest.Assets, further = assetsWithout(s.Assets, out)
	return rest, further
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

// Mentioned returns the names of the assets that a text mentions between quotes, without those that only lead to others
// of them: of a list and the certificate in it, HAProxy's words mean the certificate.
func (s Set) Mentioned(text string) []string {
	var names []string
	for i, part := range strings.Split(text, "'") {
		if _, is := s.Assets.Get(part); is && i%2 == 1 {
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
