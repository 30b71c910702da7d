package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
	"github.com/limpet-gateway/limpet/templates"
)

// subject is one HAProxy with the requests that it gets.
type subject struct {
	process *process
	script  string
	costs   []float64
}

// measureCPU compares a plain route among many with no routing, and a valid token with a native cookie.
func measureCPU(ctx context.Context, l *lab, o options, report *report) error {
	origin, err := l.origin(ctx)
	if err != nil {
		return err
	}
	subjects := map[string]*subject{}
	for name, start := range map[string]func(context.Context, *lab, int, options) (*subject, error){
		"base": startBase, "plain": startPlain, "conditional": startConditional,
		"bare": startBare, "native": startNative, "literal": startLiteral, "map": startMap,
	} {
		if subjects[name], err = start(ctx, l, origin, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	order := []string{"base", "plain", "conditional", "bare", "native", "literal", "map"}
	for round := range o.rounds + 1 {
		for _, name := range order {
			s := subjects[name]
			cost, err := l.cpu(ctx, s.process, s.script, o.span)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if round > 0 { // the first round warms up
				s.costs = append(s.costs, cost)
			}
		}
	}
	fmt.Println("CPU µs per request of HAProxy, by subject:")
	for _, name := range order {
		fmt.Printf("  %-12s %5.1f  median of %.1f\n", name, median(subjects[name].costs), subjects[name].costs)
	}
	ratio := func(what, a, b string, limit float64) {
		var ratios []float64
		for i, cost := range subjects[a].costs {
			ratios = append(ratios, cost/subjects[b].costs[i])
		}
		report.ratio(what, median(ratios), limit, fmt.Sprintf("pairs: %.2f", ratios))
	}
	ratio(fmt.Sprintf("CPU: plain route among %d / no routing", o.routes), "plain", "base", 1.6)
	fmt.Printf("  (a valid token costs %.2f of HAProxy's native cookie without any routing)\n",
		median(subjects["literal"].costs)/median(subjects["bare"].costs))
	ratio("CPU: valid token, name in the configuration / native cookie", "literal", "native", 1.5)
	ratio("CPU: valid token, name from a map / native cookie", "map", "native", 1.8)
	return nil
}

const skeleton = `global
  hard-stop-after 1s
defaults
  mode http
  timeout connect 1s
  timeout client 1m
  timeout server 1m
frontend f
  bind %s
%s`

// origin answers every request itself, at the least cost.
func (l *lab) origin(ctx context.Context) (int, error) {
	port := freePort()
	file, err := l.write("origin.cfg", fmt.Sprintf(skeleton, address(port),
		"  http-request return status 200 content-type text/plain string ok\n"))
	if err != nil {
		return 0, err
	}
	_, err = l.start(ctx, port, l.dir, file)
	return port, err
}

// forwarded is what Limpet says of the client, with any routing or none.
const forwarded = `  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Port 80
  http-request del-header Forwarded
`

// startBase is the same HAProxy with one backend and no routing.
func startBase(ctx context.Context, l *lab, origin int, o options) (*subject, error) {
	port := freePort()
	file, err := l.write("base.cfg", fmt.Sprintf(skeleton, address(port),
		forwarded+"  default_backend b\nbackend b\n  server s "+address(origin)+"\n"))
	if err != nil {
		return nil, err
	}
	p, err := l.start(ctx, port, l.dir, file)
	if err != nil {
		return nil, err
	}
	script, err := l.script("base", routeRequests(o.routes))
	return &subject{process: p, script: script}, err
}

// startBare has a native cookie and nothing else: what HAProxy does without Limpet.
func startBare(ctx context.Context, l *lab, origin int, _ options) (*subject, error) {
	port := freePort()
	file, err := l.write("bare.cfg", fmt.Sprintf(skeleton, address(port),
		"  default_backend b\nbackend b\n  cookie shop insert httponly\n  option redispatch 1\n"+
			"  server e1 "+address(origin)+" cookie e1\n  server e2 "+address(origin)+" cookie e2\n"))
	if err != nil {
		return nil, err
	}
	p, err := l.start(ctx, port, l.dir, file)
	if err != nil {
		return nil, err
	}
	script, err := l.script("bare", nativeRequest)
	return &subject{process: p, script: script}, err
}

// startNative has the same native cookie in a slot behind Limpet's routing: what is left to compare is the token.
func startNative(ctx context.Context, l *lab, origin int, _ options) (*subject, error) {
	config := configOf(origin)
	config.Hosts = table.Of(table.Entry[*model.Host]{Key: "p1|shop.example", Value: &model.Host{VirtualHost: "v1"}})
	config.Paths = everything(model.Target{Backend: "b", Rule: "r1"})
	return l.render(ctx, rendering{name: "native", config: config, requests: nativeRequest, change: func(set *files.Set) {
		for i := range set.Sections {
			if set.Sections[i].Slot == "s1" {
				set.Sections[i].Text += "  cookie shop insert httponly\n"
			}
		}
		servers := set.Servers.Edit()
		for _, e := range set.Servers.Sorted() {
			e.Value.Options = "cookie " + e.Value.Name
			servers.Set(e.Key, e.Value)
		}
		set.Servers = servers.Table()
	}})
}

var nativeRequest = []request{{host: "shop.example", path: "/", cookie: "a=b; shop=e2"}}

func startPlain(ctx context.Context, l *lab, origin int, o options) (*subject, error) {
	config := configOf(origin)
	hosts, paths := config.Hosts.Edit(), config.Paths.Edit()
	for _, r := range routeRequests(o.routes) {
		id := "v" + strings.ReplaceAll(r.host, ".", "-")
		hosts.Set(model.HostKey("p1", r.host), &model.Host{VirtualHost: id})
		paths.Set(id+r.path+"/", &model.Path{Candidates: []model.Candidate{{Target: model.Target{Backend: "b", Rule: "r1"}}}})
	}
	config.Hosts, config.Paths = hosts.Table(), paths.Table()
	return l.limpet(ctx, "plain", config, nil, routeRequests(o.routes))
}

// startConditional has the same routes, each with a header match of three.
func startConditional(ctx context.Context, l *lab, origin int, o options) (*subject, error) {
	config := configOf(origin)
	hosts, paths := config.Hosts.Edit(), config.Paths.Edit()
	for _, r := range routeRequests(o.routes) {
		id := "v" + strings.ReplaceAll(r.host, ".", "-")
		hosts.Set(model.HostKey("p1", r.host), &model.Host{VirtualHost: id})
		path := &model.Path{}
		for _, version := range []string{"2", "1"} {
			path.Candidates = append(path.Candidates, model.Candidate{
				Conditions: []model.Condition{{On: model.OnHeader, Name: "x-version", Value: version}}, Target: model.Target{Backend: "b", Rule: "r1"},
			})
		}
		path.Candidates = append(path.Candidates, model.Candidate{Target: model.Target{Backend: "b", Rule: "r1"}})
		paths.Set(id+r.path+"/", path)
	}
	config.Hosts, config.Paths = hosts.Table(), paths.Table()
	return l.limpet(ctx, "conditional", config, nil, routeRequests(o.routes))
}

func startLiteral(ctx context.Context, l *lab, origin int, _ options) (*subject, error) {
	return l.session(ctx, "literal", origin, []string{"shop"})
}

func startMap(ctx context.Context, l *lab, origin int, _ options) (*subject, error) {
	return l.session(ctx, "map", origin, nil)
}

// session starts a rule with a session and asks it once for a token.
func (l *lab) session(ctx context.Context, name string, origin int, literal []string) (*subject, error) {
	config := configOf(origin)
	config.Hosts = table.Of(table.Entry[*model.Host]{Key: "p1|shop.example", Value: &model.Host{VirtualHost: "v1"}})
	config.Paths = everything(model.Target{Rule: "r1"})
	config.Rules = table.Of(table.Entry[*model.Rule]{Key: "r1", Value: &model.Rule{ID: "r1", Split: []model.Share{{
		Weight: 1, Backend: "b",
		Session: &model.Session{ID: "s1", Scope: "scope", Backend: "b", Carrier: model.Cookie, Name: "shop", Absolute: time.Hour, Path: "/"},
	}}}})
	s, err := l.limpet(ctx, name, config, literal, nil)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(s.process.port)+"/", nil)
	if err != nil {
		return nil, err
	}
	req.Host = "shop.example"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	if len(res.Cookies()) != 1 {
		return nil, fmt.Errorf("no token: %s %v", res.Status, res.Header)
	}
	s.script, err = l.script(name, []request{{host: "shop.example", path: "/", cookie: "a=b; shop=" + res.Cookies()[0].Value}})
	return s, err
}

// everything leads all paths of the virtual host v1 to one target.
func everything(target model.Target) table.Table[*model.Path] {
	path := &model.Path{Candidates: []model.Candidate{{Target: target}}}
	return table.Of(table.Entry[*model.Path]{Key: "v1/", Value: path})
}

// configOf is a configuration with one port and a backend of two endpoints.
func configOf(origin int) model.Config {
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(origin))
	return model.Config{
		Frame: model.Frame{Ports: []model.Port{{ID: "p1", Address: netip.MustParseAddr("127.0.0.1"), Bind: uint16(freePort()), Public: 80}}},
		Backends: table.Of(table.Entry[*model.Backend]{Key: "b", Value: &model.Backend{Name: "b", Endpoints: []model.Endpoint{
			{Name: "e1", Address: address, ID: 1}, {Name: "e2", Address: address, ID: 2},
		}}}),
	}
}

// rendering is a configuration that Limpet renders for a subject.
type rendering struct {
	name     string
	config   model.Config
	cookies  []string // names that are literal
	requests []request
	log      model.AccessLog
	// change edits what was rendered.
	change func(*files.Set)
}

// limpet starts HAProxy with what Limpet renders for config.
func (l *lab) limpet(ctx context.Context, name string, config model.Config, cookies []string, requests []request) (*subject, error) {
	return l.render(ctx, rendering{name: name, config: config, cookies: cookies, requests: requests})
}

// render starts HAProxy with what Limpet renders.
func (l *lab) render(ctx context.Context, r rendering) (*subject, error) {
	dir := filepath.Join(l.dir, r.name)
	renderer, err := templates.NewRenderer(templates.Settings{
		AdminSocket: dir + "/admin.sock", HealthSocket: dir + "/health.sock", Instance: filepath.Base(l.dir) + r.name, HardStopAfter: "1s",
		AccessLog: r.log, LogTarget: logSocket(l, r.name),
		SignKeys: []templates.SignKey{{ID: "a", Secret: base64.StdEncoding.EncodeToString(make([]byte, 32))}},
	})
	if err != nil {
		return nil, err
	}
	place := placement.Placement{Cookies: r.cookies}.Update(map[string]model.Profile{"b": {}}, nil)
	set, faults, err := renderer.Render(r.config, place)
	if err != nil || len(faults) > 0 {
		return nil, fmt.Errorf("%v %w", faults, err)
	}
	if r.change != nil {
		r.change(&set)
	}
	store, err := files.Open(dir)
	if err != nil {
		return nil, err
	}
	number, left, err := store.Write(set, place)
	if err != nil || len(left) > 0 {
		return nil, fmt.Errorf("%v %w", left, err)
	}
	p, err := l.start(ctx, int(r.config.Frame.Ports[0].Bind), store.Path(number), files.ConfigFiles()...)
	if err != nil {
		return nil, err
	}
	script, err := l.script(r.name, r.requests)
	return &subject{process: p, script: script}, err
}

func logSocket(l *lab, name string) string { return filepath.Join(l.dir, name+".log.sock") }

func (l *lab) write(name, text string) (string, error) {
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

type request struct {
	host, path, cookie string
	// lines are further ones of the head, each with its end.
	lines string
}

// routeRequests are one request for each route: ten paths on each host.
func routeRequests(routes int) []request {
	var all []request
	for i := range routes {
		all = append(all, request{host: fmt.Sprintf("h%d.example.com", i/10), path: fmt.Sprintf("/path-%d", i%10)})
	}
	return all
}

// script writes a wrk script that sends the requests in turn, some hundreds of them.
func (l *lab) script(name string, requests []request) (string, error) {
	var b strings.Builder
	b.WriteString("local r = {\n")
	step := max(1, len(requests)/500)
	for i := 0; i < len(requests); i += step {
		q := requests[i]
		cookie := ""
		if q.cookie != "" {
			cookie = "Cookie: " + q.cookie + "\r\n"
		}
		fmt.Fprintf(&b, "%q,\n", "GET "+q.path+" HTTP/1.1\r\nHost: "+q.host+"\r\n"+cookie+q.lines+"\r\n")
	}
	b.WriteString("}\nlocal i = 0\nrequest = function() i = i % #r + 1 return r[i] end\n")
	return l.write(name+".lua", b.String())
}
