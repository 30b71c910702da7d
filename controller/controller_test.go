package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/dataplane"
	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

func TestMain(m *testing.M) {
	// controller-runtime leaves two for each informer of several namespaces.
	goleak.VerifyTestMain(apiservertest.Tests{M: m},
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformer.func1"),
		goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformerHandlerRegistration.func1"))
}

// world is a Source, an Engine and a StatusWriter in one, which a test drives.
type world struct {
	snapshots chan cluster.Snapshot
	log       bytes.Buffer

	mu sync.Mutex
	// answers are what Apply answers, one after another, and then success.
	answers []func() dataplane.Result
	configs []model.Config
	// statuses are what was written.
	statuses  [][]*status.Update
	statusErr []error
	changed   chan struct{}
}

func newWorld() *world {
	return &world{snapshots: make(chan cluster.Snapshot), changed: make(chan struct{}, 1000)}
}

func (w *world) Run(ctx context.Context, emit func(cluster.Snapshot)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s, open := <-w.snapshots:
			if !open {
				return errors.New("the source broke")
			}
			emit(s)
		}
	}
}

func (w *world) Apply(_ context.Context, config model.Config) dataplane.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.configs = append(w.configs, config)
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		return answer()
	}
	return dataplane.Result{Revision: uint64(len(w.configs)), Commands: 1}
}

func (w *world) Write(_ context.Context, updates []*status.Update) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statuses = append(w.statuses, updates)
	w.changed <- struct{}{}
	if len(w.statusErr) > 0 {
		err := w.statusErr[0]
		w.statusErr = w.statusErr[1:]
		return err
	}
	return nil
}

// programmed is what the latest statuses say of a Gateway.
func (w *world) programmed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.statuses) == 0 {
		return "nothing"
	}
	for _, update := range w.statuses[len(w.statuses)-1] {
		if update.Kind != "Gateway" {
			continue
		}
		for _, c := range update.Status.Gateway.Conditions {
			if c.Type == "Programmed" {
				return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
		}
	}
	return "no Gateway"
}

func (w *world) applied() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.configs)
}

func (w *world) controller() *Controller {
	return New(Options{
		Source: w, Engine: w, Status: w, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Retry: time.Millisecond, RetryMost: 4 * time.Millisecond,
	})
}

// start runs a Controller until the test ends.
func (w *world) start(t *testing.T) *Controller {
	t.Helper()

	c := w.controller()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ends with %v", err)
		}
	})
	return c
}

// until waits for a status that begins with a text.
func (w *world) until(t *testing.T, want string) {
	t.Helper()

	timeout := time.After(10 * time.Second)
	for !strings.HasPrefix(w.programmed(), want) {
		select {
		case <-w.changed:
		case <-timeout:
			t.Fatalf("status %q, want %q", w.programmed(), want)
		}
	}
}

// objects is a Snapshot with one Gateway.
func objects(generation int64) cluster.Snapshot {
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "limpet", Generation: 1}}
	class.Spec.ControllerName = graph.DefaultControllerName
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gw", Generation: generation}}
	gateway.Spec.GatewayClassName = "limpet"
	gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	return cluster.Snapshot{GatewayClasses: cluster.NewObjects(class), Gateways: cluster.NewObjects(gateway)}
}

func TestASnapshotGoesToTheEngineAndItsResultToTheStatus(t *testing.T) {
	t.Parallel()

	w := newWorld()
	w.start(t)
	w.snapshots <- objects(1)
	w.until(t, "True Programmed")
	if len(w.configs) != 1 || len(w.configs[0].Frame.Ports) != 1 {
		t.Errorf("configurations: %+v", w.configs)
	}
}

func TestAFailureIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()

	w := newWorld()
	hold := make(chan struct{})
	failure := func() dataplane.Result { return dataplane.Result{Err: errors.New("its socket does not answer")} }
	w.answers = []func() dataplane.Result{failure, failure, func() dataplane.Result { <-hold; return dataplane.Result{} }}
	w.start(t)
	w.snapshots <- objects(1)
	<-w.changed
	<-w.changed
	close(hold)
	w.until(t, "True Programmed")
	w.mu.Lock()
	first := w.statuses[0]
	w.mu.Unlock()
	said := false
	for _, section := range first[1].Sections() {
		for _, c := range section.Conditions {
			said = said || c.Type == "Programmed" && c.Reason == "Pending" && strings.Contains(c.Message, "its socket does not answer")
		}
	}
	if !said {
		t.Errorf("the first status: %+v", first[1].Status.Gateway)
	}
}

func TestThePausesBetweenAttemptsGrow(t *testing.T) {
	t.Parallel()

	c := newWorld().controller()
	var pauses []time.Duration
	for c.failures = range 5 {
		pauses = append(pauses, c.wait())
	}
	if fmt.Sprint(pauses) != "[0s 1ms 2ms 4ms 4ms]" {
		t.Error(pauses)
	}
}

func TestAStatusThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()

	w := newWorld()
	w.statusErr = []error{errors.New("no space left"), errors.New("no space left")}
	w.start(t)
	w.snapshots <- objects(1)
	for range 3 {
		<-w.changed
	}
}

func TestAPanicCostsTheChangeAndNothingElse(t *testing.T) {
	t.Parallel()

	w := newWorld()
	c := w.controller()
	good := objects(1)
	if err := c.Step(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.HTTPRoutes = cluster.NewObjects[*gatewayv1.HTTPRoute](nil)
	bad.Gateways = objects(2).Gateways
	var panicked *PanicError
	if err := c.Step(t.Context(), bad); !errors.As(err, &panicked) {
		t.Fatalf("error %v", err)
	}
	if w.applied() != 1 || !strings.Contains(w.log.String(), "a mistake in Limpet") || !strings.Contains(w.log.String(), "goroutine") {
		t.Errorf("%d configurations; log:\n%s", w.applied(), w.log.String())
	}
	if err := c.Step(t.Context(), objects(3)); err != nil {
		t.Fatal(err)
	}
	if w.applied() != 2 || !strings.HasPrefix(w.programmed(), "True") {
		t.Errorf("%d configurations, %s", w.applied(), w.programmed())
	}
}

func TestAPanicOfTheEngineIsAFailure(t *testing.T) {
	t.Parallel()

	w := newWorld()
	w.answers = []func() dataplane.Result{func() dataplane.Result { panic("out of slots") }}
	w.start(t)
	w.snapshots <- objects(1)
	w.until(t, "True Programmed")
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.configs) != 2 {
		t.Errorf("%d attempts", len(w.configs))
	}
}

func TestWhatTheEngineDoesByItselfReachesTheStatus(t *testing.T) {
	t.Parallel()

	w := newWorld()
	c := w.start(t)
	w.snapshots <- objects(1)
	w.until(t, "True Programmed")
	c.Report(dataplane.Result{Revision: 5, LeftOut: map[string]string{"Gateway default/gw": "cannot bind"}})
	w.until(t, "False Invalid HAProxy refuses it: cannot bind")
	c.Report(dataplane.Result{Revision: 4})
	c.Report(dataplane.Result{Revision: 6})
	w.until(t, "True Programmed")
}

func TestAnOlderReportSaysNothing(t *testing.T) {
	t.Parallel()

	w := newWorld()
	c := w.controller()
	c.reported(t.Context(), dataplane.Result{Revision: 1})
	if err := c.Step(t.Context(), objects(1)); err != nil {
		t.Fatal(err)
	}
	c.reported(t.Context(), dataplane.Result{Revision: 0, Err: errors.New("old")})
	if len(w.statuses) != 1 {
		t.Errorf("%d statuses", len(w.statuses))
	}
}

func TestOfSeveralSnapshotsTheNewestCounts(t *testing.T) {
	t.Parallel()

	w := newWorld()
	busy := make(chan struct{})
	w.answers = []func() dataplane.Result{func() dataplane.Result { <-busy; return dataplane.Result{} }}
	w.start(t)
	for generation := range int64(50) {
		w.snapshots <- objects(generation + 1)
	}
	close(busy)
	timeout := time.After(10 * time.Second)
	for {
		select {
		case <-w.changed:
		case <-timeout:
			t.Fatal("the newest does not come")
		}
		w.mu.Lock()
		latest := w.statuses[len(w.statuses)-1][1].Status.Gateway.Conditions[0].ObservedGeneration
		count := len(w.configs)
		w.mu.Unlock()
		if latest == 50 {
			if count > 10 {
				t.Errorf("%d configurations for 50 snapshots", count)
			}
			return
		}
	}
}

func TestABrokenSourceEndsTheLoopWithItsError(t *testing.T) {
	t.Parallel()

	w := newWorld()
	close(w.snapshots)
	if err := w.controller().Run(t.Context()); err == nil || err.Error() != "the source broke" {
		t.Errorf("error %v", err)
	}
}
