package golden

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/templates"
)

// check says what is wrong with an outcome, whatever went in.
func (o outcome) check(t testing.TB) {
	t.Helper()
	o.checkSections(t)
	o.checkMaps(t)
	o.checkServers(t)
	o.checkAssets(t)
	o.checkStatus(t)
}

// checkSections compares haproxy.cfg with that of a frame of the same shape that holds nothing which anybody wrote: the
// lines, and the words of each, must be as many and begin alike.
func (o outcome) checkSections(t testing.TB) {
	t.Helper()
	got, want := shape(o.preview.Set.Sections), o.harmless(t)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("haproxy.cfg has %d lines, want %d; line %d is %q, want the shape of %q", len(got), len(want), i+1, at(got, i), at(want, i))
		}
	}
	for _, section := range o.preview.Set.Sections {
		for line := range strings.Lines(section.Text) {
			if len(line) > files.MaxLine || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("a line of %d bytes in %s: %.200q", len(line), section.Name, line)
			}
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// shape is the first word of each line and the number of all.
func shape(sections []files.Section) []string {
	var all []string
	for _, section := range sections {
		for line := range strings.Lines(section.Text) {
			words := words(strings.TrimSuffix(line, "\n"))
			first := ""
			if len(words) > 0 {
				first = words[0]
			}
			all = append(all, fmt.Sprintf("%s %d", first, len(words)))
		}
	}
	return all
}

// words splits a line as HAProxy does (configuration.txt, 2.2).
func words(line string) []string {
	var all []string
	var word strings.Builder
	within, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if within {
				all = append(all, word.String())
				word.Reset()
			}
			within = false
			continue
		case quote == 0 && c == '#':
			i = len(line)
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case quote != '\'' && c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		default:
			word.WriteByte(c)
		}
		within = true
	}
	if within {
		all = append(all, word.String())
	}
	if quote != 0 {
		all = append(all, "a quote that does not end")
	}
	return all
}

// harmless is the shape of a frame with as many ports, servers and names, none of which comes from an object.
func (o outcome) harmless(t testing.TB) []string {
	t.Helper()
	frame, place := model.Frame{}, o.preview.Placement // whose slots have numbers for profiles
	place.Cookies, place.Headers = nil, nil
	for i, port := range o.config.Frame.Ports {
		port.ID, port.Owner = fmt.Sprintf("p%d", i), "Gateway a/b"
		port.Servers = slices.Clone(port.Servers)
		for j := range port.Servers {
			port.Servers[j] = model.TLSServer{ID: fmt.Sprintf("t%d-%d", i, j), Mode: port.Servers[j].Mode, Owner: "Gateway a/b"}
		}
		frame.Ports = append(frame.Ports, port)
	}
	for i := range o.preview.Placement.Cookies {
		place.Cookies = append(place.Cookies, fmt.Sprintf("c%d", i))
	}
	for i := range o.preview.Placement.Headers {
		place.Headers = append(place.Headers, fmt.Sprintf("h%d", i))
	}
	var profiles []model.Profile
	for _, slot := range place.SlotNames() {
		profiles = append(profiles, place.Profile(slot))
	}
	key := fmt.Sprint(frame, profiles, place.Cookies, place.Headers)
	if known, found := shapes.Load(key); found {
		return known.([]string)
	}
	renderer, err := templates.NewRenderer(controller.Settings("/run/limpet", []keys.SignKey{{ID: "a", Secret: secret}}))
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := renderer.Render(model.Config{Frame: frame}, place)
	if err != nil {
		t.Fatal(err)
	}
	all := shape(set.Sections)
	shapes.Store(key, all)
	return all
}

// shapes are those that harmless has made.
var shapes sync.Map

// checkMaps: every entry is one line that is read back as it was, and leads to something that is there.
func (o outcome) checkMaps(t testing.TB) {
	t.Helper()
	for name, entries := range o.preview.Set.Maps {
		for _, e := range entries.Sorted() {
			line, err := files.MapLine(e.Key, e.Value.Value)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if key != e.Key || value != e.Value.Value || strings.Count(line, "\n") != 1 || len(line) > files.MaxLine+1 {
				t.Fatalf("%s: the line %.200q", name, line)
			}
		}
	}
	r := references{t, o}
	for _, name := range []string{"paths.map", "rules.map", "splits.map", "candidates.map"} {
		for _, e := range o.preview.Set.Maps[name].Sorted() {
			r.follow(name, e.Key, e.Value.Value)
		}
	}
	for _, name := range []string{"hosts.map", "parents.map"} {
		for _, e := range o.preview.Set.Maps[name].Sorted() {
			if !regexp.MustCompile(`^v[a-z2-7]{12}(;[tdu][a-z2-7]{12})?$`).MatchString(e.Value.Value) {
				t.Fatalf("%s: %q leads to %q", name, e.Key, e.Value.Value)
			}
		}
	}
}

// references follows what entries lead to.
type references struct {
	testing.TB
	outcome
}

func (r references) has(name, key string) string {
	r.Helper()
	entry, found := r.preview.Set.Maps[name].Get(key)
	if !found {
		r.Fatalf("nothing in %s for %q", name, key)
	}
	return entry.Value
}

func (r references) follow(name, key, value string) {
	r.Helper()
	switch name {
	case "paths.map":
		r.target(value)
	case "rules.map":
		switch what, rule, _ := strings.Cut(value, ";"); what {
		case "draw", "keep":
			r.has("splits.map", rule)
		case "redirect":
			r.filters(rule)
		default:
			r.record(value)
		}
	case "splits.map":
		for share := range strings.SplitSeq(value, ",") {
			weight, record, _ := strings.Cut(share, " ")
			if n, err := strconv.Atoi(weight); err != nil || n < 0 || n == 0 && !strings.HasPrefix(r.has("rules.map", key), "keep;") {
				r.Fatalf("the share %q of %q", share, key)
			}
			r.record(record)
		}
	case "candidates.map":
		if regexp.MustCompile(`^g[a-z2-7]+\.\d+$`).MatchString(key) {
			_, target, _ := strings.Cut(value, " ")
			r.target(target)
		}
	}
}

func (r references) target(to string) {
	r.Helper()
	switch {
	case to == "500":
	case strings.HasPrefix(to, "s"):
		r.slot(to)
	case strings.HasPrefix(to, "r"):
		r.has("rules.map", to)
	case strings.HasPrefix(to, "g"):
		_, count, _ := strings.Cut(r.has("candidates.map", to), " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			r.Fatalf("the group %s has %q candidates", to, count)
		}
		for i := range n {
			conditions, _, _ := strings.Cut(r.has("candidates.map", fmt.Sprintf("%s.%d", to, i+1)), " ")
			m, err := strconv.Atoi(conditions)
			if err != nil {
				r.Fatalf("candidate %d of %s has %q conditions", i+1, to, conditions)
			}
			for j := range m {
				if line := r.has("candidates.map", fmt.Sprintf("%s.%d.%d", to, i+1, j+1)); !regexp.MustCompile(`^[mhqp][=~][^= ]*=.*;$`).MatchString(line) {
					r.Fatalf("the condition %q", line)
				}
			}
		}
	default:
		r.Fatalf("the target %q", to)
	}
}

// slot is a slot's name, with the plain rule behind it that leads there, if there is one.
func (r references) slot(name string) {
	r.Helper()
	name, rule, plain := strings.Cut(name, ";")
	if plain && !strings.HasPrefix(rule, "r") {
		r.Fatalf("the slot %q of the rule %q", name, rule)
	}
	if n, err := strconv.Atoi(name[1:]); err != nil || n < 1 || n > r.preview.Placement.Capacity {
		r.Fatalf("the slot %q of %d", name, r.preview.Placement.Capacity)
	}
}

// record is "<section>;<backend>;<session>;<mirrors>;<limits>;<filters>".
func (r references) record(text string) {
	r.Helper()
	if filters, is := strings.CutPrefix(text, "redirect;"); is {
		r.filters(filters)
		return
	}
	fields := strings.Split(text, ";")
	if len(fields) != 6 {
		r.Fatalf("the record %q", text)
	}
	limits := regexp.MustCompile(`^(-|\d+)(?::(-|\d+):(s\d+))?$`).FindStringSubmatch(fields[4])
	switch {
	case limits == nil || strings.HasPrefix(fields[0], "limpet-") != (limits[3] != ""):
		r.Fatalf("the limits %q of %s", fields[4], fields[0])
	case limits[3] != "":
		r.slot(limits[3])
	case fields[0] != "500":
		r.slot(fields[0])
	}
	if fields[2] != "-" {
		const session = `^(cookie|header):[^;: ]+;[^; ]+;[a-z2-7]+\.[a-z2-7]+;\d+;\d*;\d*;(session|permanent);Path=[^;,]*; HttpOnly; SameSite=Lax$`
		if line := r.has("sessions.map", fields[2]); !regexp.MustCompile(session).MatchString(line) {
			r.Fatalf("the session %q", line)
		}
	}
	if draws, mirrors, some := strings.Cut(fields[3], ":"); some {
		if n, err := strconv.Atoi(draws); err != nil || n < 1 || n > math.MaxInt32 || !strings.HasPrefix(mirrors, "m") {
			r.Fatalf("the mirrors %q", fields[3])
		}
		r.filters(mirrors)
	} else if fields[3] != "-" {
		r.Fatalf("the mirrors %q", fields[3])
	}
	if fields[5] != "-" {
		r.filters(fields[5])
	}
}

// aStep is one step of a list of filters.
var aStep = regexp.MustCompile(`^([saSA][^= ]+=.+|[dD][^= ]+=|h=[^ ;]+|p(full|\d+)=[^ ;]*|c\d+=(true|false)|[omne]=[^ ;]+|ts\d+=\d+|` +
	`r=30[12378]\|(-|https?)\|[^|]*\|(-|listener|\d+)\|(-|full|\d+)\|[^|]*);$`)

func (r references) filters(name string) {
	r.Helper()
	steps, err := strconv.Atoi(r.has("filters.map", name))
	if err != nil || steps < 1 {
		r.Fatalf("the filters %s have no steps", name)
	}
	for i := range steps {
		if line := r.has("filters.map", fmt.Sprintf("%s.%d", name, i+1)); !aStep.MatchString(line) {
			r.Fatalf("the step %q", line)
		}
	}
}

// serverOptions are the ways in which a backend is spoken to.
var serverOptions = regexp.MustCompile(`^(ssl verify required ca-file (@system-ca|cas/[a-z2-7]+\.pem) sni str\([a-z0-9.-]+\)( crt certs/[a-z2-7]+\.pem)? ` +
	`alpn (h2|http/1\.1) ?)?(send-proxy-v2 set-proxy-v2-tlv-fmt\(0xE1\) o[a-z2-7]+:\S+ ?)?(proto h2 ?)?` +
	`(resolvers limpet resolve-prefer ipv4 init-addr last,libc,none)?$`)

func (o outcome) checkServers(t testing.TB) {
	t.Helper()
	ids := map[string]bool{}
	for _, e := range o.preview.Set.Servers.Sorted() {
		s := e.Value
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		references{t, o}.slot(s.Slot)
		id := fmt.Sprintf("%s %d", s.Slot, s.ID)
		if ids[id] || len(words(s.Line())) != 7+len(words(s.Options)) || !serverOptions.MatchString(s.Options) {
			t.Fatalf("the server %q, its id taken: %t", s.Line(), ids[id])
		}
		ids[id] = true
	}
}

func (o outcome) checkAssets(t testing.TB) {
	t.Helper()
	for _, e := range o.preview.Set.Assets.Sorted() {
		if !regexp.MustCompile(`^([a-z]+\.lua|keys\.cfg|(certs|cas)/[a-z2-7]+\.pem|lists/[td][a-z2-7]+\.list|origins/o[a-z2-7]+\.json)$`).MatchString(e.Key) {
			t.Fatalf("a file named %q", e.Key)
		}
		if secret := strings.HasPrefix(e.Key, "certs/") || e.Key == "keys.cfg" || strings.Contains(e.Value.Text, "PRIVATE KEY"); secret != e.Value.Secret {
			t.Fatalf("%s is secret: %t", e.Key, e.Value.Secret)
		}
		if strings.HasPrefix(e.Key, "lists/") && !regexp.MustCompile(`^(certs/[a-z2-7]+\.pem\n)+$`).MatchString(e.Value.Text) {
			t.Fatalf("%s: %q", e.Key, e.Value.Text)
		}
	}
}

var (
	reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	typeForm   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
)

// checkStatus holds every condition to what an API server demands of it.
func (o outcome) checkStatus(t testing.TB) {
	t.Helper()
	for _, u := range o.preview.Updates {
		for _, section := range u.Sections() {
			seen := map[string]bool{}
			for _, c := range section.Conditions {
				if seen[c.Type] || !typeForm.MatchString(c.Type) || !reasonForm.MatchString(c.Reason) || c.Message == "" || len(c.Message) > 32768 ||
					c.Status != "True" && c.Status != "False" && c.Status != "Unknown" {
					t.Fatalf("%s, %s: the condition %+v (there already: %t)", u.Object, section.Name, c, seen[c.Type])
				}
				seen[c.Type] = true
			}
		}
	}
}
