package templates

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// The map files.
const (
	hostsMap      = "hosts.map"
	parentsMap    = "parents.map"
	pathsMap      = "paths.map"
	candidatesMap = "candidates.map"
	rulesMap      = "rules.map"
	splitsMap     = "splits.map"
	filtersMap    = "filters.map"
	sessionsMap   = "sessions.map"
	sniMap        = "sni.map"
	// labelsMap is there where an access log is wanted.
	labelsMap = "labels.map"
)

var mapNames = []string{
	hostsMap, parentsMap, pathsMap, candidatesMap, rulesMap, splitsMap, filtersMap, sessionsMap,
}

// line is one line of a map file.
type line struct {
	file, key string
	entry     files.Entry
}

// data is everything that is changed at run time. It is immutable.
type data struct {
	// labelled says that it has what an access log needs.
	labelled bool
	// originator is the socket of the TLS originator.
	originator string
	maps       map[string]table.Table[files.Entry]
	servers    table.Table[files.Server]
	faults     map[string]Fault
	// origins are the backends that the originator speaks to, by the name of their settings; outside those that DNS finds.
	origins map[string]*model.Backend
	outside map[string]bool
}

// update gives the data for what is now, from d, the data for what was.
func (d *data) update(was, is state) *data {
	e := newDataEditor(d)
	expand(e, is.config.Hosts, was.config.Hosts, hostLines, hostLines)
	expand(e, is.config.Parents, was.config.Parents, parentLines, parentLines)
	expand(e, is.config.Paths, was.config.Paths, pathLinesAt(is.place), pathLinesAt(was.place))
	expand(e, is.config.Rules, was.config.Rules, e.ruleLinesAt(is.place), e.ruleLinesAt(was.place))
	e.backends(was, is)
	return e.data()
}

// state is a configuration with the slots of its backends.
type state struct {
	config model.Config
	place  placement.Placement
}

func (d *data) withSNI(sni table.Table[files.Entry]) map[string]table.Table[files.Entry] {
	all := maps.Clone(d.maps)
	all[sniMap] = sni
	return all
}

func (d *data) sortedFaults() []Fault {
	return slices.SortedFunc(maps.Values(d.faults), func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Message, b.Message))
	})
}

type dataEditor struct {
	labelled   bool
	originator string
	maps       map[string]*table.Editor[files.Entry]
	all        *table.Editor[files.Server]
	faults     map[string]Fault
	origins    map[string]*model.Backend
	outside    map[string]bool
}

func newDataEditor(d *data) *dataEditor {
	e := &dataEditor{
		labelled: d.labelled, originator: d.originator, maps: map[string]*table.Editor[files.Entry]{}, all: d.servers.Edit(),
		faults: cloned(d.faults), origins: cloned(d.origins), outside: cloned(d.outside),
	}
	for _, name := range mapNames {
		e.maps[name] = d.maps[name].Edit()
	}
	if d.labelled {
		e.maps[labelsMap] = d.maps[labelsMap].Edit()
	}
	return e
}

// cloned is a copy that can be written to.
func cloned[V any](of map[string]V) map[string]V {
	copied := make(map[string]V, len(of))
	maps.Copy(copied, of)
	return copied
}

func (e *dataEditor) data() *data {
	d := &data{
		labelled: e.labelled, originator: e.originator, maps: map[string]table.Table[files.Entry]{}, servers: e.all.Table(),
		faults: e.faults, origins: e.origins, outside: e.outside,
	}
	for name, edit := range e.maps {
		d.maps[name] = edit.Table()
	}
	return d
}

func pathLinesAt(place placement.Placement) func(string, *model.Path) ([]line, error) {
	return func(key string, path *model.Path) ([]line, error) { return pathLines(key, path, place) }
}

func (e *dataEditor) ruleLinesAt(place placement.Placement) func(string, *model.Rule) ([]line, error) {
	return func(_ string, rule *model.Rule) ([]line, error) {
		lines, err := ruleLines(rule, place)
		if e.labelled {
			lines = append(lines, ruleLabel(rule))
		}
		return lines, err
	}
}

// expand brings the lines of one of the model's tables up to date: an entry's lines are a function of the entry and of the
// slots at its time, so the old entry's are known without having been kept. What is gone leaves first, because a new entry
// may take its key.
func expand[V comparable](e *dataEditor, is, was table.Table[V], lines, oldLines func(string, V) ([]line, error)) {
	changes := slices.Collect(is.Diff(was))
	for _, change := range changes {
		if !change.HadOld {
			continue
		}
		old, _ := oldLines(change.Key, change.Old)
		for _, l := range old {
			e.maps[l.file].Delete(l.key)
		}
	}
	for _, change := range changes {
		id := fmt.Sprintf("%T %s", change.New, change.Key)
		delete(e.faults, id)
		if !change.HasNew {
			continue
		}
		fresh, err := lines(change.Key, change.New)
		if err != nil {
			e.faults[id] = Fault{ownerOf(change.New), err.Error()}
			continue
		}
		for _, l := range fresh {
			e.maps[l.file].Set(l.key, l.entry)
		}
	}
}

func ownerOf(entry any) model.Owner {
	switch entry := entry.(type) {
	case *model.Host:
		return entry.Owner
	case *model.Parent:
		return entry.Owner
	case *model.Path:
		return entry.Owner
	case *model.Rule:
		return entry.Owner
	}
	return ""
}

// backends brings the servers up to date. A backend that is gone is looked up where it was.
func (e *dataEditor) backends(was, is state) {
	changes := slices.Collect(is.config.Backends.Diff(was.config.Backends))
	for _, change := range changes {
		if slot, placed := was.place.Slot(change.Key); placed && change.HadOld {
			e.removeBackend(slot, change.Old)
		}
	}
	for _, change := range changes {
		if slot, placed := is.place.Slot(change.Key); placed && change.HasNew {
			e.addBackend(slot, change.New)
		}
	}
}

func (e *dataEditor) removeBackend(slot string, backend *model.Backend) {
	servers, _ := e.servers(slot, backend)
	for _, s := range servers {
		e.all.Delete(files.ServerKey(slot, s.Name))
	}
	delete(e.faults, "servers "+backend.Name)
	delete(e.origins, originID(backend))
	delete(e.outside, backend.Name)
	e.label(slot, backend, false)
}

func (e *dataEditor) addBackend(slot string, backend *model.Backend) {
	servers, err := e.servers(slot, backend)
	if err != nil {
		e.faults["servers "+backend.Name] = Fault{backend.Owner, err.Error()}
	}
	for _, s := range servers {
		e.all.Set(files.ServerKey(slot, s.Name), s)
	}
	switch {
	case backend.External != "":
		e.outside[backend.Name] = true
	case backend.TLS != nil && len(backend.TLS.SubjectAltNames) > 0:
		e.origins[originID(backend)] = backend
	}
	e.label(slot, backend, true)
}

// label writes or removes the labels of a backend and its endpoints.
func (e *dataEditor) label(slot string, backend *model.Backend, set bool) {
	if !e.labelled {
		return
	}
	for _, l := range backendLabels(slot, backend) {
		if set {
			e.maps[labelsMap].Set(l.key, l.entry)
		} else {
			e.maps[labelsMap].Delete(l.key)
		}
	}
}
