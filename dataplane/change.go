package dataplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

const (
	// changeTimeout bounds a change of the files with all checks and reloads that it takes.
	changeTimeout = 3 * time.Minute
	// maxCommits bounds how often a change is tried that HAProxy checks well and then does not load.
	maxCommits = 5
	// A start that follows another one within soon waits, up to slowestStart.
	soon         = 10 * time.Second
	slowestStart = 5 * time.Second
	// manyRefusals is how many refused loads one worker may see: HAProxy counts them as if it had been replaced as often, and
	// ends one that mworker-max-reloads says is too old without letting it finish.
	manyRefusals = 4
	// growEvery is how long the pool of slots waits after growing it failed.
	growEvery = time.Minute
)

// reload makes HAProxy serve what is wanted by files: a new generation, checked, switched to and loaded. It does not end
// with the caller's patience, because a reload that is given up halfway leaves nobody knowing what is served.
func (d *driver) reload(ctx context.Context, result *Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	d.behind.wait(d)
	d.grow = false
	began, before := time.Now(), d.placement
	err := d.prepare()
	if err == nil {
		err = d.change(ctx, result)
		d.refresh(ctx)
	}
	if err == nil {
		if result.Reloaded {
			d.logger.Info("reloaded", "generation", d.generation, "reasons", joined(result.Reasons), "took", time.Since(began))
		}
		return
	}
	result.Err = fmt.Errorf("dataplane: %w (wanted because: %s)", err, joined(result.Reasons))
	result.Reasons = nil
	if d.known && d.process.Alive() {
		result.Err = fmt.Errorf("%w; HAProxy keeps generation %d", result.Err, d.generation)
	}
	d.logger.Error("the configuration was not changed", "error", result.Err)
	d.reloaded = time.Now() // the next one waits as after a reload
	d.nextGrow = d.reloaded.Add(growEvery)
	if !d.process.Alive() {
		d.delayNextStart()
	}
	if err := d.unprepare(before); err != nil {
		return
	}
	count, err := d.runData(ctx, d.left.set())
	result.Commands += count
	if err != nil {
		d.logger.Error("nor was its data", "error", err)
	}
}

// prepare uses the opportunity: slots are added, and the session names in use become literal.
func (d *driver) prepare() error {
	if !d.given {
		return nil
	}
	place := d.placement.Grown()
	place.Cookies, place.Headers = placement.Names(d.config)
	if !d.placement.Full() && slices.Equal(place.Cookies, d.placement.Cookies) &&
		slices.Equal(place.Headers, d.placement.Headers) {
		return nil
	}
	d.placement = place
	return d.renderPlaced()
}

// unprepare takes back what nobody asked for, so that it is no reason for the next reload.
func (d *driver) unprepare(before placement.Placement) error {
	if !d.given {
		return nil
	}
	d.placement = d.placement.WithSlotsOf(before)
	d.placement.Cookies, d.placement.Headers = before.Cookies, before.Headers
	return d.renderPlaced()
}

// change finds what HAProxy takes of the wanted set, and makes it serve that.
func (d *driver) change(ctx context.Context, result *Result) error {
	forced := !d.known || len(d.doubts) > 0 || len(d.diff(d.left.set()).needs()) == 0
	var err error
	for range maxCommits {
		var c candidate
		if c, err = d.search(ctx); err != nil {
			return err
		}
		if d.leaveOutTaken(c.set) {
			err = errors.New("again and again, an address is taken while the configuration is checked")
			if failed := d.store.Remove(c.number); failed != nil {
				return failed
			}
			continue
		}
		done, err := d.changeData(ctx, c, forced, result)
		if isLeftOut(err) {
			continue
		}
		if done {
			return err
		}
		if err = d.commit(ctx, c); err == nil {
			result.Reloaded = true
			return nil
		}
		if !isRefused(err) || len(d.blame(c.set, err, true)) == 0 {
			return err
		}
	}
	return err
}

// changeData saves the reload when nothing that needs one is left, because all of it was refused.
func (d *driver) changeData(ctx context.Context, c candidate, forced bool, result *Result) (done bool, err error) {
	if forced {
		return false, nil
	}
	plan := d.diff(c.set)
	if len(plan.needs()) > 0 {
		return false, nil
	}
	count, err := d.run(ctx, plan, c.set)
	result.Commands += count
	if cannot := (*needsReloadError)(nil); errors.As(err, &cannot) {
		return false, nil
	}
	if isLeftOut(err) {
		return false, errors.Join(err, d.store.Remove(c.number))
	}
	result.Reasons = nil
	return true, errors.Join(err, d.store.Remove(c.number))
}

// commit switches to a generation and loads it. If HAProxy refuses, it and the files are as they were.
func (d *driver) commit(ctx context.Context, c candidate) error {
	if err := d.store.Switch(c.number); err != nil {
		return err
	}
	if err := d.read(ctx, c.number); err != nil {
		if isRefused(err) || !d.process.Alive() {
			d.known = d.known && d.process.Alive()
			d.refusals++
			return errors.Join(err, d.rollBack(c.number))
		}
		d.known = false // observe finds out which one runs
		return err
	}
	d.reloaded, d.incarnation = time.Now(), d.process.Incarnation()
	d.generation, d.same, d.doubts = c.number, true, nil
	d.empty()
	d.behind.has(c.number, c.set, d.placement)
	d.forgive()
	d.serve(c.set)
	d.prove(c.number)
	if err := d.store.Prune(); err != nil {
		d.logger.Warn("old generations were not deleted", "error", err)
	}
	return nil
}

// read lets HAProxy read the current generation, and asks it whether it did.
func (d *driver) read(ctx context.Context, number int) error {
	if !d.process.Alive() {
		return d.process.Start(ctx)
	}
	err := d.process.Reload(ctx)
	if haproxy.IsUnreachable(err) {
		d.logger.Error("HAProxy runs and cannot be told to reload; it is started anew", "error", err)
		return d.process.Start(ctx)
	}
	if err != nil {
		return err
	}
	return d.answers(ctx, number)
}

// answers waits until a generation answers at the socket: for a moment after a reload the old worker may still do.
func (d *driver) answers(ctx context.Context, number int) error {
	const patience, pause = 2 * time.Second, 10 * time.Millisecond
	for begin := time.Now(); ; time.Sleep(pause) {
		runs, err := d.client.Generation(ctx)
		if err != nil || runs == number {
			return err
		}
		if time.Since(begin) > patience || ctx.Err() != nil {
			return fmt.Errorf("%w: after the reload, generation %d answers instead of %d", haproxy.ErrUnavailable, runs, number)
		}
	}
}

func (d *driver) rollBack(number int) error {
	var err error
	if d.generation == 0 {
		err = d.store.Unset()
	} else {
		err = d.store.Switch(d.generation)
	}
	if err != nil {
		return err
	}
	return d.store.Remove(number)
}

// refresh replaces a worker that saw many refusals by one with the same files.
func (d *driver) refresh(ctx context.Context) {
	if d.refusals < manyRefusals || !d.known {
		return
	}
	err := d.writeBehind()
	if err == nil {
		err = d.process.Reload(ctx)
	}
	if err != nil {
		d.logger.Error("the worker was not replaced by a fresh one", "error", err)
		d.known = false
		return
	}
	d.reloaded = time.Now()
	d.empty()
	d.running = d.behind.set
	d.logger.Info("reloaded", "generation", d.generation, "reasons", "the worker saw many refused reloads")
}

// empty notes that a new worker has no server or certificate that was on its way out.
func (d *driver) empty() {
	d.leaving, d.unread, d.refusals, d.observed = map[string]*leaver{}, nil, 0, 0
	d.live = liveFiles{}
	d.placement = d.placement.Released(d.placement.Leaving()...)
}

// restart starts HAProxy from the files of the generation that it served.
func (d *driver) restart(ctx context.Context) error {
	if err := d.writeBehind(); err != nil {
		d.logger.Error("HAProxy is started from older data", "error", err)
	}
	if d.store.Current() != d.generation {
		if err := d.store.Switch(d.generation); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	if d.Neighbour {
		return d.await(ctx)
	}
	d.delayNextStart()
	if err := d.process.Start(ctx); err != nil {
		return err
	}
	d.incarnation = d.process.Incarnation()
	d.reloaded = time.Now()
	d.empty()
	d.running, d.known = d.behind.set, true
	d.revision++
	d.logger.Info("started HAProxy", "pid", d.process.PID(), "generation", d.generation)
	return nil
}

// await is a start that somebody else makes.
func (d *driver) await(ctx context.Context) error {
	if err := d.process.Start(ctx); err != nil {
		return err
	}
	d.restartedElsewhere()
	return d.adopt(ctx)
}

// delayNextStart lets one that dies again and again wait longer and longer.
func (d *driver) delayNextStart() {
	now := time.Now()
	if now.Sub(d.nextStart) > soon {
		d.starts = 0
	}
	d.nextStart = now
	if d.starts > 0 {
		d.nextStart = now.Add(min(slowestStart, 50*time.Millisecond<<d.starts))
	}
	d.starts = min(d.starts+1, 10)
}
