package dataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// liveFiles is what is known of the certificates and CA bundles that the worker has, beyond what the running set says.
type liveFiles struct {
	loaded  map[string]bool    // names; nil when it was not asked yet
	doubted map[string]bool    // that differ from what the running set says: they are given again
	unused  map[string]*leaver // that nothing wants any more; they go when nothing uses them
}

// refusedAssetError says that HAProxy refused an asset at run time, and that its owner was left out.
type refusedAssetError struct {
	owner string
	cause error
}

func (e *refusedAssetError) Error() string {
	return fmt.Sprintf("%s was left out: %v", e.owner, e.cause)
}

func isLeftOut(err error) bool {
	var refused *refusedAssetError
	return errors.As(err, &refused)
}

// diff is Diff, and what is given again because it is doubted.
func (d *driver) diff(wanted files.Set) Plan {
	plan := Diff(d.running, wanted)
	if len(plan.needs()) > 0 {
		return plan
	}
	var again []Step
	for _, name := range sortedKeys(d.live.doubted) {
		asset, is := wanted.Assets.Get(name)
		if is && !slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Action == PutAsset && s.Name == name }) {
			again = append(again, Step{Action: PutAsset, Name: name, Asset: asset})
		}
	}
	plan.Steps = append(again, plan.Steps...)
	return plan
}

// move gives the backends whose servers must be made anew other slots, and says whether it did: not when there are too few,
// or when a reload is needed anyway.
func (d *driver) move(plan Plan) (bool, error) {
	place, can := d.placement.Moved(plan.Move)
	if !can || !d.given || len(plan.Reload) > 0 {
		return false, nil
	}
	d.logger.Info("servers are made anew in other slots", "slots", len(plan.Move), "reasons", joined(plan.needs()))
	d.placement = place
	d.behind.dirty(time.Now())
	return true, d.renderPlaced()
}

// asset carries out a step that is about an asset.
func (b *batch) asset(ctx context.Context, step Step) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	switch step.Action {
	case PutAsset:
		return b.put(ctx, step.Name, step.Asset)
	case RemoveAsset:
		b.driver.discard(step.Name)
		return nil
	case ListCertificate:
		b.sent++
		name := files.ListedCertificate(step.Line)
		asset, _ := b.driver.running.Assets.Get(name)
		err := b.driver.client.ListCertificate(ctx, step.Name, step.Line)
		if err = b.driver.blameAsset(asset.Owner, err); err == nil {
			b.driver.relist(step, func(lines []string) []string { return append(lines, step.Line) })
		}
		return err
	}
	b.sent++
	err := b.driver.client.Exec(ctx, haproxy.UnlistCertificate(step.Name, files.ListedCertificate(step.Line)))
	if err == nil {
		b.driver.relist(step, func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool { return line == step.Line })
		})
	}
	return err
}

// put gives HAProxy an asset, and then the files: should HAProxy die, it starts with what it had.
func (b *batch) put(ctx context.Context, name string, asset files.Asset) error {
	d := b.driver
	if files.FolderOf(name) != files.OriginFolder {
		b.sent++
		if err := d.blameAsset(asset.Owner, d.client.PutFile(ctx, name, asset.Text)); err != nil {
			return err
		}
		if d.live.loaded != nil {
			d.live.loaded[name] = true
		}
	}
	delete(d.live.unused, name)
	delete(d.live.doubted, name)
	// What is being written behind holds the asset as it was, and must not come after it.
	d.behind.wait(d)
	if err := d.store.PutAsset(d.generation, name, asset); err != nil {
		return err
	}
	edit := d.running.Assets.Edit()
	edit.Set(name, asset)
	d.running.Assets = edit.Table()
	d.behind.dirty(time.Now())
	return nil
}

// blameAsset leaves out the owner of an asset that HAProxy refused.
func (d *driver) blameAsset(owner string, err error) error {
	var rejected *haproxy.RejectedError
	if owner == "" || !errors.As(err, &rejected) {
		return err
	}
	d.leaveOut(owner, rejected.Reply, false)
	return &refusedAssetError{owner, err}
}

// relist notes what a list holds now.
func (d *driver) relist(step Step, change func([]string) []string) {
	was, _ := d.running.Assets.Get(step.Name)
	lines := change(files.ListLines(was.Text))
	edit := d.running.Assets.Edit()
	edit.Set(step.Name, files.Asset{Owner: step.Asset.Owner, Text: strings.Join(lines, "\n") + "\n"})
	d.running.Assets = edit.Table()
}

// load gives HAProxy an asset that a server names and that no line of the files named when the worker started.
func (b *batch) load(ctx context.Context, name string) error {
	d := b.driver
	if d.live.loaded == nil {
		loaded, err := d.client.LoadedFiles(ctx)
		if err != nil {
			return err
		}
		d.live.loaded = loaded
	}
	asset, is := d.running.Assets.Get(name)
	if d.live.loaded[name] || !is || files.FolderOf(name) == files.OriginFolder {
		return nil
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	return b.put(ctx, name, asset)
}

// discard notes that an asset is not wanted any more.
func (d *driver) discard(name string) {
	edit := d.running.Assets.Edit()
	edit.Delete(name)
	d.running.Assets = edit.Table()
	d.unused(name, time.Now())
	// What came and went before the files were brought up to date is in no index that says what to remove.
	d.behind.wait(d)
	if _, known := d.behind.set.Assets.Get(name); known {
		return
	}
	if err := d.store.RemoveAsset(d.generation, name); err != nil {
		d.logger.Warn("a certificate that is not used was not deleted", "error", err)
	}
}

func (d *driver) unused(name string, now time.Time) {
	if files.FolderOf(name) == files.OriginFolder {
		return
	}
	if d.live.unused == nil {
		d.live.unused = map[string]*leaver{}
	}
	d.live.unused[name] = &leaver{pause: firstTry, next: now}
}

// reapFiles deletes what nothing wants, as soon as no server that finishes uses it.
func (d *driver) reapFiles(now time.Time) {
	var due []string
	for name, l := range d.live.unused {
		if !now.Before(l.next) {
			due = append(due, name)
		}
	}
	if len(due) == 0 || !d.known {
		return
	}
	slices.Sort(due)
	commands := make([]haproxy.Command, len(due))
	for i, name := range due {
		commands[i] = haproxy.DelFile(name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	refused, err := d.client.Try(ctx, commands...)
	if err != nil {
		d.logger.Warn("certificates that are not used were not deleted", "error", err)
		d.known = false
		return
	}
	for i, name := range due {
		if l := d.live.unused[name]; refused[i] != nil && !strings.Contains(refused[i].Reply, "doesn't exist") {
			l.pause = min(2*l.pause, slowestTry)
			l.next = now.Add(l.pause)
			continue
		}
		delete(d.live.unused, name)
		delete(d.live.loaded, name)
	}
}

// observeAssets brings the assets of a set to what the worker has. What it has of certificates and CA bundles is only shown
// by fingerprints: those that differ are doubted, and given again.
func (d *driver) observeAssets(ctx context.Context, base files.Set) (table.Table[files.Asset], error) {
	loaded, err := d.client.LoadedFiles(ctx)
	if err != nil {
		return base.Assets, err
	}
	d.live = liveFiles{loaded: loaded}
	for name := range loaded {
		if _, is := base.Assets.Get(name); !is {
			d.unused(name, time.Now())
		}
	}
	if d.live.doubted, err = d.differing(ctx, base.Assets); err != nil {
		return base.Assets, err
	}
	return d.observeLists(ctx, base.Assets)
}

// differing are the certificates and CA bundles that the worker has and that are not those of assets.
func (d *driver) differing(ctx context.Context, assets table.Table[files.Asset]) (map[string]bool, error) {
	var names []string
	for change := range assets.Diff(table.Table[files.Asset]{}) {
		if folder := files.FolderOf(change.Key); folder == files.CertificateFolder || folder == files.CAFolder {
			names = append(names, change.Key)
		}
	}
	prints, err := d.client.Fingerprints(ctx, names)
	if err != nil {
		return nil, err
	}
	differing := map[string]bool{}
	for name, print := range prints {
		if asset, _ := assets.Get(name); haproxy.Fingerprint(name, asset.Text) != print {
			differing[name] = true
		}
	}
	return differing, nil
}

func (d *driver) observeLists(ctx context.Context, assets table.Table[files.Asset]) (table.Table[files.Asset], error) {
	var names []string
	for change := range assets.Diff(table.Table[files.Asset]{}) {
		if files.FolderOf(change.Key) == files.ListFolder {
			names = append(names, change.Key)
		}
	}
	shown, err := d.client.ListedLines(ctx, names)
	if err != nil {
		return assets, err
	}
	edit := assets.Edit()
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if asset, _ := assets.Get(name); !slices.Equal(shown[name], files.ListLines(asset.Text)) {
			asset.Text = strings.Join(shown[name], "\n") + "\n"
			edit.Set(name, asset)
		}
	}
	return edit.Table(), nil
}

// auditAssets says what the worker has otherwise than it was given; "" if nothing.
func (d *driver) auditAssets(ctx context.Context) (string, error) {
	differing, err := d.differing(ctx, d.running.Assets)
	if err != nil || len(differing) > 0 {
		return joined(summarize(sortedKeys(differing))), err
	}
	lists, err := d.observeLists(ctx, d.running.Assets)
	if err != nil {
		return "", err
	}
	for change := range lists.Diff(d.running.Assets) {
		return change.Key, nil
	}
	return "", nil
}
