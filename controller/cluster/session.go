package cluster

import (
	"errors"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	strictjson "sigs.k8s.io/json"
)

// OldSession has the fields of a rule's sessionPersistence that the Gateway API had from v1.1 to v1.6, and has no more.
type OldSession struct {
	SessionName  *string             `json:"sessionName,omitempty"`
	IdleTimeout  *gatewayv1.Duration `json:"idleTimeout,omitempty"`
	CookieConfig *OldCookieConfig    `json:"cookieConfig,omitempty"`
}

// OldCookieConfig is an OldSession's cookieConfig.
type OldCookieConfig struct {
	LifetimeType *gatewayv1.CookieLifetimeType `json:"lifetimeType,omitempty"`
}

// oldSessions are found by the sessionPersistence that they belong to.
type oldSessions map[*gatewayv1.SessionPersistence]*OldSession

// oldFields are written below a rule's sessionPersistence.
var oldFields = []string{"sessionName", "idleTimeout", "cookieConfig"}

// readOldSessions finds the fields of older versions in a route, and takes them out of what is unknown. Most routes have
// none and cost nothing.
func readOldSessions(data []byte, value anyObject, unknown []error) (oldSessions, []error, error) {
	rest := slices.DeleteFunc(slices.Clone(unknown), isOldField)
	if len(rest) == len(unknown) {
		return nil, unknown, nil
	}
	var route struct {
		Spec struct {
			Rules []struct {
				SessionPersistence *OldSession `json:"sessionPersistence"`
			} `json:"rules"`
		} `json:"spec"`
	}
	within, err := strictjson.UnmarshalStrict(data, &route, strictjson.DisallowUnknownFields)
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range within {
		if strings.Contains(fieldPath(problem), ".sessionPersistence.cookieConfig.") {
			rest = append(rest, problem)
		}
	}
	found := oldSessions{}
	for i, session := range sessionsOf(value) {
		old := route.Spec.Rules[i].SessionPersistence
		if session != nil && old != nil && *old != (OldSession{}) {
			found[session] = old
		}
	}
	return found, rest, nil
}

// sessionsOf has an entry for each rule of a route, nil for one without a session.
func sessionsOf(value anyObject) []*gatewayv1.SessionPersistence {
	var all []*gatewayv1.SessionPersistence
	switch route := value.(type) {
	case *gatewayv1.HTTPRoute:
		for i := range route.Spec.Rules {
			all = append(all, route.Spec.Rules[i].SessionPersistence) //nolint:staticcheck // deprecated upstream, served by us
		}
	case *gatewayv1.GRPCRoute:
		for i := range route.Spec.Rules {
			all = append(all, route.Spec.Rules[i].SessionPersistence) //nolint:staticcheck // deprecated upstream, served by us
		}
	}
	return all
}

func isOldField(err error) bool {
	_, member, inside := strings.Cut(fieldPath(err), ".sessionPersistence.")
	return inside && slices.Contains(oldFields, member)
}

func fieldPath(err error) string {
	var field strictjson.FieldError
	if errors.As(err, &field) {
		return field.FieldPath()
	}
	return ""
}
