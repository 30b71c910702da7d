package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// discoverEvery is how often it is asked which custom kinds are installed: that takes no right to read definitions.
	discoverEvery = 5 * time.Second
	// complainEvery is how often it is said that the API server cannot be read.
	complainEvery = 30 * time.Second
)

// custom says whether the kind has to be installed before there is any.
func (k *kind) custom() bool { return gatewayAPI(k.group) }

// watchedAs is an object that says to the cache how the kind is watched: custom kinds with all their fields, because
// older versions of them have some that ours have no more.
func (k *kind) watchedAs(version string) client.Object {
	if version == "" {
		version = k.versions[0]
	}
	is := schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.name}
	switch {
	case k.custom():
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(is)
		return object
	case k.content:
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(is)
		return object
	default:
		return k.objects.fresh()
	}
}

// plural is the kind's name as it stands in paths. (apimachinery's guess makes "gatewaies" of Gateway.)
func (k *kind) plural() string {
	name := strings.ToLower(k.name)
	switch {
	case strings.HasSuffix(name, "ss"):
		return name + "es"
	case strings.HasSuffix(name, "s"): // LimpetParameters
		return name
	case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay"):
		return strings.TrimSuffix(name, "y") + "ies"
	default:
		return name + "s"
	}
}

// Mapper knows the kinds of the table without asking the API server, which may not be there yet.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		scope := meta.RESTScopeNamespace
		if k.clusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, version := range k.versions {
			is := schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.name}
			singular := is.GroupVersion().WithResource(strings.ToLower(k.name))
			mapper.AddSpecific(is, is.GroupVersion().WithResource(k.plural()), singular, scope)
		}
	}
	return mapper
}

// discover watches all kinds, the custom ones as long as they are installed.
func (a *API) discover(ctx context.Context) {
	for _, k := range kinds {
		if !k.custom() {
			a.follow(ctx, k, k.versions[0])
		}
	}
	ticker := time.NewTicker(discoverEvery)
	defer ticker.Stop()
	for {
		a.discoverOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (a *API) discoverOnce(ctx context.Context) {
	served, err := a.served(ctx)
	a.troubled("discovery", err)
	if err != nil {
		return
	}
	for _, k := range kinds {
		if k.custom() {
			a.follow(ctx, k, served[k])
		}
	}
}

func (a *API) follow(ctx context.Context, k *kind, version string) {
	if err := a.watch(ctx, k, version); err != nil && ctx.Err() == nil {
		a.troubled(k.name, err)
		a.options.Log.Error("cannot watch", "kind", k.name, "error", err)
	}
}

// served is the version of each custom kind that the API server has, the one that we like best.
func (a *API) served(ctx context.Context) (map[*kind]string, error) {
	kindsOf := map[string][]string{}
	for _, k := range kinds {
		for _, version := range k.versions {
			group := schema.GroupVersion{Group: k.group, Version: version}.String()
			if _, known := kindsOf[group]; known || !k.custom() {
				continue
			}
			list, err := a.discovery.ServerResourcesForGroupVersionWithContext(ctx, group)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("which kinds there are in %s: %w", group, err)
			}
			kindsOf[group] = []string{}
			if err == nil {
				for _, resource := range list.APIResources {
					kindsOf[group] = append(kindsOf[group], resource.Kind)
				}
			}
		}
	}
	served := map[*kind]string{}
	for _, k := range kinds {
		at := slices.IndexFunc(k.versions, func(version string) bool {
			return slices.Contains(kindsOf[schema.GroupVersion{Group: k.group, Version: version}.String()], k.name)
		})
		if at >= 0 {
			served[k] = k.versions[at]
		}
	}
	return served, nil
}

// watchFailed is told when the watch of a kind broke. It is begun anew by itself, after a while.
func (a *API) watchFailed(_ context.Context, reflector *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, io.EOF):
		// That happens to every watch, and costs nothing.
	default:
		a.troubled(reflector.TypeDescription(), err)
	}
}

// troubled notes why something cannot be read, or that it can.
func (a *API) troubled(what string, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err == nil {
		delete(a.trouble, what)
		return
	}
	a.trouble[what] = err
}

// complain says what cannot be read, now and then while that is so.
func (a *API) complain(ctx context.Context) {
	// What goes wrong at once is worth a line soon.
	next := time.NewTimer(3 * time.Second)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		next.Reset(complainEvery)
		waiting := a.waitingFor()
		a.mutex.Lock()
		var troubles []string
		for what, err := range a.trouble {
			troubles = append(troubles, what+": "+err.Error())
		}
		a.trouble = map[string]error{}
		a.mutex.Unlock()
		slices.Sort(troubles)
		switch {
		case len(waiting) > 0:
			a.options.Log.Warn("not everything is read from the API server yet",
				"server", a.options.Config.Host, "waitingFor", strings.Join(waiting, " "), "errors", troubles)
		case len(troubles) > 0:
			a.options.Log.Warn("the API server could not be read: what was known last goes on", "server", a.options.Config.Host, "errors", troubles)
		}
	}
}
