package templates

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"github.com/limpet-gateway/limpet/controller/model"
)

// steps writes what filters do as a list, one step a line, so that no line outgrows what HAProxy reads: a letter for the
// kind, a name, "=", a value, and ";", which keeps blanks at the value's end. The rule's come before the share's; of CORS,
// rewrites and redirects, which replace each other, the share's alone counts.
func steps(rule, share model.Filters) []string {
	var list []string
	if cors := cmp.Or(share.CORS, rule.CORS); cors != nil {
		list = append(list, corsSteps(cors)...)
	}
	if redirect := cmp.Or(share.Redirect, rule.Redirect); redirect != nil {
		list = append(list, step('r', "", redirectText(redirect)))
	}
	for _, filters := range []model.Filters{rule, share} {
		list = append(list, headerSteps("sad", filters.Request)...)
		list = append(list, rewriteSteps(filters.Rewrite)...)
		list = append(list, headerSteps("SAD", filters.Response)...)
	}
	return list
}

func step(kind byte, name, value string) string { return string(kind) + name + "=" + value + ";" }

// headerSteps has a letter each to set, add and delete.
func headerSteps(kinds string, change *model.HeaderChange) []string {
	if change == nil {
		return nil
	}
	var list []string
	for _, header := range change.Set {
		list = append(list, step(kinds[0], header.Name, header.Value))
	}
	for _, header := range change.Add {
		list = append(list, step(kinds[1], header.Name, header.Value))
	}
	for _, name := range change.Remove {
		list = append(list, step(kinds[2], name, ""))
	}
	return list
}

func rewriteSteps(r *model.Rewrite) []string {
	if r == nil {
		return nil
	}
	var list []string
	if r.Host != "" {
		list = append(list, step('h', "", r.Host))
	}
	if form := pathForm(r.ReplaceFull, r.ReplacePrefix, r.Prefix); form != "-" {
		list = append(list, step('p', form, r.Path))
	}
	return list
}

// pathForm is "full", or the length of the prefix that is replaced, or "-".
func pathForm(full, prefix bool, matched string) string {
	switch {
	case full:
		return "full"
	case prefix:
		return strconv.Itoa(len(matched))
	}
	return "-"
}

func corsSteps(c *model.CORS) []string {
	list := []string{step('c', strconv.FormatInt(int64(c.MaxAge.Seconds()), 10), strconv.FormatBool(c.Credentials))}
	for _, part := range []struct {
		kind   byte
		values []string
	}{{'o', c.Origins}, {'m', c.Methods}, {'n', c.Headers}, {'e', c.Expose}} {
		for _, value := range part.values {
			list = append(list, step(part.kind, "", value))
		}
	}
	return list
}

func redirectText(r *model.Redirect) string {
	port := "-"
	switch {
	case r.KeepPort:
		port = "listener"
	case r.Port != 0:
		port = strconv.Itoa(int(r.Port))
	}
	return fmt.Sprintf("%d|%s|%s|%s|%s|%s",
		r.Status, orNothing(r.Scheme), orNothing(r.Host), port, pathForm(r.ReplaceFull, r.ReplacePrefix, r.Prefix), r.Path)
}

// filters writes the steps of the rule and the share under a hash of them, or nothing: "-".
func (w *ruleWriter) filters(share model.Filters) string {
	return w.list("f", steps(w.rule.Filters, share))
}

// list writes a list under a hash of it.
func (w *ruleWriter) list(kind string, list []string) string {
	if len(list) == 0 {
		return "-"
	}
	content := sha256.Sum256(fmt.Appendf(nil, "%q %q", w.rule.ID, list))
	name := kind + digest(content[:])
	w.line(filtersMap, name, strconv.Itoa(len(list)))
	for i, text := range list {
		w.line(filtersMap, name+"."+strconv.Itoa(i+1), text)
	}
	return name
}

// draws is how many numbers there are to draw from.
const draws = 2147483647

// mirrors is "<draws>:<list>", or "-" for none. Each request draws one number for all of its mirrors, and is copied to those
// whose draws are more; <draws> is the most of them, so that most requests are known not to be copied by one comparison.
func (w *ruleWriter) mirrors(share model.Filters) string {
	var list []string
	most := int64(0)
	for _, mirror := range slices.Concat(w.rule.Filters.Mirrors, share.Mirrors) {
		to, err := slot(mirror.Backend, w.place)
		if err != nil {
			w.err = err
		}
		if share := draws * int64(mirror.Numerator) / int64(mirror.Denominator); share > 0 {
			list = append(list, step('t', to, strconv.FormatInt(share, 10)))
			most = max(most, share)
		}
	}
	if most == 0 {
		return "-"
	}
	return strconv.FormatInt(most, 10) + ":" + w.list("m", list)
}
