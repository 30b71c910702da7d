package dataplane

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/table"
)

// leaveOuts keeps apart what HAProxy cannot have: entries and servers that cannot be written, and everything of owners
// whose lines it refused. An owner is refused until one of its fragments changes. What changes costs what it touches.
type leaveOuts struct {
	raw     files.Set                         // as it was rendered
	refused map[string]refusal                // by owner
	hidden  map[string]map[string]string      // owners of fragments that belong to somebody refused, by map and key
	bad     map[string]map[string]files.Fault // what cannot be written, by map and key
	users   map[string]map[string]bool        // keys of the servers that name an asset
	served  *files.Set                        // what HAProxy has, nil if nothing
	trimmed trimmed
}

// trimmed is the raw set's sections and assets without those that are refused: they are cut once, not at every change.
type trimmed struct {
	from, to files.Set
	valid    bool
}

// refusal is why an owner is left out.
type refusal struct {
	words     string
	signature string           // of what HAProxy read of it
	loading   bool             // it was refused when it was loaded, and not when it was checked: it may heal by itself
	because   string           // of another owner, without whom nothing is left of it
	waits     []netip.AddrPort // to be free: then it heals
	after     time.Time        // not to be tried again before
	// keeps are the last good versions of the assets that are all it has: they stay in place of those that were refused.
	keeps map[string]files.Asset
}

// serversPlace stands for the servers where places are named by map.
const serversPlace = "servers"

// update takes a newly rendered set.
func (l *leaveOuts) update(raw files.Set) {
	was := l.raw
	l.raw = raw
	lifted := map[string]bool{}
	touch := func(place, key string, owners ...string) {
		delete(l.bad[place], key)
		for _, owner := range owners {
			if _, is := l.refused[owner]; is {
				lifted[owner] = true
			}
		}
	}
	for name, entries := range raw.Maps {
		for change := range entries.Diff(was.Maps[name]) {
			touch(name, change.Key, change.Old.Owner, change.New.Owner)
			if change.HasNew {
				l.judge(name, change.Key, change.New.Owner, files.CheckEntry(change.Key, change.New.Value))
			}
		}
	}
	for change := range raw.Servers.Diff(was.Servers) {
		touch(serversPlace, change.Key, change.Old.Owner, change.New.Owner)
		l.use(change)
		if change.HasNew {
			l.judge(serversPlace, change.Key, change.New.Owner, change.New.Check())
		}
	}
	for owner, refusal := range l.refused {
		if lifted[owner] || refusal.signature != signature(raw, owner) {
			l.restore(owner)
		}
	}
}

// use notes which servers name which assets.
func (l *leaveOuts) use(change table.Change[files.Server]) {
	if change.HadOld {
		for _, name := range change.Old.Files() {
			delete(l.users[name], change.Key)
		}
	}
	if !change.HasNew {
		return
	}
	for _, name := range change.New.Files() {
		if l.users == nil {
			l.users = map[string]map[string]bool{}
		}
		if l.users[name] == nil {
			l.users[name] = map[string]bool{}
		}
		l.users[name][change.Key] = true
	}
}

func (l *leaveOuts) judge(place, key, owner string, err error) {
	if err == nil {
		return
	}
	if l.bad == nil {
		l.bad = map[string]map[string]files.Fault{}
	}
	if l.bad[place] == nil {
		l.bad[place] = map[string]files.Fault{}
	}
	l.bad[place][key] = files.Fault{Owner: owner, Message: fmt.Sprintf("%s: %v", place, err)}
}

// refuse leaves an owner out for what HAProxy says.
func (l *leaveOuts) refuse(owner, words string, loading bool) {
	l.leave(owner, refusal{words: clip(words), loading: loading})
}

// leave leaves an owner out, and those of whose files nothing is left then.
func (l *leaveOuts) leave(owner string, why refusal) {
	if why.keeps = l.lastGood(owner); why.keeps != nil {
		why.words = clip(why.words + " (the last good one stays)")
	}
	l.note(owner, why)
	for _, other := range l.emptied() {
		words := fmt.Sprintf("nothing is left of it without %s: %s", owner, why.words)
		l.note(other, refusal{words: words, loading: why.loading, because: owner})
	}
}

func (l *leaveOuts) note(owner string, why refusal) {
	if l.refused == nil {
		l.refused, l.hidden = map[string]refusal{}, map[string]map[string]string{}
	}
	l.trimmed.valid = false
	why.signature = signature(l.raw, owner)
	l.refused[owner] = why
	if why.keeps != nil {
		return
	}
	for name, entries := range l.raw.Maps {
		for change := range entries.Diff(table.Table[files.Entry]{}) {
			l.hide(name, change.Key, change.New.Owner, owner)
		}
	}
	for change := range l.raw.Servers.Diff(table.Table[files.Server]{}) {
		l.hide(serversPlace, change.Key, change.New.Owner, owner)
	}
}

// lastGood are the versions that HAProxy has of an owner's assets, if they are all that there is of it, and others than
// those that are refused.
func (l *leaveOuts) lastGood(owner string) map[string]files.Asset {
	if l.served == nil || l.refused[owner].keeps != nil {
		return nil
	}
	for _, section := range l.raw.Sections {
		for _, other := range section.Owners {
			if other == owner {
				return nil
			}
		}
	}
	good := map[string]files.Asset{}
	differs := false
	for change := range l.raw.Assets.Diff(table.Table[files.Asset]{}) {
		if change.New.Owner != owner {
			continue
		}
		asset, had := l.served.Assets.Get(change.Key)
		if !had {
			return nil
		}
		good[change.Key] = asset
		differs = differs || asset.Text != change.New.Text
	}
	if !differs {
		return nil
	}
	return good
}

// emptied are owners that are not refused, and of whose files nothing is left.
func (l *leaveOuts) emptied() []string {
	_, owners := l.raw.Without(l.isCut)
	return slices.DeleteFunc(owners, l.isRefused)
}

// clip keeps words fit for a condition, however many complaints HAProxy has.
func clip(words string) string {
	const enough = 1000
	if len(words) > enough {
		return strings.ToValidUTF8(words[:enough], "") + "…"
	}
	return words
}

func (l *leaveOuts) hide(place, key, owner, refused string) {
	if owner != refused {
		return
	}
	if l.hidden[place] == nil {
		l.hidden[place] = map[string]string{}
	}
	l.hidden[place][key] = owner
}

// restore takes an owner in again, and those who were left out because of it.
func (l *leaveOuts) restore(owner string) {
	delete(l.refused, owner)
	for other, refusal := range l.refused {
		if refusal.because == owner {
			l.restore(other)
		}
	}
	l.trimmed.valid = false
	for place := range l.hidden {
		maps.DeleteFunc(l.hidden[place], func(_, hidden string) bool { return hidden == owner })
	}
}

// set is the rendered one without what is left out.
func (l *leaveOuts) set() files.Set {
	rest := l.raw
	if len(l.refused) > 0 {
		cut := l.trim()
		rest.Sections, rest.Assets = cut.Sections, cut.Assets
	}
	rest.Maps = maps.Clone(rest.Maps)
	for name, entries := range rest.Maps {
		rest.Maps[name] = lessThan(entries, l.hidden[name], l.bad[name])
	}
	rest.Servers = l.servers(rest)
	return rest
}

// servers are those that can be: without a file that they name, they cannot.
func (l *leaveOuts) servers(rest files.Set) table.Table[files.Server] {
	servers := lessThan(rest.Servers, l.hidden[serversPlace], l.bad[serversPlace])
	if len(l.refused) == 0 || rest.Assets.Same(l.raw.Assets) {
		return servers
	}
	edit := servers.Edit()
	for name, keys := range l.users {
		if _, there := rest.Assets.Get(name); there {
			continue
		}
		for key := range keys {
			edit.Delete(key)
		}
	}
	return edit.Table()
}

func (l *leaveOuts) trim() files.Set {
	from := &l.trimmed.from
	if !l.trimmed.valid || !sameSlice(from.Sections, l.raw.Sections) || !from.Assets.Same(l.raw.Assets) {
		cut, _ := l.withLastGood().Without(l.isCut)
		l.trimmed = trimmed{from: l.raw, to: cut, valid: true}
	}
	return l.trimmed.to
}

// withLastGood is the rendered set with the assets that stay as they were.
func (l *leaveOuts) withLastGood() files.Set {
	set := l.raw
	edit := set.Assets.Edit()
	for _, refusal := range l.refused {
		for name, asset := range refusal.keeps {
			edit.Set(name, asset)
		}
	}
	set.Assets = edit.Table()
	return set
}

// isCut tells an owner of whom nothing stays.
func (l *leaveOuts) isCut(owner string) bool {
	refusal, is := l.refused[owner]
	return is && refusal.keeps == nil
}

func (l *leaveOuts) isRefused(owner string) bool {
	_, is := l.refused[owner]
	return is
}

func lessThan[V comparable](entries table.Table[V], hidden map[string]string, bad map[string]files.Fault) table.Table[V] {
	if len(hidden)+len(bad) == 0 {
		return entries
	}
	edit := entries.Edit()
	for key := range hidden {
		edit.Delete(key)
	}
	for key := range bad {
		edit.Delete(key)
	}
	return edit.Table()
}

// words says by owner why it, or some of it, is left out.
func (l *leaveOuts) words() map[string]string {
	all := map[string]string{}
	for owner, refusal := range l.refused {
		all[owner] = refusal.words
	}
	more := map[string]int{}
	for _, place := range slices.Sorted(maps.Keys(l.bad)) {
		for _, key := range slices.Sorted(maps.Keys(l.bad[place])) {
			fault := l.bad[place][key]
			if _, said := all[fault.Owner]; said {
				more[fault.Owner]++
				continue
			}
			all[fault.Owner] = fault.Message
		}
	}
	for owner, count := range more {
		all[owner] += fmt.Sprintf(" (and %d more)", count)
	}
	return all
}

// signature is a hash of all that HAProxy reads of an owner when it starts.
func signature(set files.Set, owner string) string {
	hash := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			_, _ = io.WriteString(hash, fmt.Sprintf("%d:%s", len(part), part))
		}
	}
	for _, section := range set.Sections {
		for _, line := range slices.Sorted(maps.Keys(section.Owners)) {
			if section.Owners[line] == owner {
				add(section.Name, lineOf(section.Text, line))
			}
		}
	}
	for _, asset := range set.Assets.Sorted() {
		if asset.Value.Owner == owner {
			add(asset.Key, asset.Value.Text)
		}
	}
	return string(hash.Sum(nil))
}

func lineOf(text string, number int) string {
	for line := range strings.Lines(text) {
		if number == 0 {
			return line
		}
		number--
	}
	return ""
}
