package behaviour

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
	"github.com/limpet-gateway/limpet/templates"
)

// limpet is the pipeline from files to HAProxy.
type limpet struct {
	options    limpetOptions
	dir        string
	files      *cluster.Files
	builder    *graph.Builder
	translator *translate.Translator
	renderer   *templates.Renderer
	store      *files.Store
	process    *haproxy.Process

	graph  *graph.Graph
	config model.Config
	placed table.Table[*model.Backend]
	place  placement.Placement
	set    files.Set
}

type limpetOptions struct {
	trusted  []netip.Prefix
	problems bool
	sign     []templates.SignKey
}

// Keys for tokens.
var (
	keyA = templates.SignKey{ID: "a", Secret: "3Lm2TOntsDDfXdggrmms2YXqwLq1kjA2sLPGtYXreUk="}
	keyB = templates.SignKey{ID: "b", Secret: "q0XmY0vPpFOSoTkWpYcI9w2pHhM1m0GkSxT0cQm3c2E="}
)

func newLimpet(t testing.TB, w *World) *limpet {
	t.Helper()
	l := &limpet{
		dir:   filepath.Join(w.folder, "run"),
		files: cluster.NewFiles(cluster.FilesOptions{Paths: []string{w.objects()}}),
		builder: graph.NewBuilder(graph.Options{
			DefaultAddress: w.address(), PortOffset: portOffset,
		}),
		options: limpetOptions{sign: []templates.SignKey{keyA}},
	}
	var err error
	if l.store, err = files.Open(l.dir); err != nil {
		t.Fatal(err)
	}
	if l.process, err = haproxy.NewProcess(haproxytest.Binary(t), l.dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.end(t) })
	return l
}

// begin makes the stages that depend on options.
func (l *limpet) begin(t testing.TB) {
	t.Helper()
	l.translator = translate.New(translate.Options{NamesKey: []byte("names of endpoints"), TrustedProxies: l.options.trusted})
	var err error
	l.renderer, err = templates.NewRenderer(templates.Settings{
		AdminSocket: haproxy.AdminSocket(l.dir), HealthSocket: filepath.Join(l.dir, "run", "health.sock"),
		Instance: filepath.Base(filepath.Dir(l.dir)), HardStopAfter: "1h", SignKeys: l.options.sign,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// apply makes HAProxy serve what the files say.
func (l *limpet) apply(t testing.TB) {
	t.Helper()
	if l.renderer == nil {
		l.begin(t)
	}
	snapshot, problems := l.files.Load()
	if len(problems) > 0 && !l.options.problems {
		t.Fatalf("the manifests: %v", problems)
	}
	l.graph = l.builder.Build(snapshot)
	l.config = l.translator.Config(l.graph)
	l.arrange()
	set, faults, err := l.renderer.Render(l.config, l.place)
	if err != nil || len(faults) > 0 {
		t.Fatalf("rendering: %v %v", err, faults)
	}
	l.set = set
	l.serve(t, set)
}

// arrange gives every backend a slot.
func (l *limpet) arrange() {
	var added, removed []string
	for change := range l.config.Backends.Diff(l.placed) {
		switch {
		case !change.HadOld:
			added = append(added, change.Key)
		case !change.HasNew:
			removed = append(removed, change.Key)
		}
	}
	l.place = l.place.Update(added, removed)
	l.placed = l.config.Backends
	l.place.Cookies, l.place.Headers = templates.Names(l.config)
}

func (l *limpet) serve(t testing.TB, set files.Set) {
	t.Helper()
	number, faults, err := l.store.Write(set, l.place)
	if err != nil || len(faults) > 0 {
		t.Fatalf("writing: %v %v", err, faults)
	}
	if err := haproxy.Check(t.Context(), haproxytest.Binary(t), l.store.Path(number)); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Switch(number); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if l.process.Alive() {
		err = l.process.Reload(ctx)
	} else {
		err = l.process.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// restart ends HAProxy and starts it again from the files.
func (w *World) restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended, end := context.WithCancel(ctx)
	end()
	if err := w.limpet.process.Stop(ended); err != nil {
		t.Fatal(err)
	}
	if err := w.limpet.process.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

func (l *limpet) end(t testing.TB) {
	if log, err := os.ReadFile(filepath.Join(l.dir, "haproxy.log")); err == nil && t.Failed() {
		t.Logf("HAProxy's log ends with:\n%s", log[max(0, len(log)-2000):])
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.process.Stop(ended)
}

// processes are what HAProxy's master says.
type processes struct {
	master, worker, reloads int
	old                     []int
}

// processes asks the master: lines of "<pid> <type> <reloads> <uptime> <version>" under headings.
func (w *World) processes(t testing.TB) processes {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(w.limpet.dir, "run", "master.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "show proc;quit\n"); err != nil {
		t.Fatal(err)
	}
	var found processes
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		reloads, _ := strconv.Atoi(fields[2])
		switch {
		case err != nil:
		case fields[1] == "master":
			found.master, found.reloads = pid, reloads
		case fields[1] == "worker" && found.worker == 0:
			found.worker = pid
		case fields[1] == "worker":
			found.old = append(found.old, pid)
		}
	}
	if found.master == 0 || found.worker == 0 {
		t.Fatal("HAProxy's master knows no worker")
	}
	return found
}

// Reloads is how often HAProxy was reloaded since its start.
func (w *World) Reloads(t testing.TB) int { return w.processes(t).reloads }

// command asks HAProxy itself, where no request can tell.
func (w *World) command(t testing.TB, line string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", haproxy.AdminSocket(w.limpet.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
