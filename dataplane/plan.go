package dataplane

import (
	"maps"
	"slices"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/table"
)

// bulk is how many entries of one map are changed one by one; beyond it the map is replaced, which costs what it holds.
const bulk = 2000

// Plan is what turns a running set into a wanted one.
type Plan struct {
	// Reload says in plain words why commands cannot do it; empty means that they can, by Steps.
	Reload []string
	// Move has the slots whose servers must be made anew, and why. HAProxy cannot have two servers of one name in a slot, so
	// they are made in another one; where there is none, this is one more reason for a reload.
	Move map[string]string
	// Steps are in the order in which no request ever meets half of a change: what others lead to comes before what leads
	// to it, and goes after it.
	Steps []Step
}

// Step is one change at run time.
type Step struct {
	Action Action
	// Server is added or removed, or what Was becomes.
	Server, Was files.Server
	// Map is the map's file, Key and Value its entry.
	Map, Key, Value string
	// Content is what a replaced map then holds.
	Content table.Table[files.Entry]
	// Name is the asset's, Asset what it becomes or was, Line a list's.
	Name, Line string
	Asset      files.Asset
}

// Action is what a Step does.
type Action int

// What a Step can do.
const (
	AddServer Action = iota
	ChangeServer
	RemoveServer
	AddEntry
	SetEntry
	RemoveEntry
	ReplaceMap
	PutAsset
	RemoveAsset
	ListCertificate
	UnlistCertificate
)

// mapOrder is the order in which entries are added: from what a request meets last to what it meets first. A map that is
// not in it is led to by others.
var mapOrder = []string{
	"filters.map", "candidates.map", "sessions.map", "splits.map", "rules.map", "parents.map", "paths.map", "hosts.map",
}

// Diff compares two sets. It costs what differs between them.
func Diff(running, wanted files.Set) Plan {
	assets := planAssets(running, wanted)
	servers, moves, resolved := serverSteps(running.Servers, wanted.Servers)
	renewed(running, wanted, assets.authorities, moves)
	if reasons := slices.Concat(reloadReasons(running, wanted), assets.reasons, resolved); len(reasons)+len(moves) > 0 {
		return Plan{Reload: reasons, Move: moves}
	}
	names := orderedMaps(wanted.Maps)
	steps := slices.Concat(assets.put, assets.list, servers.come)
	var gone []Step
	for _, name := range names {
		come, leave := mapSteps(name, running.Maps[name], wanted.Maps[name])
		steps = append(steps, come...)
		gone = append(leave, gone...)
	}
	return Plan{Steps: slices.Concat(steps, gone, servers.leave, assets.unlist, assets.remove)}
}

// needs says why the plan's steps do not do it.
func (p Plan) needs() []string {
	reasons := slices.Clone(p.Reload)
	for _, slot := range slices.Sorted(maps.Keys(p.Move)) {
		if !slices.Contains(reasons, p.Move[slot]) {
			reasons = append(reasons, p.Move[slot])
		}
	}
	return summarize(reasons)
}

// comings are steps that add and change, and steps that remove.
type comings struct{ come, leave []Step }

func serverSteps(running, wanted table.Table[files.Server]) (steps comings, moves map[string]string, reasons []string) {
	moves = map[string]string{}
	for _, change := range wanted.Changes(running) {
		was, is := change.Old, change.New
		switch {
		case (was.Resolved() || is.Resolved()) && !was.CanBecome(is):
			reasons = append(reasons, "server "+change.Key+" is one whose name HAProxy resolves")
		case !change.HadOld:
			steps.come = append(steps.come, Step{Action: AddServer, Server: is})
		case !change.HasNew:
			steps.leave = append(steps.leave, Step{Action: RemoveServer, Server: was})
		case !was.CanBecome(is):
			moves[is.Slot] = "server " + change.Key + " changed what only a new one takes"
		case was.Address != is.Address || was.Weight != is.Weight:
			steps.come = append(steps.come, Step{Action: ChangeServer, Server: is, Was: was})
		}
	}
	return steps, moves, summarize(reasons)
}

func orderedMaps(of map[string]table.Table[files.Entry]) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if byRank := slices.Index(mapOrder, a) - slices.Index(mapOrder, b); byRank != 0 {
			return byRank
		}
		return map[bool]int{true: -1, false: 1}[a < b]
	})
}

// mapSteps are one map's: those that add and change entries, and those that remove some.
func mapSteps(name string, running, wanted table.Table[files.Entry]) (come, leave []Step) {
	for _, change := range wanted.Changes(running) {
		step := Step{Map: name, Key: change.Key, Value: change.New.Value}
		switch {
		case !change.HadOld:
			step.Action = AddEntry
			come = append(come, step)
		case !change.HasNew:
			step.Action = RemoveEntry
			leave = append(leave, step)
		case change.Old.Value != change.New.Value:
			step.Action = SetEntry
			come = append(come, step)
		}
	}
	if len(come) > bulk {
		come = []Step{{Action: ReplaceMap, Map: name, Content: with(running, wanted, come)}}
	}
	if len(leave) > bulk {
		leave = []Step{{Action: ReplaceMap, Map: name, Content: wanted}}
	}
	return come, leave
}

// with is a map after the entries that come have come, and before those that go have gone.
func with(running, wanted table.Table[files.Entry], come []Step) table.Table[files.Entry] {
	edit := running.Edit()
	for _, step := range come {
		entry, _ := wanted.Get(step.Key)
		edit.Set(step.Key, entry)
	}
	return edit.Table()
}
