package leader

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

// duration is short, so that tests are.
const duration = 3 * time.Second

type replica struct {
	*Election
	starts atomic.Int32
	stop   func()
}

func run(t *testing.T, s *apiservertest.Server, namespace, name string) *replica {
	t.Helper()
	r := &replica{}
	var err error
	r.Election, err = New(Options{
		Config: s.Config, Namespace: namespace, Lease: "limpet", Identity: name, Duration: duration,
		OnStart: func() { r.starts.Add(1) }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)).With("pod", name),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(r.stop)
	return r
}

func TestOneLeadsAndGivesWay(t *testing.T) {
	s := apiservertest.Start(t, false)
	namespace := s.Namespace(t)
	a := run(t, s, namespace, "a")
	apiservertest.Eventually(t, 10*time.Second, "a leads", a.Leads)
	b := run(t, s, namespace, "b")
	time.Sleep(duration)
	if b.Leads() || !a.Leads() {
		t.Fatal("not a alone leads")
	}
	start := time.Now()
	a.stop()
	if a.Leads() {
		t.Error("who ended leads still")
	}
	apiservertest.Eventually(t, duration*2, "b leads", b.Leads)
	t.Logf("b leads %s after a was told to end", time.Since(start))

	// Without an API server nobody leads after a while, nothing ends, and later somebody leads again.
	s.StopAPI(t)
	apiservertest.Eventually(t, duration+time.Second, "b leads no more", func() bool { return !b.Leads() })
	s.StartAPI(t)
	apiservertest.Eventually(t, 10*duration, "b leads again", b.Leads)
	if starts := b.starts.Load(); starts != 2 {
		t.Errorf("b was told %d times that it begins", starts)
	}
}

// TestALeaseThatIsTakenAway has somebody else write into it that it is theirs.
func TestALeaseThatIsTakenAway(t *testing.T) {
	s := apiservertest.Start(t, false)
	namespace := s.Namespace(t)
	a := run(t, s, namespace, "a")
	apiservertest.Eventually(t, 10*time.Second, "a leads", a.Leads)
	lease := &coordinationv1.Lease{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "limpet"}, lease); err != nil {
		t.Fatal(err)
	}
	thief, now := "thief", lease.Spec.RenewTime.DeepCopy()
	now.Time = time.Now()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &thief, now
	for s.Client.Update(t.Context(), lease) != nil {
		if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "limpet"}, lease); err != nil {
			t.Fatal(err)
		}
		lease.Spec.HolderIdentity = &thief
	}
	apiservertest.Eventually(t, duration, "a leads no more", func() bool { return !a.Leads() })
	apiservertest.Eventually(t, 10*duration, "a leads again, when the thief does not renew", a.Leads)
}
