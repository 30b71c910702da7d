package files

import (
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/internal/table"
)

// The files of a generation that have their own names; assets have theirs, maps are in MapFolder.
const (
	// ConfigFile holds the sections.
	ConfigFile = "haproxy.cfg"
	// KeysFile is an asset that HAProxy reads as configuration: key material is apart, so that the rest can be shown.
	KeysFile = "keys.cfg"
	// numberFile tells the running HAProxy which generation it is.
	numberFile = "generation.cfg"
	// indexFile holds what the other files do not say: names and owners.
	indexFile = "index.json"
)

// ConfigFiles are what HAProxy reads as configuration, in this order.
func ConfigFiles() []string { return []string{ConfigFile, KeysFile, numberFile} }

// GenerationVariable is HAProxy's variable that holds the number of the generation it runs.
const GenerationVariable = "proc.limpet_generation"

// configText is haproxy.cfg: the sections, and in each slot its servers in the order of their names.
func (s Set) configText() (string, []Fault) {
	var text strings.Builder
	servers, faults := s.serversBySlot()
	for _, section := range s.Sections {
		text.WriteString(section.text())
		if section.Slot == "" {
			continue
		}
		for _, server := range servers[section.Slot] {
			text.WriteString(server.Line())
		}
	}
	return text.String(), faults
}

func (s Set) serversBySlot() (map[string][]Server, []Fault) {
	bySlot := map[string][]Server{}
	var faults []Fault
	for _, e := range s.Servers.Sorted() {
		if err := e.Value.Check(); err != nil {
			faults = append(faults, Fault{e.Value.Owner, err.Error()})
			continue
		}
		bySlot[e.Value.Slot] = append(bySlot[e.Value.Slot], e.Value)
	}
	return bySlot, faults
}

// text ends every line, so that what follows is a line of its own.
func (s Section) text() string {
	if s.Text == "" || strings.HasSuffix(s.Text, "\n") {
		return s.Text
	}
	return s.Text + "\n"
}

// Owner tells whose fault a line of a file is, counted from 1; "" is Limpet's own.
func (s Set) Owner(file string, line int) string {
	if file == ConfigFile {
		return s.ownerInConfig(line - 1)
	}
	if asset, found := s.Assets.Get(file); found {
		return asset.Owner
	}
	if name, found := strings.CutPrefix(file, MapFolder+"/"); found {
		return s.ownerInMap(name, line-1)
	}
	return ""
}

func (s Set) ownerInConfig(line int) string {
	servers, _ := s.serversBySlot()
	for _, section := range s.Sections {
		lines := strings.Count(section.text(), "\n")
		if line < lines {
			return section.Owners[line]
		}
		line -= lines
		if section.Slot == "" {
			continue
		}
		if line < len(servers[section.Slot]) {
			return servers[section.Slot][line].Owner
		}
		line -= len(servers[section.Slot])
	}
	return ""
}

func (s Set) ownerInMap(name string, line int) string {
	entries := slices.DeleteFunc(s.Maps[name].Sorted(), func(e table.Entry[Entry]) bool { return CheckEntry(e.Key, e.Value.Value) != nil })
	if line < 0 || line >= len(entries) {
		return ""
	}
	return entries[line].Value.Owner
}
