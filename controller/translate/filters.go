package translate

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
)

// filters are those of a rule or backendRef, for a request that m matched.
func (r *route) filters(source *graph.Filters, m *graph.Match) model.Filters {
	return model.Filters{
		Redirect: redirect(source.Redirect, m),
		CORS:     cors(source.CORS),
		Request:  headerChange(source.RequestHeaders),
		Response: headerChange(source.ResponseHeaders),
		Rewrite:  rewrite(source.Rewrite, m),
		Mirrors:  r.mirrors(source.Mirrors),
	}
}

func headerChange(source *graph.HeaderChange) *model.HeaderChange {
	if source == nil || len(source.Set)+len(source.Add)+len(source.Remove) == 0 {
		return nil
	}
	return &model.HeaderChange{Set: headers(source.Set), Add: headers(source.Add), Remove: slices.Clone(source.Remove)}
}

func headers(source []graph.HeaderValue) []model.Header {
	var all []model.Header
	for _, header := range source {
		all = append(all, model.Header{Name: header.Name, Value: header.Value})
	}
	return all
}

// replacesPrefix says whether anything of the rule replaces the prefix that was matched.
func replacesPrefix(rule *graph.Rule) bool {
	if rule.Dropped {
		return false
	}
	return filtersReplacePrefix(&rule.Filters) ||
		slices.ContainsFunc(rule.Backends, func(ref graph.BackendRef) bool { return filtersReplacePrefix(&ref.Filters) })
}

func filtersReplacePrefix(filters *graph.Filters) bool {
	replaces := func(path *gatewayv1.HTTPPathModifier) bool {
		return path != nil && path.Type == gatewayv1.PrefixMatchHTTPPathModifier
	}
	return filters.Redirect != nil && replaces(filters.Redirect.Path) || filters.Rewrite != nil && replaces(filters.Rewrite.Path)
}

// redirect follows HTTPRequestRedirectFilter: the port is the one given, else the scheme's own, else the listener's.
func redirect(source *graph.Redirect, m *graph.Match) *model.Redirect {
	if source == nil {
		return nil
	}
	made := &model.Redirect{
		Status: source.Status, Scheme: source.Scheme, Host: source.Hostname, Port: source.Port,
		KeepPort: source.Port == 0 && source.Scheme == "",
	}
	made.Path, made.ReplaceFull, made.ReplacePrefix, made.Prefix = pathChange(source.Path, m)
	return made
}

func rewrite(source *graph.Rewrite, m *graph.Match) *model.Rewrite {
	if source == nil || source.Hostname == "" && source.Path == nil {
		return nil
	}
	made := &model.Rewrite{Host: source.Hostname}
	made.Path, made.ReplaceFull, made.ReplacePrefix, made.Prefix = pathChange(source.Path, m)
	return made
}

func pathChange(source *gatewayv1.HTTPPathModifier, m *graph.Match) (path string, full, replacePrefix bool, matched string) {
	switch {
	case source == nil:
		return "", false, false, ""
	case source.Type == gatewayv1.PrefixMatchHTTPPathModifier:
		return value(source.ReplacePrefixMatch), false, true, m.Path
	default:
		return value(source.ReplaceFullPath), true, false, ""
	}
}

// mirrors are those that ever get a request.
func (r *route) mirrors(source []graph.Mirror) []model.Mirror {
	var all []model.Mirror
	for _, mirror := range source {
		if mirror.Numerator > 0 {
			all = append(all, model.Mirror{
				Backend: r.mirrorVariant(mirror.Backend).name(), Numerator: mirror.Numerator, Denominator: mirror.Denominator,
			})
		}
	}
	return all
}

func cors(source *graph.CORS) *model.CORS {
	if source == nil {
		return nil
	}
	made := &model.CORS{
		Origins: source.Origins, Credentials: source.Credentials, Methods: source.Methods, Headers: source.Headers,
		Expose: source.Expose, MaxAge: source.MaxAge,
	}
	if made.Credentials {
		// "The gateway cannot use the * in the Access-Control-Expose-Headers response header" then: it would mean a header
		// of that name.
		made.Expose = slices.DeleteFunc(slices.Clone(made.Expose), func(name string) bool { return name == "*" })
	}
	return made
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
