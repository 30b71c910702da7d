package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// APIOptions say which objects of an API server are read.
type APIOptions struct {
	// Config leads to the API server.
	Config *rest.Config
	// Namespaces are those whose objects are read; every one if empty. GatewayClasses and Namespaces are read everywhere.
	Namespaces []string
	// Namespace is our own. Of Pods, those in it that PodSelector selects are read: our replicas.
	Namespace   string
	PodSelector labels.Selector
	// PortsConfigMap is the name of the one in our namespace that holds the PortTable.
	PortsConfigMap string
	// KeysSecret is the name of the one in our namespace that holds the keys: it may be the only one there that may be read.
	KeysSecret string
	// OnLive is told of each object whose status, as the API server holds it, changed or is gone. It must not block.
	OnLive func(Name)
	// Log is silent if nil.
	Log *slog.Logger
}

// Name is what an object of a kind that we read is known by.
type Name struct {
	Kind string
	types.NamespacedName
}

// API reads objects from an API server.
//
// An object keeps its pointer while what we read of it stays, which is all but its status; a kind of which no object
// changed keeps its list. Kinds whose definitions are not installed are empty, and are read as soon as they are. Of Secrets and
// ConfigMaps, those that some object names have their content. While the API server cannot be reached, the objects are
// those that were known last.
type API struct {
	options   APIOptions
	cache     cache.Cache
	client    client.Client
	discovery *discovery.DiscoveryClient
	wake      chan struct{}

	mutex    sync.Mutex
	kinds    map[*kind]*watched
	trouble  map[string]error
	contents *contents
	// snapshot is that of the last build; only Run uses it.
	snapshot Snapshot
}

// How events become Snapshots.
const (
	// together is how long events are collected after the first one. It bounds the delay too, however many come.
	together = 70 * time.Millisecond
	// patience is how long the objects of a kind that was installed later may hold up everything else.
	patience = 10 * time.Second
)

// NewAPI returns a source that has read nothing yet. It does not talk to the API server before Run.
func NewAPI(options APIOptions) (*API, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.OnLive == nil {
		options.OnLive = func(Name) {}
	}
	if options.PodSelector == nil {
		options.PodSelector = labels.Nothing()
	}
	a := &API{options: options, wake: make(chan struct{}, 1), kinds: map[*kind]*watched{}, trouble: map[string]error{}}
	httpClient, err := rest.HTTPClientFor(options.Config)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	if a.cache, err = a.newCache(httpClient); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	if a.client, err = client.New(options.Config, client.Options{HTTPClient: httpClient, Mapper: Mapper()}); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	if a.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(options.Config, httpClient); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	a.contents = newContents(a.client, options.Log, a.portsName())
	return a, nil
}

func (a *API) portsName() Name {
	return Name{"ConfigMap", types.NamespacedName{Namespace: a.options.Namespace, Name: a.options.PortsConfigMap}}
}

func (a *API) newCache(httpClient *http.Client) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient:               httpClient,
		Mapper:                   Mapper(),
		DefaultNamespaces:        map[string]cache.Config{},
		DefaultTransform:         a.transform,
		DefaultWatchErrorHandler: a.watchFailed,
		ByObject:                 map[client.Object]cache.ByObject{},
	}
	for _, namespace := range a.options.Namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	for _, k := range kinds {
		switch {
		case k.own:
			options.ByObject[k.watchedAs("")] = cache.ByObject{
				Namespaces: map[string]cache.Config{a.options.Namespace: {LabelSelector: a.options.PodSelector}},
			}
		case k.content && len(a.options.Namespaces) > 0 && !slices.Contains(a.options.Namespaces, a.options.Namespace):
			options.ByObject[k.watchedAs("")] = cache.ByObject{Namespaces: a.contentNamespaces(k)}
		case k.group == limpetGroup && len(a.options.Namespaces) > 0:
			// A GatewayClass's parameters are in our own namespace, where no tenant can edit them.
			all := map[string]cache.Config{a.options.Namespace: {}}
			for _, namespace := range a.options.Namespaces {
				all[namespace] = cache.Config{}
			}
			options.ByObject[k.watchedAs("")] = cache.ByObject{Namespaces: all}
		}
	}
	return cache.New(a.options.Config, options)
}

// contentNamespaces are those whose Secrets or ConfigMaps are watched, where not all are: in our own, the one that is ours.
func (a *API) contentNamespaces(k *kind) map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, namespace := range a.options.Namespaces {
		all[namespace] = cache.Config{}
	}
	name := a.options.PortsConfigMap
	if k.name == "Secret" {
		name = a.options.KeysSecret
	}
	all[a.options.Namespace] = cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}
	return all
}

// Run emits the first Snapshot when everything is read, and another one whenever something changed, until ctx ends. It
// waits for the API server as long as it takes.
func (a *API) Run(ctx context.Context, emit func(Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = a.cache.Start(ctx) })
	running.Go(func() { a.discover(ctx) })
	running.Go(func() { a.complain(ctx) })
	for complete := false; ; {
		if err := a.wait(ctx); err != nil {
			return err
		}
		changed, ok := a.build(ctx, complete)
		if ok && (changed || !complete) {
			complete = true
			emit(a.snapshot)
		}
	}
}

// wait returns when something happened and what belongs to it had time to come, or, with an error, when ctx ends.
func (a *API) wait(ctx context.Context) error {
	var again <-chan time.Time
	if wait := a.contents.wait(time.Now()); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again:
		return nil
	case <-a.wake:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(together):
		return nil
	}
}

// poke makes Run look again.
func (a *API) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// build takes in what happened since the last time. It says whether anything differs now, and whether what there is, is
// complete.
func (a *API) build(ctx context.Context, complete bool) (changed, ok bool) {
	now := a.snapshot
	a.mutex.Lock()
	if !a.synced(complete) {
		a.mutex.Unlock()
		return false, false
	}
	sessionsChanged := false
	for _, k := range kinds {
		w := a.kinds[k]
		if w == nil || len(w.changes) == 0 {
			continue
		}
		if k.content {
			a.contents.seen(k, w.changes)
		} else {
			k.edit(&now, w.changes)
		}
		sessionsChanged = sessionsChanged || w.sessionsChanged
		w.changes, w.sessionsChanged = nil, false
	}
	if sessionsChanged {
		now.OldSessions = a.sessions()
	}
	a.mutex.Unlock()
	missing := a.contents.update(ctx, &now, a.snapshot)
	ports, _ := now.ConfigMaps.Get(a.options.Namespace, a.options.PortsConfigMap)
	now.Ports = ReadPorts(ports, a.snapshot.Ports)
	changed = !now.same(a.snapshot)
	a.snapshot = now
	return changed, complete || !missing
}

// sessions are all sessions in the old form.
func (a *API) sessions() map[*gatewaySession]*OldSession {
	all := map[*gatewaySession]*OldSession{}
	for _, w := range a.kinds {
		for _, one := range w.sessions {
			maps.Copy(all, one)
		}
	}
	return all
}

// synced says whether all that is watched was read. What is installed later may be late.
func (a *API) synced(complete bool) bool {
	for _, k := range kinds {
		w := a.kinds[k]
		switch {
		case w == nil:
			if !complete {
				return false // It is not known yet whether the kind is there.
			}
		case w.version != "" && !w.isSynced() && (!complete || time.Since(w.since) < patience):
			return false
		}
	}
	return true
}

// waitingFor names the kinds that are not read yet.
func (a *API) waitingFor() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var all []string
	for _, k := range kinds {
		if w := a.kinds[k]; w == nil || w.version != "" && !w.isSynced() {
			all = append(all, k.name)
		}
	}
	slices.Sort(all)
	return all
}
