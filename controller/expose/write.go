package expose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
)

// errNotOurs is an object of the name that we need, which is somebody else's.
var errNotOurs = errors.New("it belongs to somebody else")

// errGoing is an object that is being deleted.
var errGoing = errors.New("the last one is still being deleted")

// make makes a Change. It looks at the object itself first: what a Snapshot shows may be older than what somebody made.
func (w *Writer) make(ctx context.Context, change Change) error {
	switch want := change.Object.(type) {
	case *corev1.ConfigMap:
		return w.putTable(ctx, want)
	case *discoveryv1.EndpointSlice:
		if change.Verb == Delete {
			return w.delete(ctx, change)
		}
		return put(ctx, w, change, want, &discoveryv1.EndpointSlice{}, func(is *discoveryv1.EndpointSlice) bool {
			return is.AddressType != want.AddressType
		}, mergeSlice)
	case *corev1.Service:
		switch change.Verb {
		case Delete:
			return w.delete(ctx, change)
		case PutOne:
			return w.putOne(ctx, change, want)
		}
		return put(ctx, w, change, want, &corev1.Service{}, func(is *corev1.Service) bool { return mustRecreate(is, want) }, mergeService)
	}
	return fmt.Errorf("a mistake in Limpet: %T cannot be written", change.Object)
}

// putTable writes the table of ports, on condition that nobody did since it was read: then the other one counts, and all is
// computed anew from it. Two replicas never give one port to two holders.
func (w *Writer) putTable(ctx context.Context, want *corev1.ConfigMap) error {
	if want.ResourceVersion == "" {
		return w.options.Client.Create(ctx, want.DeepCopy())
	}
	is := &corev1.ConfigMap{}
	if err := w.options.Client.Get(ctx, client.ObjectKeyFromObject(want), is); err != nil {
		return err
	}
	is.ResourceVersion, is.Data, is.BinaryData = want.ResourceVersion, want.Data, nil
	is.Labels = over(maps.Clone(is.Labels), want.Labels)
	return w.options.Client.Update(ctx, is)
}

// put creates an object or corrects the one that is there.
func put[T client.Object](
	ctx context.Context, w *Writer, change Change, want, is T, anew func(is T) bool, merge func(is, want T),
) error {
	err := w.options.Client.Get(ctx, client.ObjectKeyFromObject(want), is)
	switch {
	case apierrors.IsNotFound(err):
		return w.options.Client.Create(ctx, client.Object(want).DeepCopyObject().(client.Object))
	case err != nil:
		return err
	case !ours(is, change.Owner):
		return errNotOurs
	case is.GetDeletionTimestamp() != nil:
		return errGoing
	case anew(is):
		return w.recreate(ctx, is, want)
	}
	before := is.DeepCopyObject()
	merge(is, want)
	if equality.Semantic.DeepEqual(before, is) {
		return nil
	}
	return w.options.Client.Update(ctx, is)
}

// recreate takes the place of an object whose fields are for its whole life. It tries first whether the new one would be
// taken, so that nobody loses an address over one that cannot be had.
func (w *Writer) recreate(ctx context.Context, is, want client.Object) error {
	trial := want.DeepCopyObject().(client.Object)
	trial.SetGenerateName(label(want.GetName(), maxLabel-6) + "-")
	trial.SetName("")
	if err := w.options.Client.Create(ctx, trial, client.DryRunAll); err != nil {
		return err
	}
	if err := w.options.Client.Delete(ctx, is, exactly(is)); err != nil {
		return err
	}
	return w.options.Client.Create(ctx, want.DeepCopyObject().(client.Object))
}

// putOne creates a Service with a generated name, unless its owner has one by now.
func (w *Writer) putOne(ctx context.Context, change Change, want *corev1.Service) error {
	var all corev1.ServiceList
	err := w.options.Client.List(ctx, &all, client.InNamespace(want.Namespace),
		client.MatchingLabels{graph.LabelXBackend: want.Labels[graph.LabelXBackend], cluster.LabelManagedBy: cluster.ManagedBy})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all.Items, func(s corev1.Service) bool { return ours(&s, change.Owner) && s.DeletionTimestamp == nil }) {
		return nil
	}
	return w.options.Client.Create(ctx, want.DeepCopy())
}

// delete deletes an object that did not change since it was found to be too much.
func (w *Writer) delete(ctx context.Context, change Change) error {
	return client.IgnoreNotFound(w.options.Client.Delete(ctx, change.Object, exactly(change.Object)))
}

func exactly(object client.Object) client.Preconditions {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// isStale says that somebody else was faster: the next Snapshot shows what he made.
func isStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// refusalOf says what a Gateway is told of an error; nothing of one that goes away by itself.
func refusalOf(change Change, err error) refused {
	no := refused{gateway: change.Gateway}
	switch {
	case err == nil || isStale(err):
		return no
	case errors.Is(err, errGoing):
		no.reason = gatewayv1.GatewayReasonAddressNotAssigned
	case errors.Is(err, errNotOurs):
		no.reason = gatewayv1.GatewayReasonAddressNotAssigned
		no.problem = fmt.Sprintf("%s %s belongs to somebody else and is left alone: delete it, or give the Gateway another name.",
			kindOf(change.Object), change.Object.GetName())
		return no
	case apierrors.IsInvalid(err) && asksForAddress(change.Object):
		no.reason = gatewayv1.GatewayReasonAddressNotUsable
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		no.reason = gatewayv1.GatewayReasonNoResources
	default:
		return no
	}
	no.problem = fmt.Sprintf("%s %s cannot be written: %s", kindOf(change.Object), change.Object.GetName(), reasonOf(err))
	return no
}

// reasonOf is what an API server says, without the object's name before it.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return cause.Field + ": " + cause.Message
	}
	return err.Error()
}

func asksForAddress(object client.Object) bool {
	service, is := object.(*corev1.Service)
	return is && len(service.Spec.ClusterIPs) > 0 && service.Spec.ClusterIP != corev1.ClusterIPNone
}

// sameChange says whether two Changes of one object want the same.
func sameChange(a, b Change) bool {
	return a.Verb == b.Verb && equality.Semantic.DeepEqual(a.Object, b.Object)
}
