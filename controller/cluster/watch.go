package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// When Files looks again.
const (
	// quiet after an event, so that what belongs together is read together, but busy at most.
	quiet = 20 * time.Millisecond
	busy  = 200 * time.Millisecond
	// loss is how long something must be gone.
	loss = 100 * time.Millisecond
	// poll finds what no event told, on file systems that have none.
	poll = 500 * time.Millisecond
	// share is the part of the time that polling may take.
	share = 50
)

// Run emits a snapshot at once, and another one whenever something changed, until ctx ends.
func (f *Files) Run(ctx context.Context, emit func(Snapshot)) error {
	w := newWatcher(f.options.Log)
	defer w.close()
	for first := true; ; first = false {
		start, old := time.Now(), f.snapshot
		hold := loss
		if first {
			hold = 0
		}
		folders, waiting := f.scan(hold)
		if first || !f.snapshot.same(old) {
			emit(f.snapshot)
		}
		fresh := w.watch(folders)
		next := max(poll, share*time.Since(start))
		if waiting || fresh {
			// In a folder that we begin to watch, something may have changed since we looked.
			next = loss
		}
		if err := w.wait(ctx, next); err != nil {
			return err
		}
	}
}

// watcher watches folders, where the system can.
type watcher struct {
	notify  *fsnotify.Watcher
	watched map[string]bool
	log     *slog.Logger
}

func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{watched: map[string]bool{}, log: log}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("cannot watch files: looking at them from time to time instead", "error", err)
		w.notify = &fsnotify.Watcher{}
	}
	return w
}

func (w *watcher) close() {
	if w.notify.Events != nil {
		_ = w.notify.Close()
	}
}

// watch watches these folders and no others, and says whether one of them is new.
func (w *watcher) watch(folders []string) (fresh bool) {
	if w.notify.Events == nil {
		return false
	}
	for folder := range w.watched {
		if !slices.Contains(folders, folder) {
			_ = w.notify.Remove(folder)
			delete(w.watched, folder)
		}
	}
	// A folder that was replaced by another one of its name has lost its watch.
	list := w.notify.WatchList()
	for _, folder := range folders {
		if w.watched[folder] && slices.Contains(list, folder) {
			continue
		}
		err := w.notify.Add(folder)
		if err == nil {
			fresh = true
		} else if _, said := w.watched[folder]; !said {
			w.log.Warn("cannot watch this folder: looking at it from time to time instead", "folder", folder, "error", err)
		}
		w.watched[folder] = err == nil
	}
	return fresh
}

// wait returns when something happened and it is quiet again, when the time is over, or, with an error, when ctx ends.
func (w *watcher) wait(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	var latest <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-w.notify.Events:
			if !matters(event) {
				continue
			}
			if latest == nil {
				latest = time.After(busy)
			}
			timer.Reset(quiet)
		case err := <-w.notify.Errors:
			// Mostly that more happened than there was room for.
			w.log.Debug("watching files", "error", err)
			timer.Reset(quiet)
		case <-latest:
			return nil
		case <-timer.C:
			return nil
		}
	}
}

// matters is false for hidden files (but for the links of a mounted ConfigMap, "..data") and editors' backups.
func matters(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "..") || strings.HasSuffix(name, "~") {
		return false
	}
	return event.Op != fsnotify.Chmod || filepath.Ext(name) != ""
}
