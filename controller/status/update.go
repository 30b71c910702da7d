// Package status says what status each object gets, and writes it.
//
// A graph.Graph and the Result of applying it come in, Updates go out; a Store takes them further, to a file and the log, or a
// Writer, into what an API server holds. Computing is pure, and its times are empty; a condition gets a time when its status
// changes. It must never
// say that something is served before it is, touch what another controller wrote, or write what is written already.
package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Object names what a status is of.
type Object struct{ APIVersion, Kind, Namespace, Name string }

// String is the object in words, as "HTTPRoute default/shop".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Update is the status that an object is to have: all that Limpet says about it, at once. It is never changed.
type Update struct {
	Object
	Status Status
}

// Status is the status of one object. Exactly one of its fields is set, by the object's kind.
type Status struct {
	Class   *gatewayv1.GatewayClassStatus
	Gateway *gatewayv1.GatewayStatus
	// Route is for every kind of route, with entries of our controllerName alone.
	Route *gatewayv1.RouteStatus
	// Policy is for kinds that are reported by ancestor, with entries of our controllerName alone.
	Policy *gatewayv1.PolicyStatus
	// Set is a ListenerSet's.
	Set *gatewayv1.ListenerSetStatus
}

// Value is the one field that is set, as it is written: what a status looks like in the API.
func (s Status) Value() any {
	switch {
	case s.Class != nil:
		return s.Class
	case s.Gateway != nil:
		return s.Gateway
	case s.Route != nil:
		return s.Route
	case s.Policy != nil:
		return s.Policy
	default:
		return s.Set
	}
}

// empty is a status of the same form that says nothing.
func (s Status) empty() Status {
	switch {
	case s.Class != nil:
		return Status{Class: &gatewayv1.GatewayClassStatus{}}
	case s.Gateway != nil:
		return Status{Gateway: &gatewayv1.GatewayStatus{}}
	case s.Route != nil:
		return Status{Route: &gatewayv1.RouteStatus{}}
	case s.Policy != nil:
		return Status{Policy: &gatewayv1.PolicyStatus{}}
	default:
		return Status{Set: &gatewayv1.ListenerSetStatus{}}
	}
}

// DeepCopy copies it.
func (s Status) DeepCopy() Status {
	return Status{s.Class.DeepCopy(), s.Gateway.DeepCopy(), s.Route.DeepCopy(), s.Policy.DeepCopy(), s.Set.DeepCopy()}
}

// Section is one list of conditions in a status.
type Section struct {
	// Name says whose conditions they are within the object: "" for its own, else "listener http" or "parent default/gw".
	Name       string
	Conditions []metav1.Condition
}

// Sections are all lists of conditions in a status, in order. Those of a status may be changed through them.
func (u *Update) Sections() []Section {
	s := u.Status
	switch {
	case s.Class != nil:
		return []Section{{Conditions: s.Class.Conditions}}
	case s.Gateway != nil:
		sections := []Section{{Conditions: s.Gateway.Conditions}}
		for _, listener := range s.Gateway.Listeners {
			sections = append(sections, Section{"listener " + string(listener.Name), listener.Conditions})
		}
		return sections
	case s.Route != nil:
		var sections []Section
		for _, parent := range s.Route.Parents {
			sections = append(sections, Section{"parent " + refName(parent.ParentRef, u.Namespace), parent.Conditions})
		}
		return sections
	case s.Policy != nil:
		var sections []Section
		for _, ancestor := range s.Policy.Ancestors {
			sections = append(sections, Section{"ancestor " + refName(ancestor.AncestorRef, u.Namespace), ancestor.Conditions})
		}
		return sections
	default:
		sections := []Section{{Conditions: s.Set.Conditions}}
		for _, listener := range s.Set.Listeners {
			sections = append(sections, Section{"listener " + string(listener.Name), listener.Conditions})
		}
		return sections
	}
}

// refName is a reference in words: with its section and port, which tell several to one Gateway apart.
func refName(ref gatewayv1.ParentReference, namespace string) string {
	name := namespace + "/" + string(ref.Name)
	if ref.Namespace != nil {
		name = string(*ref.Namespace) + "/" + string(ref.Name)
	}
	if ref.SectionName != nil {
		name += " " + string(*ref.SectionName)
	}
	if ref.Port != nil {
		name += " :" + itoa(int64(*ref.Port))
	}
	return name
}

// Good says whether a condition is as its reader would like it.
func Good(c metav1.Condition) bool {
	switch c.Type {
	case "Accepted", "Programmed", "ResolvedRefs", "SupportedVersion":
		// A Gateway that is accepted for some of its listeners only is not all that its owner wants.
		return c.Status == metav1.ConditionTrue && c.Reason != string(gatewayv1.GatewayReasonListenersNotValid)
	default:
		return c.Status == metav1.ConditionFalse
	}
}

// Refused says whether something of the object is not served, or not as its owner asked for.
func (u *Update) Refused() bool {
	for _, section := range u.Sections() {
		for _, c := range section.Conditions {
			switch c.Type {
			case "Accepted", "Programmed", "ResolvedRefs", "Conflicted", "PartiallyInvalid":
				if !Good(c) {
					return true
				}
			}
		}
	}
	return false
}
