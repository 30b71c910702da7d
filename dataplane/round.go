package dataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// want notes the newest configuration.
func (d *driver) want(config model.Config) { d.config, d.given = config, true }

// round brings HAProxy to what is wanted. It is not done when a reload has to wait for its time; everything that needs
// none is then served already.
func (d *driver) round(ctx context.Context) (result Result, done bool) {
	err := d.ensure(ctx)
	if err != nil && !isRefused(err) {
		return d.result(Result{Err: err}), true
	}
	if err := d.render(); err != nil {
		return d.result(Result{Err: err}), true
	}
	for {
		wanted := d.left.set()
		d.originate(wanted.Assets)
		plan := d.diff(wanted)
		plan.Reload = append(plan.Reload, d.reasons(err)...)
		if d.generation == 0 {
			plan = Plan{Reload: []string{"there is no configuration yet"}}
		}
		if moved, err := d.move(plan); err != nil {
			return d.result(Result{Err: err}), true
		} else if moved {
			continue
		}
		result.Reasons = plan.needs()
		if len(result.Reasons) == 0 {
			d.same = true
			err := d.runPlan(ctx, plan, wanted, &result)
			if isLeftOut(err) {
				continue // with what is wanted now
			}
			if len(result.Reasons) == 0 {
				result.Err = err
				return d.result(result), true
			}
		}
		if wait := d.ReloadEvery - time.Since(d.reloaded); wait > 0 && d.known {
			count, _ := d.runData(ctx, wanted)
			result.Commands += count
			return result, false
		}
		if !d.leaveOutTaken(wanted) {
			d.reload(ctx, &result)
			return d.result(result), true
		}
	}
}

// runPlan carries out a plan by commands. The result has reasons when a reload is needed all the same.
func (d *driver) runPlan(ctx context.Context, plan Plan, wanted files.Set, result *Result) error {
	count, err := d.run(ctx, plan, wanted)
	result.Commands += count
	var cannot *needsReloadError
	if errors.As(err, &cannot) {
		result.Reasons, err = cannot.reasons, nil
	}
	return err
}

// reasons for a reload that are not differences; refused is why HAProxy did not start, if it did not.
func (d *driver) reasons(refused error) []string {
	reasons := append(slices.Clone(d.doubts), d.placement.MoreThan(d.behind.place)...)
	if d.grow {
		free := d.placement.Capacity - d.placement.Used()
		reasons = append(reasons, fmt.Sprintf("only %d of %d slots are free", free, d.placement.Capacity))
	}
	if refused != nil {
		reasons = append(reasons, fmt.Sprintf("HAProxy did not start with generation %d", d.generation))
	}
	return reasons
}

// ensure makes sure that HAProxy runs, and that it is known what it serves. Where there is nothing to start from yet, it
// does nothing.
func (d *driver) ensure(ctx context.Context) error {
	if d.known && d.process.Alive() {
		return nil
	}
	d.known = false
	if err := d.refusedStart; err != nil {
		d.refusedStart = nil
		return err
	}
	if !d.process.Alive() {
		if _, err := d.process.Find(ctx); err != nil {
			return err
		}
	}
	if d.process.Alive() {
		d.restartedElsewhere()
		err := d.adopt(ctx)
		if err == nil {
			d.process.Reached()
		}
		if !haproxy.IsUnreachable(err) {
			return err
		}
		if d.process.Busy(err) {
			return fmt.Errorf("it is busy, with a reload most likely: %w", err)
		}
		d.logger.Error("HAProxy runs and cannot be reached; it is started anew", "error", err)
	}
	if err := d.startFrom(ctx); err != nil || d.generation == 0 {
		return err
	}
	if wait := time.Until(d.nextStart); wait > 0 {
		return fmt.Errorf("%w: it died, and is started again in %s", haproxy.ErrUnavailable, wait.Round(time.Millisecond))
	}
	return d.restart(ctx)
}

// startFrom finds what HAProxy can start from. One of another container always gets something.
func (d *driver) startFrom(ctx context.Context) error {
	if d.generation == 0 {
		d.loadLast()
	}
	if d.generation == 0 && d.Neighbour {
		return d.first(ctx)
	}
	return nil
}

func (d *driver) adopt(ctx context.Context) error {
	first := d.generation == 0
	if err := d.observeOne(ctx); err != nil {
		return err
	}
	if first {
		d.logger.Info("adopted the running HAProxy", "pid", d.process.PID(), "generation", d.generation)
	}
	d.auditSoon()
	return nil
}

// loadLast reads the last good generation, to start from it.
func (d *driver) loadLast() {
	number := d.store.Proven()
	if number == 0 {
		return
	}
	set, place, err := d.store.Load(number)
	if err != nil {
		d.logger.Error("the last configuration was not read; it starts anew", "error", err)
		return
	}
	d.generation, d.running, d.placement = number, set, place
	d.behind.has(number, set, place)
}

func isRefused(err error) bool {
	var refused *haproxy.RefusedError
	return errors.As(err, &refused)
}

// render makes the set for the newest configuration, or keeps what was loaded before there is any.
func (d *driver) render() error {
	if !d.given {
		d.left.update(d.running)
		return nil
	}
	d.place()
	return d.renderPlaced()
}

func (d *driver) renderPlaced() error {
	raw, faults, err := d.Render(d.config, d.placement)
	if err != nil {
		return fmt.Errorf("dataplane: %w; HAProxy keeps what it has", err)
	}
	d.left.update(raw)
	d.faults = faults
	return nil
}

// place gives every backend a slot.
func (d *driver) place() {
	added, removed := map[string]model.Profile{}, []string(nil)
	if d.placed.Len() == 0 {
		// After a start, what is placed is known from the files alone.
		for _, e := range d.placement.Slots() {
			if backend, stays := d.config.Backends.Get(e.Key); !stays || backend.Profile() != d.placement.Profile(e.Value) {
				removed = append(removed, e.Key)
			}
		}
	}
	for change := range d.config.Backends.Diff(d.placed) {
		switch {
		case !change.HadOld:
			added[change.Key] = change.New.Profile()
		case !change.HasNew:
			removed = append(removed, change.Key)
		case change.Old.Profile() != change.New.Profile():
			removed, added[change.Key] = append(removed, change.Key), change.New.Profile()
		}
	}
	d.placed = d.config.Backends
	if len(added)+len(removed) > 0 {
		d.placement = d.placement.Update(added, removed)
		d.behind.dirty(time.Now())
	}
}

// result completes a Result with what is true in any case.
func (d *driver) result(r Result) Result {
	r.Generation, r.Revision = d.generation, d.revision
	words := d.left.words()
	for _, fault := range d.faults {
		if _, said := words[string(fault.Owner)]; !said {
			words[string(fault.Owner)] = fault.Message
		}
	}
	if len(words) > 0 {
		r.LeftOut = words
	}
	return r
}

// serve notes what HAProxy serves now.
func (d *driver) serve(set files.Set) {
	d.running, d.known = set, true
	d.revision++
	d.behind.dirty(time.Now())
}

// runData applies what can go live under the sections that HAProxy has, while a reload waits or was refused: one bad port
// must not keep endpoints from changing. Only sections that this Engine rendered are sure to read the data as it is.
func (d *driver) runData(ctx context.Context, wanted files.Set) (int, error) {
	if !d.known || !d.same || d.generation == 0 {
		return 0, nil
	}
	data := wanted
	data.Sections, data.Assets = d.running.Sections, hotAssets(d.running, wanted)
	data.Maps = maps.Clone(d.running.Maps)
	for name := range data.Maps {
		if entries, wanted := wanted.Maps[name]; wanted {
			data.Maps[name] = entries
		}
	}
	data.Servers = hotServers(d.running, wanted)
	return d.run(ctx, d.diff(data), data)
}

// hotServers are the running servers with those changes that commands can make, in the slots that there are.
func hotServers(running, wanted files.Set) table.Table[files.Server] {
	slots := map[string]bool{}
	for _, section := range running.Sections {
		slots[section.Slot] = section.Slot != ""
	}
	edit := wanted.Servers.Edit()
	for change := range wanted.Servers.Diff(running.Servers) {
		was, is := change.Old, change.New
		switch {
		case change.HadOld && (was.Resolved() || change.HasNew && !was.CanBecome(is)):
			edit.Set(change.Key, was)
		case change.HasNew && (is.Resolved() || !slots[is.Slot]):
			edit.Delete(change.Key)
		}
	}
	return edit.Table()
}

// hotAssets are the running assets with those changes that need neither a reload nor other servers.
func hotAssets(running, wanted files.Set) table.Table[files.Asset] {
	edit := running.Assets.Edit()
	for _, change := range wanted.Assets.Changes(running.Assets) {
		var p assetPlan
		if p.add(running, change); change.HasNew && len(p.reasons)+len(p.authorities) == 0 {
			edit.Set(change.Key, change.New)
		}
	}
	return edit.Table()
}

func sortedKeys(of map[string]bool) []string { return slices.Sorted(maps.Keys(of)) }
