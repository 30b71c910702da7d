package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// watched is one kind of objects of an API server, as far as events told.
type watched struct {
	kind *kind
	// version is the one that is watched; "" while the kind is not there.
	version string
	// since is when that began, and isSynced says whether everything was told since.
	since    time.Time
	isSynced func() bool
	entries  map[types.NamespacedName]*entry
	// changes are what Snapshots do not show yet; nil is gone.
	changes map[types.NamespacedName]anyObject
	// sessions are those routes that have any.
	sessions        map[types.NamespacedName]oldSessions
	sessionsChanged bool
}

// watch begins to watch a kind in a version, or ends it with the version "".
func (a *API) watch(ctx context.Context, k *kind, version string) error {
	a.mutex.Lock()
	before := a.kinds[k]
	a.mutex.Unlock()
	if before != nil && before.version == version {
		return nil
	}
	if before != nil && before.version != "" {
		if err := a.cache.RemoveInformer(ctx, k.watchedAs(before.version)); err != nil {
			return err
		}
	}
	now := a.replace(before, k, version)
	if version == "" {
		return nil
	}
	informer, err := a.cache.GetInformer(ctx, k.watchedAs(version), cache.BlockUntilSynced(false))
	if err != nil {
		a.replace(now, k, "")
		return err
	}
	registration, err := informer.AddEventHandler(&handler{a, now})
	if err != nil {
		return err
	}
	a.mutex.Lock()
	now.isSynced = registration.HasSynced
	a.mutex.Unlock()
	go func() {
		// The last event may have come before this: look again.
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			a.poke()
		}
	}()
	return nil
}

// replace forgets what was watched before. Its objects are gone, until they are told again.
func (a *API) replace(before *watched, k *kind, version string) *watched {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := &watched{
		kind: k, version: version, since: time.Now(), isSynced: func() bool { return false },
		entries:  map[types.NamespacedName]*entry{},
		changes:  map[types.NamespacedName]anyObject{},
		sessions: map[types.NamespacedName]oldSessions{},
	}
	if before != nil {
		for name := range before.entries {
			now.changes[name] = nil
		}
		now.sessionsChanged = len(before.sessions) > 0
	}
	a.kinds[k] = now
	a.poke()
	return now
}

// handler takes the events of what is watched, while it is.
type handler struct {
	api *API
	of  *watched
}

// OnAdd is told of an object that came.
func (h *handler) OnAdd(object any, _ bool) { h.take(object) }

// OnUpdate is told of an object that changed.
func (h *handler) OnUpdate(_, object any) { h.take(object) }

// OnDelete is told of an object that is gone.
func (h *handler) OnDelete(object any) {
	if last, unknown := object.(toolscache.DeletedFinalStateUnknown); unknown {
		object = last.Obj
	}
	if e, is := object.(*entry); is {
		h.api.forget(h.of, nameOf(e))
	}
}

func (h *handler) take(object any) {
	if e, is := object.(*entry); is {
		h.api.take(h.of, e)
	}
}

// take takes in an object as the API server has it now.
func (a *API) take(w *watched, e *entry) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.kinds[w.kind] != w {
		return
	}
	name := nameOf(e)
	before := w.entries[name]
	if before != nil && (e.broken || before.sameContent(e)) {
		// It was read before the last event was taken in, or cannot be read: what is shown stays.
		e = &entry{anyObject: before.anyObject, resourceVersion: e.resourceVersion, live: e.live, sessions: before.sessions}
	}
	w.entries[name] = e
	if before == nil || before.anyObject != e.anyObject {
		w.show(name, e)
		a.poke()
	}
	if before == nil || !before.live.equal(e.live) {
		a.options.OnLive(Name{w.kind.name, name})
	}
}

func (w *watched) show(name types.NamespacedName, e *entry) {
	if w.changes == nil {
		w.changes = map[types.NamespacedName]anyObject{}
	}
	w.changes[name] = e.anyObject
	if e.broken {
		w.changes[name] = nil
	}
	if len(w.sessions[name])+len(e.sessions) > 0 {
		w.sessionsChanged = true
		w.sessions[name] = e.sessions
	}
}

// forget takes in that an object is gone.
func (a *API) forget(w *watched, name types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.kinds[w.kind] != w {
		return
	}
	if w.changes == nil {
		w.changes = map[types.NamespacedName]anyObject{}
	}
	w.changes[name] = nil
	w.sessionsChanged = w.sessionsChanged || len(w.sessions[name]) > 0
	delete(w.entries, name)
	delete(w.sessions, name)
	a.poke()
	a.options.OnLive(Name{w.kind.name, name})
}
