// Package templates turns a model.Config and a Placement into the files that HAProxy reads, as a files.Set.
//
// It is the only place that knows HAProxy's syntax: sections come from the templates beside this file, data from the
// functions in maps.go, and every value goes through the quoting function of its context. It must never do I/O, read a
// clock, or decide anything about routing.
package templates

import (
	"cmp"
	"embed"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
)

//go:embed *.tmpl
var sources embed.FS

//go:embed *.lua
var luaSources embed.FS

// luaFiles are the programs by file name; limpet.lua loads the others.
func luaFiles() map[string]string {
	programs := map[string]string{}
	entries, _ := luaSources.ReadDir(".")
	for _, entry := range entries {
		text, _ := luaSources.ReadFile(entry.Name())
		programs[entry.Name()] = string(text)
	}
	return programs
}

// Settings are what the files need to know of the machine.
type Settings struct {
	// AdminSocket and HealthSocket are absolute paths.
	AdminSocket, HealthSocket string
	// Ready are where HAProxy tells over HTTP whether it is ready for traffic, at /ready; none outside of a cluster.
	Ready []netip.AddrPort
	// OriginatorSocket is where the TLS originator listens.
	OriginatorSocket string
	// Instance tells the abstract sockets of several HAProxys in one network namespace apart.
	Instance string
	// HardStopAfter ends an old worker, in HAProxy's form: "1h".
	HardStopAfter string
	// Threads, MaxConnections and AccessLog are for when LimpetParameters say nothing. 0 leaves them to HAProxy.
	Threads, MaxConnections int
	// AccessLog has one line for each request, sent to LogTarget: "stdout", or the absolute path of a socket for datagrams.
	AccessLog model.AccessLog
	LogTarget string
	// SignKeys sign and prove tokens, the first one signs.
	SignKeys []SignKey
}

// with are the settings with what LimpetParameters say instead.
func (s Settings) with(parameters model.HAProxy) Settings {
	s.AccessLog = cmp.Or(parameters.AccessLog, s.AccessLog, model.AccessLogNone)
	s.Threads = cmp.Or(parameters.Threads, s.Threads)
	s.MaxConnections = cmp.Or(parameters.MaxConnections, s.MaxConnections)
	return s
}

func (s Settings) logs() bool { return s.AccessLog != model.AccessLogNone }

// SignKey is one key for tokens. ID is one character of [a-z0-9], Secret is base64.
type SignKey struct{ ID, Secret string }

// Fault is a piece that cannot be written; it is left out.
type Fault struct {
	Owner   model.Owner
	Message string
}

// Renderer renders, and remembers what it rendered last: a Config that differs little costs little. A fresh Renderer
// gives an equal Set.
type Renderer struct {
	// given are the installation's settings, settings those of the Config that is rendered.
	given, settings Settings
	templates       *template.Template
	last            *rendered
}

type rendered struct {
	state state
	frame frameInput
	data  *data
	set   files.Set
}

// frameInput is everything that the sections and assets depend on.
type frameInput struct {
	frame   model.Frame
	slots   []slotProfile
	cookies []string
	headers []string
	// resolvers are needed for names of backends.
	resolvers bool
}

// NewRenderer parses the templates.
func NewRenderer(settings Settings) (*Renderer, error) {
	if len(settings.SignKeys) == 0 {
		return nil, fmt.Errorf("templates: no key to sign tokens with")
	}
	parsed, err := template.New("").Funcs(functions()).ParseFS(sources, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return &Renderer{given: settings, templates: parsed}, nil
}

// functions are sprig's without those that read the environment, the clock or chance, and our quoting functions.
func functions() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	all["word"] = word
	all["arg"] = argument
	all["lf"] = logFormat
	all["rx"] = pattern
	return all
}

// Render gives the files for a configuration whose backends are all placed.
func (r *Renderer) Render(config model.Config, place placement.Placement) (files.Set, []Fault, error) {
	now := &rendered{state: state{config, place}}
	r.settings = r.given.with(config.Frame.HAProxy)
	if r.last != nil && r.last.data.labelled != r.settings.logs() {
		r.last = nil // every entry has a label, or none has
	}
	if r.last == nil || !place.Keeps(r.last.state.place) { // a backend that moved is in many entries
		now.data = (&data{labelled: r.settings.logs(), originator: r.settings.OriginatorSocket}).update(state{}, now.state)
	} else {
		now.data = r.last.data.update(r.last.state, now.state)
	}
	frame := frameInput{config.Frame, slotProfiles(place), place.Cookies, place.Headers, len(now.data.outside) > 0}
	now.frame = frame
	if r.last != nil && reflect.DeepEqual(r.last.frame, frame) {
		now.set.Sections, now.set.Assets = r.last.set.Sections, credentials(r.last.set.Assets, config, r.last.state.config)
		now.set.Maps = now.data.withSNI(r.last.set.Maps[sniMap])
	} else {
		sections, err := r.sections(frame)
		if err != nil {
			return files.Set{}, nil, err
		}
		assets, err := r.assets(frame)
		if err != nil {
			return files.Set{}, nil, err
		}
		now.set.Sections, now.set.Assets = sections, credentials(assets, config, model.Config{})
		now.set.Maps = now.data.withSNI(sniEntries(config.Frame))
	}
	was := &data{}
	if r.last != nil {
		was = r.last.data
	}
	now.set.Assets = origins(now.set.Assets, was, now.data, config)
	now.set.Servers = now.data.servers
	r.last = now
	return now.set, now.data.sortedFaults(), nil
}

// Labels that native rules strip from a hostname, as arguments of field(); deeper ones are found in Lua.
var (
	labels    = []int{2, 3, 4, 5, 6, 7}
	deepLabel = 8
)

type routingView struct {
	// Trusted says that some port has proxies that are trusted.
	Trusted   bool
	Labels    []int
	DeepLabel int
	Cookies   []string
	Headers   []string
	SignKeys  []string
	SignKey   string
	// AccessLog is the name of its format, "" for none.
	AccessLog string
	LogTarget string
}

type globalView struct {
	Settings
	// ClientCertificates are asked for on some port.
	ClientCertificates bool
}

type readyView struct {
	Addresses  []netip.AddrPort
	Incomplete bool
}

type portView struct {
	ID        string
	Listen    string
	Public    uint16
	Labels    []int
	DeepLabel int
	// Servers are all that have an internal hop: HTTPS and Decrypting.
	Servers, HTTPS, Decrypting []serverView
	// Verify is what the binds say about certificates of clients, Crypto about versions and cipher suites.
	Verify, Crypto string
	// Trusted proxies may say who the client is, Balancers speak the PROXY protocol.
	Trusted, Balancers []string
	Timeouts           clientTimeouts
}

// clientTimeouts are in HAProxy's form, "" where the defaults' count.
type clientTimeouts struct{ Idle, Request, KeepAlive string }

// hopName and mirrorName are the backends that lead through HAProxy once more.
const (
	hopName    = "limpet-hop"
	mirrorName = "limpet-mirror"
)

type hopView struct {
	Name, Socket string
	// Idle is how long an endpoint may do nothing.
	Idle string
	// Mirrors are sent from here, by the socket Copies; SignKey signs the copies.
	Mirrors         bool
	Copies, SignKey string
}

func (r *Renderer) hops(idle string) []hopView {
	return []hopView{
		{Name: hopName, Socket: r.socket("hop"), Idle: idle},
		{Name: mirrorName, Socket: r.socket("mirror"), Idle: idle, Mirrors: true, Copies: r.socket("copies"), SignKey: r.settings.SignKeys[0].ID},
	}
}

// socket is an abstract one that nobody but this HAProxy connects to.
func (r *Renderer) socket(name string) string {
	return fmt.Sprintf("abns@limpet-%s-%s", r.settings.Instance, name)
}

// timeouts are those of connections to endpoints, in HAProxy's form.
type timeouts struct{ Connect, Idle, Tunnel string }

func backendTimeouts(of model.HAProxy) timeouts {
	return timeouts{
		Connect: cmp.Or(haproxyTime(of.Connect), "1s"), Idle: cmp.Or(haproxyTime(of.Idle), "5m"), Tunnel: cmp.Or(haproxyTime(of.Tunnel), "1h"),
	}
}

type serverView struct {
	ID, Internal, List string
	Owner              model.Owner
	// Layer4 servers decrypt what is then forwarded.
	Layer4 bool
}

func (r *Renderer) sections(in frameInput) ([]files.Section, error) {
	w := &sectionWriter{templates: r.templates}
	w.add("global", "", globalView{r.settings, slices.ContainsFunc(in.frame.Ports, func(p model.Port) bool { return p.Clients != nil })})
	timeouts := backendTimeouts(in.frame.HAProxy)
	w.add("defaults", "", timeouts)
	w.add("routing", "", r.routing(in))
	w.add("forward", "", r.routing(in))
	w.add("stream", "", r.routing(in))
	if in.resolvers {
		w.add("resolvers", "", nil)
	}
	w.add("health", "", r.settings)
	if len(r.settings.Ready) > 0 {
		w.add("ready", "", readyView{r.settings.Ready, in.frame.Incomplete})
	}
	for _, hop := range r.hops(timeouts.Idle) {
		w.add("hop", "", hop)
		w.add("inner", "", hop)
		if hop.Mirrors {
			w.add("copies", "", hop)
		}
	}
	for _, port := range in.frame.Ports {
		w.port(port, r.port(port))
	}
	for _, slot := range in.slots {
		w.slot(slot.view())
	}
	return w.sections, w.err
}

func (r *Renderer) routing(in frameInput) routingView {
	view := routingView{
		Labels: labels, DeepLabel: deepLabel, Cookies: in.cookies, Headers: in.headers,
		SignKey: r.settings.SignKeys[0].ID, LogTarget: r.settings.LogTarget,
		Trusted: slices.ContainsFunc(in.frame.Ports, func(p model.Port) bool { return len(p.TrustedProxies) > 0 }),
	}
	if r.settings.logs() {
		view.AccessLog = string(r.settings.AccessLog)
	}
	for _, key := range r.settings.SignKeys {
		view.SignKeys = append(view.SignKeys, key.ID)
	}
	return view
}

func (r *Renderer) port(port model.Port) portView {
	view := portView{ID: port.ID, Listen: listen(port), Public: port.Public, Labels: labels, DeepLabel: deepLabel}
	if clients := port.Clients; clients != nil {
		view.Verify = " no-ca-names ca-file " + word(authorityFile(clients.Authority)) + " verify required"
		if clients.InsecureFallback {
			view.Verify = " no-ca-names ca-file " + word(authorityFile(clients.Authority)) + " verify optional ca-ignore-err all crt-ignore-err all"
		}
	}
	view.Crypto = crypto(port.Crypto)
	view.Trusted, view.Balancers = prefixes(port.TrustedProxies), prefixes(port.ProxyProtocol)
	view.Timeouts = clientTimeouts{
		Idle: haproxyTime(port.Timeouts.Idle), Request: haproxyTime(port.Timeouts.Request), KeepAlive: haproxyTime(port.Timeouts.KeepAlive),
	}
	for _, server := range port.Servers {
		if server.Mode == model.Passthrough {
			continue
		}
		shown := serverView{
			ID: server.ID, Internal: r.socket(server.ID), List: listFile(server), Owner: server.Owner, Layer4: server.Layer4(),
		}
		view.Servers = append(view.Servers, shown)
		if shown.Layer4 {
			view.Decrypting = append(view.Decrypting, shown)
		} else {
			view.HTTPS = append(view.HTTPS, shown)
		}
	}
	return view
}

func prefixes(all []netip.Prefix) []string {
	var texts []string
	for _, prefix := range all {
		texts = append(texts, prefix.String())
	}
	return texts
}

// haproxyTime is a time in HAProxy's form, "" for 0.
func haproxyTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// crypto is what a bind says of versions of TLS and cipher suites.
func crypto(c model.Crypto) string {
	var b strings.Builder
	switch {
	case c.Only13:
		b.WriteString(" ssl-min-ver TLSv1.3")
	case c.Only12:
		b.WriteString(" ssl-max-ver TLSv1.2")
	}
	if len(c.CipherSuites12) > 0 {
		b.WriteString(" ciphers " + word(strings.Join(c.CipherSuites12, ":")))
	}
	if len(c.CipherSuites13) > 0 {
		b.WriteString(" ciphersuites " + word(strings.Join(c.CipherSuites13, ":")))
	}
	return b.String()
}

// listen is the address that HAProxy binds, in its own form for IPv6.
func listen(port model.Port) string {
	if port.OnlyIPv6 {
		return fmt.Sprintf("[%s]:%d v6only", port.Address, port.Bind)
	}
	if port.Address.Is6() {
		return fmt.Sprintf("[%s]:%d", port.Address, port.Bind)
	}
	return fmt.Sprintf("%s:%d", port.Address, port.Bind)
}

// sectionWriter runs one template after the other.
type sectionWriter struct {
	templates *template.Template
	sections  []files.Section
	err       error
}

func (w *sectionWriter) add(name string, owner model.Owner, input any) {
	text := w.run(name, input)
	section := files.Section{Name: firstWords(text), Text: text}
	if owner != "" {
		section.Owners = map[int]string{}
		for line := range strings.Count(text, "\n") {
			section.Owners[line] = string(owner)
		}
	}
	w.sections = append(w.sections, section)
}

// port adds the sections of a port, by what is spoken there.
func (w *sectionWriter) port(port model.Port, view portView) {
	switch {
	case port.TCP:
		w.add("tcpport", port.Owner, view)
	case !port.TLS():
		w.add("port", port.Owner, view)
	case port.Layer4():
		w.add("mixedport", port.Owner, view)
	default:
		w.add("tlsport", port.Owner, view)
	}
	for _, server := range view.Servers {
		w.add("tlsserver", server.Owner, server)
	}
	if len(view.HTTPS) > 0 {
		w.add("https", port.Owner, view)
		w.own(view.HTTPS)
	}
	if len(view.Decrypting) > 0 {
		w.add("decrypted", port.Owner, view)
		w.own(view.Decrypting)
	}
}

// own gives each bind line of the section that was added last to its server: one that is refused goes alone.
func (w *sectionWriter) own(servers []serverView) {
	section := &w.sections[len(w.sections)-1]
	number := 0
	for line := range strings.Lines(section.Text) {
		if strings.HasPrefix(strings.TrimSpace(line), "bind ") {
			section.Owners[number] = string(servers[0].Owner)
			servers = servers[1:]
		}
		number++
	}
}

func (w *sectionWriter) slot(slot slotView) {
	w.sections = append(w.sections, files.Section{Name: "backend " + slot.Name, Text: w.run("slot", slot), Slot: slot.Name})
}

func (w *sectionWriter) run(name string, input any) string {
	var b strings.Builder
	if err := w.templates.ExecuteTemplate(&b, name+".tmpl", input); err != nil && w.err == nil {
		w.err = fmt.Errorf("templates: %s: %w", name, err)
	}
	return b.String()
}

// firstWords is a section's keyword and name, of its first line that has any.
func firstWords(text string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		return strings.Join(words[:min(2, len(words))], " ")
	}
	return ""
}
