package status

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// Condition is a condition of an object.
type Condition = metav1.Condition

// tell logs what a write changed, and tells of what is wrong with an object now, and was not before.
func (w *Writer) tell(before, after cluster.Live, update *Update) {
	was, is := w.ours(update, before), w.ours(update, after)
	logChanges(w.options.Log, was, is)
	if w.options.Events == nil {
		return
	}
	changedConditions(was, is, func(section string, _ *Condition, c Condition) {
		if fault(c) {
			w.options.Events(update.Object, section, c)
		}
	})
}

// fault says whether a condition is about what its object's owner did: waiting is nobody's fault.
func fault(c Condition) bool {
	switch c.Type {
	case "Accepted", "Programmed", "ResolvedRefs", "Conflicted", "PartiallyInvalid":
		return !Good(c) && c.Status != metav1.ConditionUnknown && c.Reason != string(gatewayv1.GatewayReasonPending) &&
			c.Reason != string(gatewayv1.GatewayReasonAddressNotAssigned)
	default:
		return false
	}
}

// ours is what a status says in our name, nil if nothing.
func (w *Writer) ours(like *Update, live cluster.Live) *Update {
	is := &Update{Object: like.Object}
	is.Status = like.Status.empty()
	if len(live.Status) == 0 || json.Unmarshal(live.Status, is.Status.Value()) != nil {
		return nil
	}
	if route := is.Status.Route; route != nil {
		route.Parents = slices.DeleteFunc(route.Parents, func(p gatewayv1.RouteParentStatus) bool {
			return string(p.ControllerName) != w.options.Controller
		})
	}
	if policy := is.Status.Policy; policy != nil {
		policy.Ancestors = slices.DeleteFunc(policy.Ancestors, func(a gatewayv1.PolicyAncestorStatus) bool {
			return string(a.ControllerName) != w.options.Controller
		})
	}
	return is
}
