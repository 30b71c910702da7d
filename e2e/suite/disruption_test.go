package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requests is how many each test makes at least.
const requests = 10_000

// One world serves all these tests: what one of them breaks, the next one notices.
func TestDisruptions(t *testing.T) {
	s := setting(t)
	if n := len(s.settled(t)); n < 2 {
		t.Fatalf("the release has %d replicas, these tests need two", n)
	}
	w := s.world(t, "disruptions", 3)
	t.Run("HelmUpgrade", w.helmUpgrade)
	t.Run("ControllerCrashLoops", w.controllerCrashLoops)
	t.Run("LeadersReplicaIsDeleted", w.leaderDeleted)
	t.Run("OneReplicaIsEvicted", w.evicted)
	t.Run("BackendsRollOut", w.backendsRollOut)
	if s.Processes {
		t.Run("APIServerStops", w.apiServerStops)
	} else {
		t.Log("the API server of a user's cluster is not ours to stop: local and kind do (NODE_PROCESSES)")
	}
	t.Run("HAProxyIsKilled", w.haproxyKilled)
	t.Run("PodWithoutAPIServer", w.podWithoutAPIServer)
}

// A release is upgraded, so that all of its pods are new ones.
func (w *World) helmUpgrade(t *testing.T) {
	before := w.settled(t)
	f := traffic(t, w.URL, host, false)
	arguments := append([]string{"upgrade", w.Release, w.Chart, "--namespace", w.Namespace, "--wait", "--timeout", "5m",
		"--set-string", fmt.Sprintf("podAnnotations.upgraded=%d", time.Now().UnixNano())}, w.Values...)
	if _, err := w.run(t.Context(), w.Helm, arguments...); err != nil {
		t.Fatal(err)
	}
	w.changed(t, before)
	f.Quiet(t, requests)
}

// changed waits until none of the pods is left.
func (w *World) changed(t *testing.T, before []corev1.Pod) {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		for _, pod := range w.settled(t) {
			if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
				return fmt.Errorf("pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}

// All controllers crash for a minute, as often as the kubelet starts them. A change made meanwhile arrives after it.
func (w *World) controllerCrashLoops(t *testing.T) {
	f := traffic(t, w.URL, host, false)
	crashes := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		for _, pod := range w.pods(t) {
			// A Go program that gets SIGQUIT writes its stacks and exits with 2.
			if _, err := w.kubectl(t.Context(), "exec", pod, "-c", "controller", "--", "sh", "-c", "kill -QUIT 1"); err == nil {
				crashes++
			}
		}
	}
	if crashes < 4 {
		t.Errorf("only %d crashes: this shows nothing", crashes)
	}
	t.Logf("%d crashes", crashes)
	w.create(t, route(w.ns, "after-crashes", "after-crashes.example.com", "/"))
	// A container that crashed often is started again after a while of the kubelet's.
	w.answers(t, "after-crashes.example.com", 6*time.Minute)
	f.Quiet(t, requests)
	w.settled(t)
}

// pods are the names of all pods of the release that run.
func (w *World) pods(t *testing.T) []string {
	t.Helper()
	var list corev1.PodList
	err := w.List(t.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": w.Release})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

// answers waits until a host is served.
func (w *World) answers(t *testing.T, hostname string, patience time.Duration) {
	t.Helper()
	probe := newClient(&Traffic{url: w.URL, host: hostname}, 1)
	eventually(t, patience, func() error {
		_, err := probe.once()
		return err
	})
}

// The pod that leads goes. Another one takes over: a change after it goes live and its status is written.
func (w *World) leaderDeleted(t *testing.T) {
	w.settled(t)
	leader, err := w.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	f := traffic(t, w.URL, host, false)
	if err := w.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: leader}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func() error {
		now, err := w.leader(t)
		if err == nil && now == leader {
			err = fmt.Errorf("%s still leads", now)
		}
		return err
	})
	w.create(t, route(w.ns, "new-leader", "new-leader.example.com", "/"))
	w.answers(t, "new-leader.example.com", time.Minute)
	w.accepted(t, "new-leader")
	f.Quiet(t, requests)
	w.settled(t)
}

// One of two replicas is evicted, as by a node that is drained.
func (w *World) evicted(t *testing.T) {
	replica := w.settled(t)[0]
	f := traffic(t, w.URL, host, false)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: replica.Namespace, Name: replica.Name}}
	if err := w.SubResource("eviction").Create(t.Context(), &replica, eviction); err != nil {
		t.Fatal(err)
	}
	w.gone(t, replica)
	f.Quiet(t, requests)
	w.settled(t)
}

func (w *World) gone(t *testing.T, pod corev1.Pod) {
	t.Helper()
	eventually(t, 6*time.Minute, func() error {
		for _, name := range w.pods(t) {
			if name == pod.Name {
				return fmt.Errorf("pod %s is still there", name)
			}
		}
		return nil
	})
}

// The backends are replaced one by one; each has 5 s to end. No request fails, and a session moves only when its pod ends.
func (w *World) backendsRollOut(t *testing.T) {
	f := traffic(t, w.URL, host, false)
	old := f.Holders()
	var d appsv1.Deployment
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "shop"}, &d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Annotations = map[string]string{"rolled-out": time.Now().String()}
	if err := w.Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	w.available(t, "shop")
	f.AtLeast(t, requests)
	f.Stop()
	t.Log(f)
	if failed := f.Failed(); failed > 0 {
		t.Errorf("%d requests failed", failed)
	}
	for _, move := range f.Moved() {
		// A new session may have come to an old pod that was still to end.
		if _, known := old[move.From]; !known {
			t.Errorf("client %d was moved from %s, which is one of the new pods", move.Client, move.From)
		}
	}
}

// The API server hangs for a minute: requests go on, and a change that was made as soon as it is back arrives.
func (w *World) apiServerStops(t *testing.T) {
	f := traffic(t, w.URL, host, false)
	resume := pause(t, "kube-apiserver")
	time.Sleep(time.Minute)
	resume()
	eventually(t, time.Minute, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return client.IgnoreAlreadyExists(w.Create(ctx, route(w.ns, "after-outage", "after-outage.example.com", "/")))
	})
	w.answers(t, "after-outage.example.com", 2*time.Minute)
	w.accepted(t, "after-outage")
	f.Quiet(t, requests)
	w.settled(t)
}

// The worker of one replica is killed: connections are refused there for a moment, and a client that tries again
// notices nothing.
func (w *World) haproxyKilled(t *testing.T) {
	replica := w.settled(t)[0]
	f := traffic(t, w.URL, host, true)
	time.Sleep(2 * time.Second)
	if _, err := w.kubectl(t.Context(), "exec", replica.Name, "-c", "haproxy", "--", "sh", "-c",
		"kill -9 $(cat /proc/1/task/1/children)"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		for _, pod := range w.replicas(t) {
			for _, container := range pod.Status.ContainerStatuses {
				if pod.Name == replica.Name && container.Name == "haproxy" && container.RestartCount > restarts(replica) && container.Ready {
					return nil
				}
			}
		}
		return fmt.Errorf("HAProxy of %s was not started again", replica.Name)
	})
	f.AtLeast(t, requests)
	f.Stop()
	t.Log(f)
	times, _, long := f.Refusal()
	t.Logf("refused or reset %d times within %s", times, long)
	if failed := f.Failed(); failed > 0 {
		t.Errorf("%d requests failed", failed)
	}
	if long > 5*time.Second {
		t.Errorf("connections were refused for %s, at most 5 s are allowed", long)
	}
	if moves := f.Moved(); len(moves) > 0 {
		t.Errorf("%d sessions moved: %v", len(moves), moves)
	}
}

func restarts(pod corev1.Pod) int32 {
	for _, container := range pod.Status.ContainerStatuses {
		if container.Name == "haproxy" {
			return container.RestartCount
		}
	}
	return 0
}

// A pod of the release that never reaches an API server says so, and is never ready.
func (w *World) podWithoutAPIServer(t *testing.T) {
	pod := w.settled(t)[0]
	lonely := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "without-api-server"},
		Spec:       *pod.Spec.DeepCopy(),
	}
	lonely.Spec.NodeName = ""
	for i := range lonely.Spec.InitContainers {
		c := &lonely.Spec.InitContainers[i]
		if c.Name == "controller" {
			c.Env = append(c.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "127.0.0.1"}, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "9"})
		}
	}
	_ = w.Delete(t.Context(), lonely.DeepCopy(), client.GracePeriodSeconds(0))
	eventually(t, time.Minute, func() error { return w.Create(t.Context(), lonely.DeepCopy()) })
	t.Cleanup(func() { _ = w.Delete(background(), lonely, client.GracePeriodSeconds(0)) })
	eventually(t, time.Minute, func() error {
		log, err := w.kubectl(t.Context(), "logs", lonely.Name, "-c", "controller")
		if err == nil && !strings.Contains(log, "API server") {
			err = fmt.Errorf("the log does not say that there is no API server: %.2000s", log)
		}
		return err
	})
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		var now corev1.Pod
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(lonely), &now); err != nil {
			t.Fatal(err)
		}
		for _, c := range now.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				t.Fatal("it is ready")
			}
		}
		for _, c := range now.Status.InitContainerStatuses {
			if c.RestartCount > 0 {
				t.Fatalf("container %s exited: %+v", c.Name, c.LastTerminationState)
			}
		}
	}
}
