package dataplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// reloadReasons says which sections and maps differ between two sets: HAProxy reads them only when it starts.
func reloadReasons(running, wanted files.Set) []string {
	return append(sectionReasons(running.Sections, wanted.Sections), mapReasons(running, wanted)...)
}

func sectionReasons(running, wanted []files.Section) []string {
	if sameSlice(running, wanted) {
		return nil
	}
	was, slotsBefore := byName(running)
	is, slotsNow := byName(wanted)
	var reasons []string
	for _, section := range wanted {
		old, there := was[section.Name]
		switch {
		case !there && section.Slot == "":
			reasons = append(reasons, describe(section)+" added")
		case there && old.Text != section.Text:
			reasons = append(reasons, describe(section)+" changed")
		}
	}
	for _, section := range running {
		if _, stays := is[section.Name]; !stays && section.Slot == "" {
			reasons = append(reasons, describe(section)+" removed")
		}
	}
	if slotsBefore != slotsNow {
		reasons = append(reasons, fmt.Sprintf("%d slots instead of %d", slotsNow, slotsBefore))
	}
	if len(reasons) == 0 && !slices.EqualFunc(running, wanted, func(a, b files.Section) bool { return a.Text == b.Text }) {
		reasons = append(reasons, "the order of the sections changed")
	}
	return summarize(reasons)
}

// sameSlice tells, without looking at it, that nothing changed.
func sameSlice(a, b []files.Section) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func byName(sections []files.Section) (named map[string]files.Section, slots int) {
	named = make(map[string]files.Section, len(sections))
	for _, section := range sections {
		named[section.Name] = section
		if section.Slot != "" {
			slots++
		}
	}
	return named, slots
}

// describe names a section as people know it.
func describe(section files.Section) string {
	for _, line := range slices.Sorted(maps.Keys(section.Owners)) {
		if owner := section.Owners[line]; owner != "" {
			return section.Name + " of " + owner
		}
	}
	return section.Name
}

func mapReasons(running, wanted files.Set) []string {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(wanted.Maps)) {
		if _, there := running.Maps[name]; !there {
			reasons = append(reasons, "map "+name+" added")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(running.Maps)) {
		if _, stays := wanted.Maps[name]; !stays {
			reasons = append(reasons, "map "+name+" removed")
		}
	}
	return reasons
}

// summarize keeps a log line short.
func summarize(reasons []string) []string {
	const enough = 10
	if more := len(reasons) - enough; more > 0 {
		return append(slices.Clone(reasons[:enough]), fmt.Sprintf("and %d more", more))
	}
	return reasons
}

// joined is for messages.
func joined(reasons []string) string { return strings.Join(reasons, ", ") }
