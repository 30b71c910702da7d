package templates

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

// Every line of every map file is made here; docs/architecture.md has the formats.

// never is longer than any date: a session without a limit.
const never = "99999999999"

// maxMilliseconds is the longest time that HAProxy takes, 24 days.
const maxMilliseconds = 2147483647

func hostLines(key string, host *model.Host) ([]line, error) {
	value := host.VirtualHost
	if host.Server != "" {
		value += ";" + host.Server
	}
	return []line{{hostsMap, hostKey(key), files.Entry{Owner: string(host.Owner), Value: value}}}, nil
}

// hostKey turns the model's "port|host" round, so that HAProxy appends the port to what it cut from the hostname.
func hostKey(key string) string {
	port, host, _ := strings.Cut(key, "|")
	if host == "*" {
		return "|*" + port
	}
	if suffix, wild := strings.CutPrefix(host, "*."); wild {
		return suffix + "|*" + port
	}
	return host + "|" + port
}

func parentLines(key string, parent *model.Parent) ([]line, error) {
	return []line{{parentsMap, key, files.Entry{Owner: string(parent.Owner), Value: parent.VirtualHost}}}, nil
}

func pathLines(key string, path *model.Path, place placement.Placement) ([]line, error) {
	if len(path.Candidates) == 0 {
		return nil, fmt.Errorf("path %q has no candidate", key)
	}
	first := path.Candidates[0]
	if len(first.Conditions) == 0 {
		to, err := target(first.Target, place)
		return []line{{pathsMap, key, files.Entry{Owner: string(path.Owner), Value: to}}}, err
	}
	return groupLines(key, path, place)
}

// groupLines writes a path's candidates under a name that is a hash of them and of where they stand: a change is a new
// group, and one entry of paths.map leads from the old to the new.
func groupLines(key string, path *model.Path, place placement.Placement) ([]line, error) {
	var lines []line
	content := sha256.New()
	fmt.Fprintf(content, "%q", key)
	for i, candidate := range path.Candidates {
		to, err := target(candidate.Target, place)
		if err != nil {
			return nil, err
		}
		owner := string(candidate.Owner)
		suffix := "." + strconv.Itoa(i+1)
		head := fmt.Sprintf("%d %s", len(candidate.Conditions), to)
		lines = append(lines, line{candidatesMap, suffix, files.Entry{Owner: owner, Value: head}})
		fmt.Fprintf(content, "%q", head)
		for j, condition := range candidate.Conditions {
			text, err := conditionLine(condition)
			if err != nil {
				return nil, err
			}
			lines = append(lines, line{candidatesMap, suffix + "." + strconv.Itoa(j+1), files.Entry{Owner: owner, Value: text}})
			fmt.Fprintf(content, "%q", text)
		}
	}
	name := "g" + digest(content.Sum(nil))
	for i := range lines {
		lines[i].key = name + lines[i].key
	}
	return append(lines,
		line{candidatesMap, name, files.Entry{Owner: string(path.Owner), Value: fmt.Sprintf("%d %d", len(key), len(path.Candidates))}},
		line{pathsMap, key, files.Entry{Owner: string(path.Owner), Value: name}}), nil
}

func conditionLine(c model.Condition) (string, error) {
	letter, known := map[model.ConditionOn]string{
		model.OnMethod: "m", model.OnHeader: "h", model.OnQuery: "q", model.OnPath: "p",
	}[c.On]
	if !known || strings.ContainsAny(c.Name, "= ") {
		return "", fmt.Errorf("a condition on %s %q cannot be written", c.On, c.Name)
	}
	operator := "="
	if c.Regex {
		operator = "~"
	}
	return letter + operator + c.Name + "=" + c.Value + ";", nil
}

// target is where a request goes, as the rules of the routing block read it: a rule, or a slot and the rule that chose it.
func target(t model.Target, place placement.Placement) (string, error) {
	if t.Backend == "" {
		return t.Rule, nil
	}
	to, err := slot(t.Backend, place)
	return to + ";" + t.Rule, err
}

// invalid stands where a slot would: for no backend at all.
const invalid = "500"

// slot is a backend's, or "500" for none: an invalid backendRef.
func slot(backend string, place placement.Placement) (string, error) {
	if backend == "" {
		return invalid, nil
	}
	if name, placed := place.Slot(backend); placed {
		return name, nil
	}
	return "", fmt.Errorf("%s has no slot", backend)
}

func ruleLines(rule *model.Rule, place placement.Placement) ([]line, error) {
	w := &ruleWriter{rule: rule, place: place}
	switch {
	case rule.Plain(): // paths.map says it all
	case rule.Filters.Redirect != nil:
		w.line(rulesMap, rule.ID, w.share(model.Share{}))
	case len(rule.Split) == 1:
		w.line(rulesMap, rule.ID, w.share(rule.Split[0]))
	default:
		w.split()
	}
	return w.lines, w.err
}

type ruleWriter struct {
	rule  *model.Rule
	place placement.Placement
	lines []line
	err   error
}

func (w *ruleWriter) line(file, key, value string) {
	w.lines = append(w.lines, line{file, key, files.Entry{Owner: string(w.rule.Owner), Value: value}})
}

// split writes the weights. A rule that has no weight at all sends nothing anywhere: 500, as for no valid backendRef. Shares
// without weight are there only for clients whose session chooses them.
func (w *ruleWriter) split() {
	var shares []string
	total := uint64(0)
	sticky := slices.ContainsFunc(w.rule.Split, func(s model.Share) bool { return s.Session != nil && s.Session.Sticky })
	for _, share := range w.rule.Split {
		if share.Weight > 0 || sticky && share.Session != nil {
			shares = append(shares, fmt.Sprintf("%d %s", share.Weight, w.share(share)))
			total += uint64(share.Weight)
		}
	}
	how := "draw;"
	switch {
	case total == 0:
		w.lines = nil
		w.line(rulesMap, w.rule.ID, invalid+";-;-;-;-;-")
		return
	case sticky:
		how = "keep;"
	}
	w.line(rulesMap, w.rule.ID, how+w.rule.ID)
	w.line(splitsMap, w.rule.ID, strings.Join(shares, ","))
}

// share is a record, "<section>;<backend>;<session>;<mirrors>;<limits>;<filters>", or that of a share whose filters redirect. It writes
// what the record names.
func (w *ruleWriter) share(share model.Share) string {
	if w.rule.Filters.Redirect != nil || share.Filters.Redirect != nil {
		return "redirect;" + w.filters(share.Filters)
	}
	to, err := slot(share.Backend, w.place)
	if err != nil {
		w.err = err
	}
	backend, session := "-", "-"
	if share.Session != nil {
		backend, session = share.Session.Backend, share.Session.ID
		w.line(sessionsMap, session, sessionLine(share.Session))
	}
	section, limits := w.way(to)
	mirrors := "-"
	if to != invalid {
		mirrors = w.mirrors(share.Filters)
	}
	return strings.Join([]string{section, backend, session, mirrors, limits, w.filters(share.Filters)}, ";")
}

// way is the section that a request goes to, and its limits: "<attempt>", or for the hop to a slot
// "<attempt>:<deadline>:<slot>".
func (w *ruleWriter) way(to string) (section, limits string) {
	attempt, deadline := milliseconds(w.rule.BackendTimeout), milliseconds(w.rule.RequestTimeout)
	if w.rule.RequestTimeout == model.Unlimited {
		deadline = "-"
		if w.rule.BackendTimeout == 0 {
			attempt = milliseconds(model.Unlimited)
		}
	}
	switch {
	case to == invalid:
		return to, "-"
	case deadline != "-":
		return hopName, attempt + ":" + deadline + ":" + to
	}
	return to, attempt
}

// milliseconds are at least one, because HAProxy takes 0 for no limit; "-" is none.
func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(min(max(d.Milliseconds(), 1), maxMilliseconds), 10)
}

// sessionLine has the cookie's attributes last: they are the only field that may hold the separator.
//
// SameSite is Lax against GEP-1619's SHOULD of Strict: Strict would lose the session of everyone who arrives by a link or
// comes back from a login elsewhere (docs/decisions).
func sessionLine(s *model.Session) string {
	absolute, idle, refresh, lifetime := never, "", "", "session"
	if s.Absolute > 0 {
		absolute = strconv.FormatInt(int64(s.Absolute.Seconds()), 10)
	}
	if s.Idle > 0 {
		seconds := int64(s.Idle.Seconds())
		idle = strconv.FormatInt(seconds, 10)
		refresh = strconv.FormatInt(min(max(seconds/10, 1), 60), 10)
	}
	if s.Permanent {
		lifetime = "permanent"
	}
	return strings.Join([]string{
		string(s.Carrier) + ":" + s.Name, orNothing(s.OtherName), s.Scope + "." + s.Backend, absolute, idle, refresh, lifetime,
		"Path=" + s.Path + "; HttpOnly; SameSite=Lax",
	}, ";")
}

func orNothing(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// sniEntries leads from a port and a server name to the listener that answers for it. Ports at layer 4 ask hosts.map, which knows
// more: where a connection goes.
func sniEntries(frame model.Frame) table.Table[files.Entry] {
	edit := table.Table[files.Entry]{}.Edit()
	for _, port := range frame.Ports {
		if port.Layer4() {
			continue
		}
		for _, server := range port.Servers {
			hostname := server.Hostname
			if hostname == "" {
				hostname = "*"
			}
			edit.Set(hostKey(model.HostKey(port.ID, hostname)), files.Entry{Owner: string(server.Owner), Value: server.ID})
		}
	}
	return edit.Table()
}

// digest is a short name for content: 80 bits, in letters and digits that every context takes.
func digest(sum []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}
