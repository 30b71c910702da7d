package dataplane

import (
	"context"
	"fmt"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// observe reads what HAProxy serves: after an adoption, and whenever something suggests that it is not what we think.
func (d *driver) observe(ctx context.Context) error {
	d.known = false
	if err := d.client.Settle(ctx); err != nil {
		return err
	}
	number, err := d.settledGeneration(ctx)
	if err != nil {
		return err
	}
	base := d.base(number)
	if base.Maps, err = d.observeMaps(ctx, base.Maps); err != nil {
		return err
	}
	if base.Assets, err = d.observeAssets(ctx, base); err != nil {
		return err
	}
	states, err := d.client.Servers(ctx)
	if err != nil {
		return err
	}
	d.leaving = map[string]*leaver{}
	base.Servers = d.observeServers(base, states)
	d.running, d.generation, d.known = base, number, true
	d.behind.dirty(time.Now())
	d.makeCurrent(number)
	d.prove(number)
	return nil
}

// prove notes that HAProxy runs a generation, so that it can start with it.
func (d *driver) prove(number int) {
	if err := d.store.Prove(number); err != nil {
		d.logger.Warn("it was not noted which generation HAProxy runs", "error", err)
	}
}

// observeOne is observe of one worker: a reload that a Limpet before us began may replace it meanwhile.
func (d *driver) observeOne(ctx context.Context) error {
	for {
		before, err := d.client.Info(ctx)
		if err == nil {
			err = d.observe(ctx)
		}
		if err != nil {
			return err
		}
		after, err := d.client.Info(ctx)
		if err != nil {
			d.known = false
			return err
		}
		if d.observed = after.PID; before.PID == after.PID {
			return nil
		}
	}
}

const (
	// settleFor is how long HAProxy may run another generation than the current one while nothing seems to happen.
	settleFor   = time.Second
	settleEvery = 20 * time.Millisecond
)

// settledGeneration is the one that HAProxy runs, after a reload that was begun and that nobody waited for.
func (d *driver) settledGeneration(ctx context.Context) (int, error) {
	end := time.Now().Add(settleFor)
	for {
		number, err := d.client.Generation(ctx)
		if current := d.store.Current(); err != nil || number == current || current == 0 || time.Now().After(end) {
			return number, err
		}
		if !d.process.Settled(ctx) {
			end = time.Now().Add(settleFor)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: it is in the middle of a reload: %w", haproxy.ErrUnavailable, ctx.Err())
		case <-time.After(settleEvery):
		}
	}
}

// replaced tells whether another worker serves than the one whose state was read.
func (d *driver) replaced(ctx context.Context) bool {
	if d.observed == 0 {
		return false
	}
	info, err := d.client.Info(ctx)
	return err == nil && info.PID != d.observed
}

// makeCurrent goes back to the generation that HAProxy runs, if a reload was begun and not done.
func (d *driver) makeCurrent(number int) {
	current := d.store.Current()
	if number == 0 || current == number {
		return
	}
	d.logger.Warn("HAProxy does not run the current generation; going back to the one it runs", "runs", number, "current", current)
	if err := d.store.Switch(number); err != nil {
		d.logger.Error("the generation that HAProxy runs was not made the current one", "error", err)
	}
}

// base is what HAProxy started with: the sections of the generation that it runs, and the rest of it as the files have it.
func (d *driver) base(number int) files.Set {
	if number == d.generation && number != 0 && len(d.running.Sections) > 0 {
		return d.running
	}
	d.behind.wait(d)
	set, place, err := d.store.Load(number)
	if err != nil {
		d.logger.Error("the files of the running configuration were not read", "error", err)
		d.doubts = []string{"the files of the running configuration cannot be read"}
		return files.Set{}
	}
	if !d.given {
		d.placement = place
	}
	d.behind.has(number, set, place)
	return set
}

// duplicate is what an entry seems to hold that HAProxy has twice with different values: it is set again then.
const duplicate = "\x00duplicate"

func (d *driver) observeMaps(ctx context.Context, base map[string]table.Table[files.Entry]) (map[string]table.Table[files.Entry], error) {
	sizes, err := d.client.MapSizes(ctx)
	if err != nil {
		return nil, err
	}
	observed := map[string]table.Table[files.Entry]{}
	d.unread = map[string]bool{}
	for name, known := range base {
		observed[name] = known
		if _, used := sizes[name]; !used {
			d.unread[name] = true
			continue
		}
		shown, err := d.client.ShowMap(ctx, name)
		if err != nil {
			return nil, err
		}
		observed[name] = observedMap(known, shown)
	}
	return observed, nil
}

// observedMap is known, brought to what HAProxy shows.
func observedMap(known table.Table[files.Entry], shown []haproxy.MapEntry) table.Table[files.Entry] {
	edit := known.Edit()
	seen := make(map[string]string, len(shown))
	for _, e := range shown {
		if first, twice := seen[e.Key]; twice {
			if first != e.Value {
				edit.Set(e.Key, files.Entry{Value: duplicate})
			}
			continue
		}
		seen[e.Key] = e.Value
		if was, had := known.Get(e.Key); !had || was.Value != e.Value {
			edit.Set(e.Key, files.Entry{Value: e.Value})
		}
	}
	for change := range known.Diff(table.Table[files.Entry]{}) {
		if _, there := seen[change.Key]; !there {
			edit.Delete(change.Key)
		}
	}
	return edit.Table()
}

// unknownOptions are those of a server that was added after the files were written: no server has them, so that it is
// taken for a different one.
const unknownOptions = "?"

// observeServers tells the servers that serve from those that are leaving.
func (d *driver) observeServers(base files.Set, states []haproxy.ServerState) table.Table[files.Server] {
	slots := map[string]bool{}
	for _, section := range base.Sections {
		slots[section.Slot] = section.Slot != ""
	}
	placed := map[string]bool{}
	for _, e := range d.placement.Slots() {
		placed[e.Value] = true
	}
	edit := table.Table[files.Server]{}.Edit()
	for _, state := range states {
		if !slots[state.Backend] {
			continue
		}
		key := files.ServerKey(state.Backend, state.Name)
		server, certain := observedServer(base.Servers, key, state)
		if !placed[state.Backend] {
			d.placement = d.placement.Withheld(state.Backend)
		}
		if state.Maintenance {
			d.leave(server, certain, time.Now())
			continue
		}
		edit.Set(key, server)
	}
	return edit.Table()
}

// observedServer is a server as HAProxy has it; its options are only known from the files.
func observedServer(known table.Table[files.Server], key string, state haproxy.ServerState) (server files.Server, certain bool) {
	server, certain = known.Get(key)
	if !certain || server.ID != state.ID {
		server = files.Server{Slot: state.Backend, Name: state.Name, ID: state.ID, Options: unknownOptions}
		certain = false
	}
	server.Weight = state.Weight
	// What DNS says is HAProxy's business, and of a socket it shows nothing.
	if !certain || server.Fixed() {
		server.Address = state.Address.String()
	}
	return server, certain
}
