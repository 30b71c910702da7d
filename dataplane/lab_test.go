package dataplane

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// lab is an Engine with a real HAProxy, and a configuration that a test changes.
type lab struct {
	testing.TB
	dir     string
	engine  *Engine
	client  *haproxy.Client
	config  model.Config
	logs    *strings.Builder
	mu      sync.Mutex
	options Options
	// What the configuration does not say.
	assets        map[string]files.Asset
	changes       int               // of assets
	serverOptions map[string]string // by backend
	bindOptions   string
	addresses     map[netip.AddrPort]string // that servers have instead
}

// asset sets an asset that the configuration does not say; without a text it goes.
func (l *lab) asset(name, owner, text string) {
	assets := maps.Clone(l.assets)
	if assets == nil {
		assets = map[string]files.Asset{}
	}
	delete(assets, name)
	if text != "" {
		assets[name] = files.Asset{Owner: owner, Text: text}
	}
	l.assets = assets
	l.changes++
}

func (l *lab) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.logs.Write(p)
}

func (l *lab) logged() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.logs.String()
}

// newLab starts an Engine in a new folder.
func newLab(t testing.TB, change ...func(*Options)) *lab {
	t.Helper()
	l := &lab{TB: t, logs: &strings.Builder{}}
	l.options = Options{
		Binary: haproxytest.Binary(t), ReloadEvery: 100 * time.Millisecond, Retry: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(l, nil)),
	}
	for _, c := range change {
		c(&l.options)
	}
	if l.options.Dir == "" {
		l.options.Dir = haproxytest.Dir(t)
	}
	l.dir = l.options.Dir
	l.client = haproxy.NewClient(haproxy.AdminSocket(l.dir))
	t.Cleanup(func() {
		if l.engine != nil {
			_ = l.engine.Close()
		}
		for _, pid := range l.pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(l.dir, "haproxy.log"))
			t.Logf("log:\n%s\nHAProxy's:\n%s", l.logged(), text)
		}
	})
	l.start()
	return l
}

// start starts an Engine, as a Limpet that was started again does.
func (l *lab) start() {
	l.Helper()
	options := l.options
	options.Render = (&testRenderer{lab: l, dir: l.dir}).render
	engine, err := New(options)
	if err != nil {
		l.Fatal(err)
	}
	if err := engine.Start(context.Background()); err != nil {
		l.Fatal(err)
	}
	l.engine = engine
}

// crash leaves everything as a Limpet does that was killed: nothing is written any more.
func (l *lab) crash() {
	l.Helper()
	l.engine.end()
	l.engine.driver.behind.wait(l.engine.driver)
	l.engine.driver.release()
	l.engine = nil
}

// pids are the processes that run for the lab's folder.
func (l *lab) pids() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscan(entry.Name(), &pid); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && strings.Contains(string(line), "unix@"+l.dir+"/run/master.sock") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l *lab) master() int { return l.processes()[0] }

func (l *lab) worker() int {
	pids := l.processes()
	return pids[len(pids)-1]
}

// processes are pids, of which there must be some.
func (l *lab) processes() []int {
	l.Helper()
	pids := l.pids()
	if len(pids) == 0 {
		l.Fatal("no HAProxy runs")
	}
	return pids
}

func (l *lab) kill(pid int) {
	l.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		l.Fatal(err)
	}
}

// apply applies the configuration; an error is the test's end.
func (l *lab) apply() Result {
	l.Helper()
	result := l.try(30 * time.Second)
	if result.Err != nil {
		l.Fatal(result.Err)
	}
	return result
}

func (l *lab) try(limit time.Duration) Result {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return l.engine.Apply(ctx, l.config)
}

// port adds a port.
func (l *lab) port(id, owner string) string {
	l.Helper()
	address := netip.MustParseAddrPort(haproxytest.Address(l))
	l.config.Frame.Ports = append(append([]model.Port(nil), l.config.Frame.Ports...), model.Port{
		ID: id, Owner: model.Owner(owner), Address: address.Addr(), Bind: address.Port(), Public: 80,
	})
	return address.String()
}

func (l *lab) noPort(id string) {
	var rest []model.Port
	for _, port := range l.config.Frame.Ports {
		if port.ID != id {
			rest = append(rest, port)
		}
	}
	l.config.Frame.Ports = rest
}

// backend gives a backend these endpoints.
func (l *lab) backend(name string, endpoints ...model.Endpoint) {
	edit := l.config.Backends.Edit()
	if len(endpoints) == 0 {
		edit.Delete(name)
	} else {
		edit.Set(name, &model.Backend{Name: name, Owner: model.Owner("Service " + name), Endpoints: endpoints})
	}
	l.config.Backends = edit.Table()
}

// endpoint is a server that answers with its name.
func (l *lab) endpoint(name string, id int32) model.Endpoint {
	return model.Endpoint{Name: name, Address: haproxytest.Echo(l, name), ID: id}
}

// route leads a host to a backend; "" removes it.
func (l *lab) route(host, backend string) {
	hosts, paths := l.config.Hosts.Edit(), l.config.Paths.Edit()
	if backend == "" {
		hosts.Delete("p|" + host)
		paths.Delete("v-" + host + "/")
	} else {
		owner := model.Owner("HTTPRoute " + host)
		hosts.Set("p|"+host, &model.Host{Owner: owner, VirtualHost: "v-" + host})
		paths.Set("v-"+host+"/", &model.Path{Owner: owner, Candidates: []model.Candidate{{Owner: owner, Target: model.Target{Backend: backend}}}})
	}
	l.config.Hosts, l.config.Paths = hosts.Table(), paths.Table()
}

// get asks for / of a host and returns the answer, or what went wrong.
func (l *lab) get(address, host string) string {
	return l.getWith(http.DefaultClient, address, host)
}

func (l *lab) getWith(client *http.Client, address, host string) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err.Error()
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return string(body)
}

// within waits until something holds.
func (l *lab) within(limit time.Duration, what string, holds func() bool) {
	l.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	l.Fatalf("not within %s: %s", limit, what)
}

// entries are a map's in HAProxy.
func (l *lab) entries(file string) map[string]string {
	l.Helper()
	shown, err := l.client.ShowMap(context.Background(), file)
	if err != nil {
		l.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range shown {
		all[e.Key] = e.Value
	}
	return all
}

// servers are HAProxy's, by slot and name, those in maintenance in parentheses.
func (l *lab) servers() string {
	l.Helper()
	states, err := l.client.Servers(context.Background())
	if err != nil {
		l.Fatal(err)
	}
	var all []string
	for _, s := range states {
		text := fmt.Sprintf("%s/%s=%d", s.Backend, s.Name, s.Weight)
		if s.Maintenance {
			text = "(" + text + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// testRenderer makes files of the skeleton's shape, and costs what changes, as the real one does.
type testRenderer struct {
	lab   *lab
	seen  int
	dir   string
	last  model.Config
	place placement.Placement
	set   files.Set
}

func (r *testRenderer) render(config model.Config, place placement.Placement) (files.Set, []Fault, error) {
	sameSlots := place.Capacity == r.place.Capacity
	if r.set.Sections == nil || !sameSlots || r.seen != r.lab.changes || !reflect.DeepEqual(config.Frame, r.last.Frame) {
		r.seen = r.lab.changes
		frame := r.skeleton(config, place.Capacity)
		r.set.Sections, r.set.Assets = frame.Sections, frame.Assets
	}
	if !place.Keeps(r.place) {
		r.last = model.Config{Frame: config.Frame}
		r.set.Maps, r.set.Servers = nil, table.Table[files.Server]{}
	}
	hosts, paths, servers := r.set.Maps["hosts.map"].Edit(), r.set.Maps["paths.map"].Edit(), r.set.Servers.Edit()
	for c := range config.Hosts.Diff(r.last.Hosts) {
		_, host, _ := strings.Cut(c.Key, "|")
		if c.HasNew {
			hosts.Set(host, files.Entry{Owner: string(c.New.Owner), Value: c.New.VirtualHost})
		} else {
			hosts.Delete(host)
		}
	}
	for c := range config.Paths.Diff(r.last.Paths) {
		if !c.HasNew {
			paths.Delete(c.Key)
			continue
		}
		slot, placed := place.Slot(c.New.Candidates[0].Target.Backend)
		if !placed {
			slot = "none"
		}
		paths.Set(c.Key, files.Entry{Owner: string(c.New.Owner), Value: slot})
	}
	for c := range config.Backends.Diff(r.last.Backends) {
		if c.HadOld {
			slot, _ := r.place.Slot(c.Key)
			for _, e := range c.Old.Endpoints {
				servers.Delete(files.ServerKey(slot, e.Name))
			}
		}
		if !c.HasNew {
			continue
		}
		slot, _ := place.Slot(c.Key)
		for _, e := range c.New.Endpoints {
			s := files.Server{
				Owner: string(c.New.Owner), Slot: slot, Name: e.Name, Address: e.Address.String(), ID: e.ID, Weight: 1,
				Options: r.lab.serverOptions[c.Key],
			}
			if other, has := r.lab.addresses[e.Address]; has {
				s.Address = other
			}
			if e.Draining {
				s.Weight = 0
			}
			servers.Set(files.ServerKey(slot, e.Name), s)
		}
	}
	r.set.Maps = map[string]table.Table[files.Entry]{"hosts.map": hosts.Table(), "paths.map": paths.Table()}
	r.set.Servers = servers.Table()
	r.last, r.place = config, place
	return r.set, nil, nil
}

// skeleton renders the frame. A port whose ID begins with "bad" gets a line that HAProxy refuses, with "odd" one that it
// refuses without saying which, with "deaf" one that it cannot load.
func (r *testRenderer) skeleton(config model.Config, slots int) files.Set {
	s := haproxytest.Skeleton{Dir: r.dir, Slots: slots}
	assets := table.Table[files.Asset]{}.Edit()
	for _, port := range config.Frame.Ports {
		address := netip.AddrPortFrom(port.Address, port.Bind).String()
		if strings.HasPrefix(port.ID, "bad") {
			address += " frobnicate"
		}
		if strings.HasPrefix(port.ID, "deaf") {
			address = "unix@/dev/null/no-folder"
		}
		if strings.HasPrefix(port.ID, "odd") {
			address += "\n    use_backend missing if TRUE"
		}
		if port.TLS() {
			list := ""
			for _, server := range port.Servers {
				for _, id := range server.Certificates {
					certificate, _ := config.Certificates.Get(id)
					name := "certs/" + certificate.ID + ".pem"
					assets.Set(name, files.Asset{Owner: string(certificate.Owner), Text: certificate.PEM, Secret: true})
					list += name + "\n"
				}
			}
			assets.Set("lists/"+port.ID+".list", files.Asset{Owner: string(port.Owner), Text: list})
			address += " ssl crt-list lists/" + port.ID + ".list" + r.lab.bindOptions
		}
		s.Ports = append(s.Ports, haproxytest.Port{Name: port.ID, Address: address, Owner: string(port.Owner)})
	}
	for name, asset := range r.lab.assets {
		assets.Set(name, asset)
	}
	set := s.Set()
	set.Assets = assets.Table()
	return set
}
