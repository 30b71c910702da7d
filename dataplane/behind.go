package dataplane

import (
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

// How soon the files follow what was changed at run time: within a second, many changes at once.
const (
	writeAfter      = 400 * time.Millisecond
	writeAfterError = 5 * time.Second
)

// behind keeps the files of the running generation equal to what HAProxy serves, after the fact and off the path of a
// change: they are what it starts from when it dies.
type behind struct {
	generation int
	set        files.Set // what the files hold
	place      placement.Placement
	due        time.Time // zero when nothing is to be written
	busy       bool
	done       chan written
}

// written is what became of writing.
type written struct {
	generation int
	set        files.Set
	place      placement.Placement
	err        error
}

// has notes what is in the files.
func (b *behind) has(generation int, set files.Set, place placement.Placement) {
	b.generation, b.set, b.place = generation, set, place
	b.due = time.Time{}
}

// dirty notes that the files are to be written.
func (b *behind) dirty(now time.Time) {
	if b.due.IsZero() {
		b.due = now.Add(writeAfter)
	}
}

// start begins to write, when it is time.
func (b *behind) start(d *driver, now time.Time) {
	if b.busy || b.due.IsZero() || now.Before(b.due) || !d.known || d.generation != b.generation {
		return
	}
	b.busy, b.due = true, time.Time{}
	was, is := b.set, written{generation: d.generation, set: d.running, place: d.placement}
	go func() {
		is.err = d.store.Rewrite(is.generation, was, is.set, is.place)
		b.done <- is
	}()
}

// finish notes what was written.
func (b *behind) finish(d *driver, w written) {
	b.busy = false
	if w.err != nil {
		d.logger.Error("the files were not brought up to date; HAProxy serves what it should, but would start with older data", "error", w.err)
		b.due = time.Now().Add(writeAfterError)
		return
	}
	if w.generation == b.generation {
		b.set, b.place = w.set, w.place
	}
}

// wait lets writing end that is under way.
func (b *behind) wait(d *driver) {
	if b.busy {
		b.finish(d, <-b.done)
	}
}

// writeBehind brings the files up to date now.
func (d *driver) writeBehind() error {
	d.behind.wait(d)
	if d.generation == 0 || d.behind.generation != d.generation || d.behind.due.IsZero() {
		return nil
	}
	if err := d.store.Rewrite(d.generation, d.behind.set, d.running, d.placement); err != nil {
		return err
	}
	d.behind.has(d.generation, d.running, d.placement)
	return nil
}
