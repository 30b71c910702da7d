package behaviour

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/keys"
	"github.com/limpet-gateway/limpet/templates"
)

// limpet is Limpet as `limpet serve` wires it, but that a test says when the files are read.
type limpet struct {
	options    limpetOptions
	address    netip.Addr
	objects    string
	dir        string
	log        *log
	files      *cluster.Files
	engine     *dataplane.Engine
	controller *controller.Controller

	// What was rendered last: the Engine does it at times of its own too.
	mu     sync.Mutex
	config model.Config
	set    files.Set
	// What came of the last Step.
	result dataplane.Result
	status []*status.Update
}

type limpetOptions struct {
	trusted  []netip.Prefix
	problems bool
	names    []byte
	sign     []keys.SignKey
	level    slog.Level
	// accessLog goes to logSocket.
	accessLog model.AccessLog
	timeout   time.Duration
}

// Keys for tokens.
var (
	keyA = keys.SignKey{ID: "a", Secret: bytes.Repeat([]byte("a"), 32)}
	keyB = keys.SignKey{ID: "b", Secret: bytes.Repeat([]byte("b"), 32)}
)

func newLimpet(t testing.TB, w *World) *limpet {
	t.Helper()
	l := &limpet{
		address: w.address(), objects: w.objects(), dir: filepath.Join(w.folder, "run"), log: &log{},
		options: limpetOptions{names: []byte("names of endpoints"), sign: []keys.SignKey{keyA}},
	}
	t.Cleanup(func() { l.end(t) })
	return l
}

// start brings Limpet up. An HAProxy that runs already is adopted.
func (l *limpet) start(t testing.TB) {
	t.Helper()
	settings := controller.Settings(l.dir, l.options.sign)
	settings.AccessLog, settings.LogTarget = l.options.accessLog, l.logSocket()
	renderer, err := templates.NewRenderer(settings)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: l.options.level}))
	l.engine, err = dataplane.New(dataplane.Options{
		Dir: l.dir, Binary: haproxytest.Binary(t), Logger: logger, ReloadEvery: 10 * time.Millisecond,
		Render: func(config model.Config, place placement.Placement) (files.Set, []dataplane.Fault, error) {
			set, found, err := renderer.Render(config, place)
			var faults []dataplane.Fault
			for _, fault := range found {
				faults = append(faults, dataplane.Fault{Owner: fault.Owner, Message: fault.Message})
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.config, l.set = config, set
			return set, faults, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.files = cluster.NewFiles(cluster.FilesOptions{Paths: []string{l.objects}, Log: logger})
	l.controller = controller.New(controller.Options{
		Engine: engine{l}, Status: statuses{l}, Log: logger, Timeout: l.options.timeout,
		Graph:     graph.Options{DefaultAddress: l.address, PortOffset: portOffset},
		Translate: translate.Options{NamesKey: l.options.names, TrustedProxies: l.options.trusted},
	})
	if err := l.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (l *limpet) logSocket() string { return filepath.Join(filepath.Dir(l.dir), "log.sock") }

// engine and statuses keep what passes.
type engine struct{ *limpet }

func (e engine) Apply(ctx context.Context, config model.Config) dataplane.Result {
	e.result = e.engine.Apply(ctx, config)
	return e.result
}

type statuses struct{ *limpet }

func (s statuses) Write(_ context.Context, updates []*status.Update) error {
	s.status = updates
	return nil
}

// rendered is what HAProxy is to serve.
func (l *limpet) rendered() (model.Config, files.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config, l.set
}

// apply makes HAProxy serve what the files say.
func (l *limpet) apply(t testing.TB) {
	t.Helper()
	if l.engine == nil {
		l.start(t)
	}
	snapshot, problems := l.files.Load()
	if len(problems) > 0 && !l.options.problems {
		t.Fatalf("the manifests: %v", problems)
	}
	if err := l.controller.Step(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	if len(l.result.LeftOut) > 0 && !l.options.problems {
		t.Fatalf("left out: %v", l.result.LeftOut)
	}
}

// condition is a condition in the status of an object, as "HTTPRoute default/x", of the first section that has it.
func (w *World) condition(t testing.TB, object, kind string) metav1.Condition {
	t.Helper()
	for _, update := range w.limpet.status {
		if update.Object.String() != object {
			continue
		}
		for _, section := range update.Sections() {
			for _, condition := range section.Conditions {
				if condition.Type == kind {
					return condition
				}
			}
		}
	}
	t.Fatalf("%s has no condition %s", object, kind)
	return metav1.Condition{}
}

// listenerCondition is a condition of one listener of a Gateway.
func (w *World) listenerCondition(t testing.TB, gateway, listener, kind string) metav1.Condition {
	t.Helper()
	return w.listenerConditionOf(t, "Gateway default/"+gateway, listener, kind)
}

// listenerConditionOf is a condition of one listener of a Gateway or ListenerSet.
func (w *World) listenerConditionOf(t testing.TB, object, listener, kind string) metav1.Condition {
	t.Helper()
	for _, update := range w.limpet.status {
		if update.Object.String() != object {
			continue
		}
		for _, section := range update.Sections() {
			for _, condition := range section.Conditions {
				if section.Name == "listener "+listener && condition.Type == kind {
					return condition
				}
			}
		}
	}
	t.Fatalf("listener %s of %s has no condition %s", listener, object, kind)
	return metav1.Condition{}
}

// restartLimpet ends Limpet, with HAProxy going on, and starts it again.
func (w *World) restartLimpet(t testing.TB) {
	t.Helper()
	if err := w.limpet.engine.Close(); err != nil {
		t.Fatal(err)
	}
	w.limpet.start(t)
	w.Sync(t)
}

// stop ends Limpet and HAProxy.
func (w *World) stop(t testing.TB) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.limpet.engine.Shutdown(ended); err != nil {
		t.Fatal(err)
	}
}

// restart ends Limpet and HAProxy, and starts both again from the files.
func (w *World) restart(t testing.TB) {
	t.Helper()
	w.stop(t)
	w.limpet.start(t)
	w.Sync(t)
}

func (l *limpet) end(t testing.TB) {
	if l.engine == nil {
		return
	}
	if t.Failed() {
		if text, err := os.ReadFile(filepath.Join(l.dir, "haproxy.log")); err == nil {
			t.Logf("HAProxy's log ends with:\n%s", text[max(0, len(text)-6000):])
		}
		t.Logf("Limpet's log ends with:\n%s", l.log.tail(3000))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.engine.Shutdown(ended)
}

// log is what Limpet says.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *log) tail(length int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	return text[max(0, len(text)-length):]
}
