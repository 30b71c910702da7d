package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/metrics"
	"github.com/limpet-gateway/limpet/controller/status"
)

// statusClient is a status.Client for an API server.
type statusClient struct {
	client  client.Client
	metrics *metrics.Metrics
}

// Get returns what there is of an object.
func (c statusClient) Get(ctx context.Context, version string, name cluster.Name) (cluster.Live, error) {
	object := emptyObject(version, name)
	if err := c.client.Get(ctx, name.NamespacedName, object); err != nil {
		return cluster.Live{}, statusError(err)
	}
	return liveOf(object)
}

// Patch changes fields of a status. The resourceVersion in it makes the API server refuse what was made for another state
// of the object, also where a list as a whole is replaced.
func (c statusClient) Patch(ctx context.Context, name cluster.Name, live cluster.Live, fields map[string]any) (cluster.Live, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion},
		"status":   fields,
	})
	if err != nil {
		return cluster.Live{}, err
	}
	object := emptyObject(live.APIVersion, name)
	err = c.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	c.metrics.Wrote(name.Kind, err)
	if err != nil {
		return cluster.Live{}, statusError(err)
	}
	return liveOf(object)
}

func emptyObject(version string, name cluster.Name) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, name.Kind))
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	return object
}

func liveOf(object *unstructured.Unstructured) (cluster.Live, error) {
	data, err := json.Marshal(object.Object["status"])
	if err != nil {
		return cluster.Live{}, err
	}
	return cluster.Live{
		APIVersion: object.GetAPIVersion(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Generation: object.GetGeneration(), Status: data,
	}, nil
}

func statusError(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", status.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", status.ErrGone, err)
	default:
		return err
	}
}
