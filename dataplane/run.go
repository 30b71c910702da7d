package dataplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// needsReloadError says why commands do not do it.
type needsReloadError struct{ reasons []string }

func (e *needsReloadError) Error() string { return "a reload is needed: " + joined(e.reasons) }

// run makes HAProxy serve a set by commands, and returns how many. When HAProxy refuses one, it does not serve what we
// think: then its state is read again and the rest is done, and if that does not help, a reload does.
func (d *driver) run(ctx context.Context, plan Plan, wanted files.Set) (int, error) {
	if reasons := plan.needs(); len(reasons) > 0 {
		return 0, &needsReloadError{reasons}
	}
	if len(plan.Steps) == 0 {
		d.running = wanted // owners may differ
		return 0, nil
	}
	count, err := d.execute(ctx, plan)
	var rejected *haproxy.RejectedError
	if errors.As(err, &rejected) && !isLeftOut(err) {
		d.logger.Warn("HAProxy refused a command; reading again what it serves", "error", err)
		if err = d.observe(ctx); err == nil {
			plan = d.diff(wanted)
			if reasons := plan.needs(); len(reasons) > 0 {
				return count, &needsReloadError{reasons}
			}
			var more int
			more, err = d.execute(ctx, plan)
			count += more
		}
	}
	switch cannot := (*needsReloadError)(nil); {
	case err == nil:
		d.serve(wanted)
		return count, nil
	case errors.As(err, &cannot):
		return count, err
	case isLeftOut(err):
		d.serve(d.running) // what came before it is served
		return count, err
	case errors.As(err, &rejected):
		return count, &needsReloadError{[]string{err.Error()}}
	}
	d.known = false
	return count, fmt.Errorf("dataplane: %w", err)
}

// execute sends a plan's steps.
func (d *driver) execute(ctx context.Context, plan Plan) (int, error) {
	b := &batch{driver: d}
	for _, step := range plan.Steps {
		if d.unread[step.Map] {
			continue
		}
		if err := b.add(ctx, step); err != nil {
			return b.sent, err
		}
	}
	return b.sent, b.flush(ctx)
}

// batch collects commands, so that many are one round trip.
type batch struct {
	driver   *driver
	commands []haproxy.Command
	removed  []files.Server
	sent     int
}

func (b *batch) add(ctx context.Context, step Step) error {
	switch step.Action {
	case AddServer:
		return b.addServer(ctx, step.Server)
	case ChangeServer:
		b.changeServer(step.Was, step.Server)
	case RemoveServer:
		b.commands = append(b.commands, haproxy.DisableServer(step.Server.Slot, step.Server.Name))
		b.removed = append(b.removed, step.Server)
	case AddEntry:
		return b.entry(ctx, step, haproxy.AddMap(step.Map, step.Key, step.Value))
	case SetEntry:
		return b.entry(ctx, step, haproxy.SetMap(step.Map, step.Key, step.Value))
	case RemoveEntry:
		return b.entry(ctx, step, haproxy.DelMap(step.Map, step.Key))
	case ReplaceMap:
		if err := b.flush(ctx); err != nil {
			return err
		}
		b.sent++
		return b.driver.client.ReplaceMap(ctx, step.Map, entries(step.Content))
	case PutAsset, RemoveAsset, ListCertificate, UnlistCertificate:
		return b.asset(ctx, step)
	}
	return nil
}

// entry adds the command of one entry. A very long one takes a new version of the map, in which nothing needs quoting.
func (b *batch) entry(ctx context.Context, step Step, command haproxy.Command) error {
	if !errors.Is(command.Err(), haproxy.ErrTooLong) {
		b.commands = append(b.commands, command)
		return nil
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	shown, err := b.driver.client.ShowMap(ctx, step.Map)
	if err != nil {
		return err
	}
	edit := table.Table[files.Entry]{}.Edit()
	for _, e := range shown {
		edit.Set(e.Key, files.Entry{Value: e.Value})
	}
	if step.Action == RemoveEntry {
		edit.Delete(step.Key)
	} else {
		edit.Set(step.Key, files.Entry{Value: step.Value})
	}
	b.sent++
	return b.driver.client.ReplaceMap(ctx, step.Map, entries(edit.Table()))
}

func entries(of table.Table[files.Entry]) func(func(haproxy.MapEntry) bool) {
	return func(yield func(haproxy.MapEntry) bool) {
		for change := range of.Diff(table.Table[files.Entry]{}) {
			if !yield(haproxy.MapEntry{Key: change.Key, Value: change.New.Value}) {
				return
			}
		}
	}
}

// addServer adds a server, or takes back one that is on its way out.
func (b *batch) addServer(ctx context.Context, s files.Server) error {
	for _, name := range s.Files() {
		if err := b.load(ctx, name); err != nil {
			return err
		}
	}
	key := files.ServerKey(s.Slot, s.Name)
	was, leaves := b.driver.leaving[key]
	if !leaves {
		if other := b.driver.leavingWith(s); other != "" {
			return &needsReloadError{[]string{fmt.Sprintf("server %s has the id of %s, which still drains", key, other)}}
		}
		b.commands = append(b.commands, haproxy.AddServer(s), haproxy.EnableServer(s.Slot, s.Name))
		return nil
	}
	if !was.certain || was.server.ID != s.ID || was.server.Options != s.Options {
		return &needsReloadError{[]string{fmt.Sprintf("server %s comes back as another one while it still drains", key)}}
	}
	b.changeServer(was.server, s)
	b.commands = append(b.commands, haproxy.EnableServer(s.Slot, s.Name))
	delete(b.driver.leaving, key)
	return nil
}

func (b *batch) changeServer(was, is files.Server) {
	if was.Address != is.Address {
		b.commands = append(b.commands, haproxy.SetAddress(is.Slot, is.Name, is.Address))
	}
	if was.Weight != is.Weight {
		b.commands = append(b.commands, haproxy.SetWeight(is.Slot, is.Name, is.Weight))
	}
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.commands) == 0 {
		return nil
	}
	err := b.driver.client.Exec(ctx, b.commands...)
	b.sent += len(b.commands)
	if err == nil {
		for _, s := range b.removed {
			b.driver.leave(s, true, time.Now())
		}
	}
	b.commands, b.removed = nil, nil
	return err
}
