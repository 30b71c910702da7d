package cluster

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contents are the Secrets and ConfigMaps that objects name. All others are known by their metadata alone: what nobody
// names is never read. It is used by one goroutine.
type contents struct {
	reader client.Reader
	log    *slog.Logger
	// versions are the resourceVersions of all that there are.
	versions map[Name]string
	named    named
	// always are named by nobody, and read all the same.
	always named
	got    map[Name]*fetched
}

// fetched is one object with all that it holds, nil if it was not there.
type fetched struct {
	version string
	object  anyObject
	// failed counts attempts to get the version that there is, next is the time of the next.
	failed int
	next   time.Time
}

const (
	// getTimeout bounds how long reading contents may hold up everything else.
	getTimeout = 5 * time.Second
	// getAtOnce is how many are read at the same time.
	getAtOnce    = 16
	getRetry     = time.Second
	getRetryMost = 30 * time.Second
)

func newContents(reader client.Reader, log *slog.Logger, always ...Name) *contents {
	c := &contents{reader: reader, log: log, versions: map[Name]string{}, named: named{}, always: named{}, got: map[Name]*fetched{}}
	for _, name := range always {
		c.always[name], c.named[name] = true, true
	}
	return c
}

// seen takes in what events told of a kind.
func (c *contents) seen(k *kind, changes map[types.NamespacedName]anyObject) {
	for name, object := range changes {
		if object == nil {
			delete(c.versions, Name{k.name, name})
		} else {
			c.versions[Name{k.name, name}] = object.GetResourceVersion()
		}
	}
}

// update brings the Secrets and ConfigMaps of a Snapshot up to date. It says whether some could not be read.
func (c *contents) update(ctx context.Context, now *Snapshot, before Snapshot) (missing bool) {
	if !sameNamers(*now, before) {
		c.named = namedBy(*now)
		maps.Copy(c.named, c.always)
	}
	changes := map[string]map[types.NamespacedName]anyObject{"Secret": {}, "ConfigMap": {}}
	for name := range c.got {
		if !c.named[name] || c.versions[name] == "" {
			changes[name.Kind][name.NamespacedName] = nil
			delete(c.got, name)
		}
	}
	for name, object := range c.get(ctx, time.Now()) {
		changes[name.Kind][name.NamespacedName] = object
	}
	for _, k := range kinds {
		if len(changes[k.name]) > 0 {
			k.objects.edit(now, changes[k.name])
		}
	}
	for _, one := range c.got {
		missing = missing || one.failed > 0
	}
	return missing
}

// get reads what is named, is there, and was not read in that version.
func (c *contents) get(ctx context.Context, at time.Time) map[Name]anyObject {
	var stale []Name
	for name := range c.named {
		version, one := c.versions[name], c.got[name]
		if version != "" && (one == nil || one.version != version && !at.Before(one.next)) {
			stale = append(stale, name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	results := make([]anyObject, len(stale))
	errs := make([]error, len(stale))
	var group sync.WaitGroup
	slots := make(chan struct{}, getAtOnce)
	for i, name := range stale {
		slots <- struct{}{}
		group.Go(func() {
			results[i], errs[i] = c.read(ctx, name)
			<-slots
		})
	}
	group.Wait()
	changed := map[Name]anyObject{}
	for i, name := range stale {
		if c.settle(name, results[i], errs[i], at) {
			changed[name] = c.got[name].object
		}
	}
	return changed
}

func (c *contents) read(ctx context.Context, name Name) (anyObject, error) {
	object := kindNamed(name.Kind).objects.fresh()
	if err := c.reader.Get(ctx, name.NamespacedName, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	trim(object)
	object.GetObjectKind().SetGroupVersionKind(kindNamed(name.Kind).schema())
	return object, nil
}

// settle takes in what came of reading one, and says whether it differs from what is known. What cannot be read stays as
// it was.
func (c *contents) settle(name Name, object anyObject, err error, at time.Time) (changed bool) {
	one := c.got[name]
	if one == nil {
		one = &fetched{}
		c.got[name] = one
	}
	if err != nil && !apierrors.IsForbidden(err) {
		wait := min(getRetry<<min(one.failed, 5), getRetryMost)
		one.failed++
		one.next = at.Add(wait)
		c.log.Warn("cannot read an object that others name: what is known of it stays", "object", name.String(), "error", err, "again", wait)
		return false
	}
	if err != nil {
		c.log.Error("an object that others name may not be read: it counts as missing", "object", name.String(), "error", err)
	}
	// It may be newer than what events told; then those will tell, and it is read once more.
	changed = object == nil != (one.object == nil) || object != nil && object.GetResourceVersion() != one.object.GetResourceVersion()
	one.version, one.failed = c.versions[name], 0
	if changed {
		one.object = object
	}
	return changed
}

// wait is how long until something is to be read again, 0 if nothing is.
func (c *contents) wait(at time.Time) time.Duration {
	var wait time.Duration
	for _, one := range c.got {
		if one.failed > 0 {
			if left := max(one.next.Sub(at), time.Millisecond); wait == 0 || left < wait {
				wait = left
			}
		}
	}
	return wait
}
