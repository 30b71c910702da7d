package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/originator"
	"github.com/limpet-gateway/limpet/internal/table"
)

// driver is the Engine's only writer: everything below is touched by its loop alone.
type driver struct {
	Options
	logger  *slog.Logger
	store   *files.Store
	process process
	client  *haproxy.Client
	lock    *os.File

	// What is wanted.
	config    model.Config
	given     bool // there is a config
	grow      bool // slots are wanted that no backend needs yet
	placed    table.Table[*model.Backend]
	placement placement.Placement
	left      leaveOuts
	faults    []Fault // what the last rendering could not render

	// What is served.
	generation int       // that HAProxy runs, 0 for none
	running    files.Set // what it serves, as far as known
	known      bool      // running is what it serves
	same       bool      // its sections were rendered, or could have been, by this Engine
	leaving    map[string]*leaver
	unread     map[string]bool // maps that no rule of HAProxy's reads: they are files only
	revision   uint64
	refusals   int // loads that HAProxy refused since the last one that it took
	observed   int // the worker whose state was read; 0 if it was started by this Engine
	// incarnation is that of the HAProxy that was found last.
	incarnation uint64
	doubts      []string       // why a reload is needed although nothing differs
	failures    map[string]int // loads in a row that HAProxy refused, by owner
	absence     string         // what was said last of an HAProxy that is not there
	// refusedStart is why HAProxy does not start with the files that it once ran with.
	refusedStart error

	// When.
	reloaded  time.Time // the last reload or start
	starts    int       // soon after each other
	nextStart time.Time
	nextHeal  time.Time
	nextAudit time.Time
	nextRetry time.Time
	nextGrow  time.Time

	live   liveFiles
	behind behind

	originator   *originator.Supervisor // nil if there is no command
	originates   bool                   // the last set of assets that was looked at has settings for it
	originatesOf table.Table[files.Asset]
}

func newDriver(o Options) (*driver, error) {
	lock, err := lockFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	store, err := files.Open(o.Dir)
	if err == nil {
		var process process
		if process, err = newProcess(o); err == nil {
			d := &driver{
				Options: o, logger: o.Logger, store: store, process: process, lock: lock,
				client: haproxy.NewClient(haproxy.AdminSocket(o.Dir)), leaving: map[string]*leaver{},
			}
			d.behind.done = make(chan written, 1)
			d.left.served = &d.running
			if len(o.Originator) > 0 {
				d.originator = &originator.Supervisor{Command: o.Originator, Dir: o.Dir, Log: o.Logger}
			}
			return d, nil
		}
	}
	unlockFolder(lock)
	return nil, fmt.Errorf("dataplane: %w", err)
}

const lockPatience = 500 * time.Millisecond

// lockFolder makes sure that one Limpet drives a folder. The lock ends with the process.
func lockFolder(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	// A process that is being started has everybody's locks until it executes its program.
	for end := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 50) {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("dataplane: another Limpet drives %s: stop it, or use another folder", dir)
	}
	return lock, nil
}

// unlockFolder gives the folder back at once: a process that is just being started holds the file too, for a moment.
func unlockFolder(lock *os.File) {
	_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
	_ = lock.Close()
}

func (d *driver) release() {
	d.process.Forget()
	unlockFolder(d.lock)
}

// begin finds out what is there. What it cannot do now, the loop tries again.
func (d *driver) begin(ctx context.Context) {
	if err := d.ensure(ctx); err != nil {
		d.logger.Error("HAProxy is not there yet", "error", err)
		d.noteRefused(err)
	}
}

// tick does what is due without being asked, and says whether a round is needed.
func (d *driver) tick(now time.Time) bool {
	d.watch()
	d.reap(now)
	d.reapFiles(now)
	d.originate(d.running.Assets)
	d.behind.start(d, now)
	if now.After(d.nextAudit) {
		d.audit(now)
	}
	return d.heal(now) || d.retry(now)
}

// originate makes sure that the TLS originator runs, if any of the assets are for it.
func (d *driver) originate(assets table.Table[files.Asset]) {
	if !assets.Same(d.originatesOf) {
		d.originates, d.originatesOf = false, assets
		for change := range assets.Diff(table.Table[files.Asset]{}) {
			d.originates = d.originates || files.FolderOf(change.Key) == files.OriginFolder
		}
	}
	if !d.originates {
		return
	}
	if err := d.originator.Ensure(); err != nil {
		d.logger.Error("backends that are known by subjectAltNames are not reached", "error", err)
	}
}

// watch notices that HAProxy died.
func (d *driver) watch() {
	if d.process.PID() == 0 || d.process.Alive() {
		return
	}
	d.logger.Error("HAProxy died, or is ending")
	d.known = false
}

// heal starts HAProxy again, or reads again what it serves, and says whether a round is needed then.
func (d *driver) heal(now time.Time) bool {
	nothing := !d.given && d.generation == 0 && !d.Neighbour
	if d.known || now.Before(d.nextHeal) || now.Before(d.nextStart) || nothing {
		return false
	}
	d.nextHeal = now.Add(time.Second)
	if d.refusedStart != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	if err := d.ensure(ctx); err != nil {
		d.logAbsence(err)
		return d.noteRefused(err)
	}
	d.absence = ""
	d.auditSoon()
	return d.given
}

// logAbsence says once why HAProxy is not there. One that another container starts is looked for again at once.
func (d *driver) logAbsence(err error) {
	if errors.Is(err, haproxy.ErrAbsent) {
		d.nextHeal = time.Time{}
	}
	if said := err.Error(); said != d.absence {
		d.absence = said
		d.logger.Warn("HAProxy is not back yet", "error", err)
	}
}

// noteRefused keeps for the next round that HAProxy refuses to start with the last good files, and says whether it does.
func (d *driver) noteRefused(err error) bool {
	if !isRefused(err) {
		return false
	}
	d.refusedStart = err
	return true
}

const auditEvery = time.Minute

// auditSoon looks again in a second: a command that was given up may still have been on its way.
func (d *driver) auditSoon() { d.nextAudit = time.Now().Add(time.Second) }

// audit compares the sizes of the maps, and the fingerprints of certificates: whoever else writes to the socket is found out
// cheaply.
func (d *driver) audit(now time.Time) {
	d.nextAudit = now.Add(auditEvery)
	d.process.TrimLog()
	if !d.known {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	if d.replaced(ctx) {
		d.logger.Warn("another worker serves than the one that was adopted; reading again what it serves")
		d.known = false
		return
	}
	differs, err := d.auditAssets(ctx)
	sizes, failed := d.client.MapSizes(ctx)
	if err = errors.Join(err, failed); err != nil {
		d.logger.Warn("HAProxy's maps and certificates were not looked at", "error", err)
		d.known = false
		return
	}
	if differs != "" {
		d.logger.Warn("HAProxy has other certificates than it was given; reading again what it serves", "files", differs)
		d.known = false
	}
	for name, entries := range d.running.Maps {
		if size, used := sizes[name]; used && size != entries.Len() {
			d.logger.Warn("a map differs from what was written", "map", name, "entries", size, "written", entries.Len())
			d.known = false
		}
	}
}
