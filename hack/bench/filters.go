package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/accesslog"
	"github.com/limpet-gateway/limpet/internal/table"
)

// feature is something that a rule can have, against a rule that has nothing.
type feature struct {
	name string
	// rule edits a rule that leads to one backend.
	rule func(*model.Rule)
	// backend edits the backend.
	backend func(*model.Backend)
	log     model.AccessLog
	// headers are lines of the request.
	headers string
}

func features() []feature {
	headers := func(names ...string) *model.HeaderChange {
		change := &model.HeaderChange{}
		for _, name := range names {
			change.Set = append(change.Set, model.Header{Name: name, Value: "some value"})
		}
		return change
	}
	one := model.Share{Weight: 1, Backend: "b"}
	return []feature{
		{name: "none"},
		{name: "request header set", rule: func(r *model.Rule) { r.Filters.Request = headers("X-A") }},
		{name: "5 request headers set", rule: func(r *model.Rule) { r.Filters.Request = headers("X-A", "X-B", "X-C", "X-D", "X-E") }},
		{name: "response header set", rule: func(r *model.Rule) { r.Filters.Response = headers("X-A") }},
		{name: "host rewritten", rule: func(r *model.Rule) { r.Filters.Rewrite = &model.Rewrite{Host: "other.example"} }},
		{name: "path prefix replaced", rule: func(r *model.Rule) {
			r.Filters.Rewrite = &model.Rewrite{ReplacePrefix: true, Prefix: "/shop", Path: "/new"}
		}},
		{name: "redirect", rule: func(r *model.Rule) {
			r.Filters.Redirect, r.Split = &model.Redirect{Status: 302, Scheme: "https"}, nil
		}},
		{name: "CORS, simple request", headers: "Origin: https://app.example\r\n", rule: func(r *model.Rule) {
			r.Filters.CORS = &model.CORS{Origins: []string{"https://app.example"}, Methods: []string{"GET"}, Credentials: true}
		}},
		{name: "split of two", rule: func(r *model.Rule) { r.Split = []model.Share{one, one} }},
		{name: "backendRequest timeout", rule: func(r *model.Rule) { r.BackendTimeout = 10 * time.Second }},
		{name: "request timeout", rule: func(r *model.Rule) { r.RequestTimeout = 10 * time.Second }},
		{name: "retry on 503", backend: func(b *model.Backend) { b.Retry = model.Retry{Set: true, Attempts: 2, Codes: "503"} }},
		{name: "mirror of 10 %", rule: func(r *model.Rule) {
			r.Filters.Mirrors = []model.Mirror{{Backend: "b", Numerator: 10, Denominator: 100}}
		}},
		{name: "mirror of all", rule: func(r *model.Rule) { r.Filters.Mirrors = []model.Mirror{{Backend: "b", Numerator: 1, Denominator: 1}} }},
		{name: "access log, JSON", log: model.AccessLogJSON},
		{name: "access log, text", log: model.AccessLogText},
	}
}

// measureFilters compares each feature with none, in turns. There is no limit: what a filter does has its price, and this
// says what it is.
func measureFilters(ctx context.Context, l *lab, o options) error {
	origin, err := l.origin(ctx)
	if err != nil {
		return err
	}
	all := features()
	subjects := make([]*subject, len(all))
	for i, f := range all {
		if subjects[i], err = f.start(ctx, l, origin); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for round := range o.rounds + 1 {
		for i, s := range subjects {
			cost, err := l.cpu(ctx, s.process, s.script, o.span)
			if err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
			if round > 0 { // the first round warms up
				s.costs = append(s.costs, cost)
			}
		}
	}
	fmt.Println("CPU of HAProxy per request of a rule with one filter / with none, median of pairs:")
	for i, s := range subjects[1:] {
		var ratios []float64
		for round, cost := range s.costs {
			ratios = append(ratios, cost/subjects[0].costs[round])
		}
		fmt.Printf("  %-24s %5.2f  of %.2f\n", all[i+1].name, median(slices.Clone(ratios)), ratios)
	}
	return nil
}

// start starts HAProxy with one rule that has the feature.
func (f feature) start(ctx context.Context, l *lab, origin int) (*subject, error) {
	rule := &model.Rule{ID: "r1", Display: "HTTPRoute default/shop rule 0", Split: []model.Share{{Weight: 1, Backend: "b"}}}
	if f.rule != nil {
		f.rule(rule)
	}
	config := configOf(origin)
	if f.backend != nil {
		backend, _ := config.Backends.Get("b")
		f.backend(backend)
	}
	config.Hosts = table.Of(table.Entry[*model.Host]{Key: "p1|shop.example", Value: &model.Host{VirtualHost: "v1"}})
	config.Rules = table.Of(table.Entry[*model.Rule]{Key: "r1", Value: rule})
	target := model.Target{Rule: "r1"}
	if rule.Plain() {
		target.Backend = "b"
	}
	config.Paths = everything(target)
	name := "filter-" + fmt.Sprint(len(l.running))
	setting := rendering{name: name, config: config, log: f.log}
	setting.requests = []request{{host: "shop.example", path: "/shop/list", lines: f.headers}}
	if f.log != model.AccessLogNone {
		if err := discardLog(logSocket(l, name)); err != nil {
			return nil, err
		}
	}
	return l.render(ctx, setting)
}

// discardLog reads an access log and throws it away, as somebody who keeps up with it.
func discardLog(socket string) error {
	log, err := accesslog.Listen(socket)
	if err == nil {
		go log.Copy(io.Discard)
	}
	return err
}
