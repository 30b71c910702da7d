package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// assetPlan is what the assets that differ lead to. What servers and lists name comes before them and goes after.
type assetPlan struct {
	put, list, unlist, remove []Step
	reasons                   []string
	// authorities are the CA bundles, and settings of the TLS originator, whose content differs.
	authorities []string
}

func planAssets(running, wanted files.Set) assetPlan {
	var p assetPlan
	for _, change := range wanted.Assets.Changes(running.Assets) {
		if !change.HadOld || !change.HasNew || change.Old.Text != change.New.Text {
			p.add(running, change)
		}
	}
	p.reasons = summarize(p.reasons)
	return p
}

func (p *assetPlan) add(running files.Set, change table.Change[files.Asset]) {
	step := Step{Name: change.Key, Asset: change.New}
	reason := ""
	switch folder := files.FolderOf(change.Key); {
	case folder == files.ListFolder && change.HadOld && change.HasNew:
		reason = p.addList(change)
	case folder == "", folder == files.ListFolder:
		reason = describeChange(change)
	case !change.HasNew:
		step.Action, step.Asset = RemoveAsset, change.Old
		p.remove = append(p.remove, step)
	default:
		if reason = keptBack(running, change); reason == "" {
			step.Action = PutAsset
			p.put = append(p.put, step)
		}
		if change.HadOld && folder != files.CertificateFolder {
			p.authorities = append(p.authorities, change.Key)
		}
	}
	if reason != "" {
		p.reasons = append(p.reasons, reason)
	}
}

// keptBack says why new content cannot go live by commands.
func keptBack(running files.Set, change table.Change[files.Asset]) string {
	folder := files.FolderOf(change.Key)
	if folder == files.OriginFolder {
		return ""
	}
	if _, err := haproxy.Pieces(change.Key, change.New.Text); errors.Is(err, haproxy.ErrTooLong) {
		return describeChange(change) + ", and is longer than a command"
	}
	// HAProxy resumes sessions of clients without looking at their certificates again, and a client of TLS 1.3 can do so
	// for ever: only a new worker has forgotten them (docs/decisions/0017).
	lines := running.Naming(change.Key)
	if folder != files.CAFolder || !change.HadOld || len(lines) == 0 {
		return ""
	}
	if !haproxy.Extends(change.New.Text, change.Old.Text) && !forgetful(running) {
		return describeAsset(change.Key, change.New) + " lost a CA, whose clients would resume their sessions"
	}
	// What a bind tells clients of its CAs, by which they choose their certificates, stays as it was when it was made.
	for _, line := range lines {
		if !slices.Contains(strings.Fields(line), "no-ca-names") {
			return describeChange(change) + ", and clients are told the names of its CAs"
		}
	}
	return ""
}

// forgetful tells a configuration that resumes no session.
func forgetful(running files.Set) bool {
	for _, line := range running.Naming("tune.ssl.cachesize") {
		if words := strings.Fields(line); len(words) == 2 && words[1] == "0" {
			return true
		}
	}
	return false
}

// addList compares two versions of a crt-list. Commands add lines at its end and remove any but the first, whose
// certificate is the default one.
func (p *assetPlan) addList(change table.Change[files.Asset]) (reason string) {
	was, is := files.ListLines(change.Old.Text), files.ListLines(change.New.Text)
	what := describeAsset(change.Key, change.New)
	if len(was) == 0 || len(is) == 0 || was[0] != is[0] {
		return what + ": its first certificate changed"
	}
	stay := slices.DeleteFunc(slices.Clone(was), func(line string) bool { return !slices.Contains(is, line) })
	if len(stay) > len(is) || !slices.Equal(stay, is[:len(stay)]) {
		return what + ": its order changed"
	}
	if repeats(was) || repeats(is) {
		return what + ": it names a certificate twice"
	}
	for _, line := range is[len(stay):] {
		p.list = append(p.list, Step{Action: ListCertificate, Name: change.Key, Line: line, Asset: change.New})
	}
	for _, line := range was {
		if !slices.Contains(stay, line) {
			p.unlist = append(p.unlist, Step{Action: UnlistCertificate, Name: change.Key, Line: line, Asset: change.New})
		}
	}
	return ""
}

// repeats tells whether lines name a certificate twice: commands know lines by it.
func repeats(lines []string) bool {
	seen := map[string]bool{}
	for _, line := range lines {
		name := files.ListedCertificate(line)
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func describeChange(change table.Change[files.Asset]) string {
	switch {
	case !change.HadOld:
		return describeAsset(change.Key, change.New) + " added"
	case !change.HasNew:
		return describeAsset(change.Key, change.Old) + " removed"
	}
	return describeAsset(change.Key, change.New) + " changed"
}

// describeAsset names an asset as people know it.
func describeAsset(name string, asset files.Asset) string {
	kind := "file " + name
	switch folder := files.FolderOf(name); {
	case name == files.KeysFile:
		kind = "the keys"
	case folder == files.CertificateFolder:
		kind = "certificate " + name
	case folder == files.CAFolder:
		kind = "CA bundle " + name
	}
	if asset.Owner != "" {
		kind = fmt.Sprintf("%s of %s", kind, asset.Owner)
	}
	return kind
}

// renewed says of the servers that stay as they are which have to be made anew, by slot: HAProxy gives a server its CA
// bundle when it makes it, and what was accepted before is in its pool of connections.
func renewed(running, wanted files.Set, authorities []string, moves map[string]string) {
	if len(authorities) == 0 {
		return
	}
	for change := range wanted.Servers.Diff(table.Table[files.Server]{}) {
		is := change.New
		was, there := running.Servers.Get(change.Key)
		if !there || was.Options != is.Options {
			continue
		}
		for _, name := range is.Files() {
			if slices.Contains(authorities, name) {
				asset, _ := wanted.Assets.Get(name)
				moves[is.Slot] = describeAsset(name, asset) + " changed"
			}
		}
	}
}
