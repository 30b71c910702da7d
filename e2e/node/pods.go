package node

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/limpet-gateway/limpet/e2e/apiserver"
)

// keepPods makes as many pods as Deployments ask for, and removes those whose Deployment is gone.
func (n *Node) keepPods() error {
	wanted, err := apiserver.As[appsv1.Deployment](n.options.Server, deployments)
	if err != nil {
		return err
	}
	there, err := apiserver.As[corev1.Pod](n.options.Server, pods)
	if err != nil {
		return err
	}
	owned := map[types.UID][]*corev1.Pod{}
	for _, pod := range there {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == deployments.Kind {
			owned[owner.UID] = append(owned[owner.UID], pod)
		}
	}
	var surplus []*corev1.Pod
	for _, deployment := range wanted {
		mine, replicas := owned[deployment.UID], int(*deployment.Spec.Replicas)
		delete(owned, deployment.UID)
		for i := len(mine); i < replicas; i++ {
			if err := n.createPod(deployment); err != nil {
				return err
			}
		}
		surplus = append(surplus, mine[min(replicas, len(mine)):]...)
	}
	for _, orphans := range owned {
		surplus = append(surplus, orphans...)
	}
	for _, pod := range surplus {
		if err := n.options.Server.Delete(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) createPod(deployment *appsv1.Deployment) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// The form of these names is known to tests that want to know the Deployment.
			Namespace: deployment.Namespace, Name: deployment.Name + "-" + rand.String(10) + "-" + rand.String(5),
			Labels: deployment.Spec.Template.Labels, Annotations: deployment.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, deployments)},
		},
		Spec: *deployment.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = Name
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{ready(false)}}
	object, err := untyped(pod, pods)
	if err != nil {
		return err
	}
	_, err = n.options.Server.Create(object)
	return err
}

// startPods starts the pods whose volumes are there, and ends those that are gone.
func (n *Node) startPods() error {
	there, err := apiserver.As[corev1.Pod](n.options.Server, pods)
	if err != nil {
		return err
	}
	wanted := map[types.UID]bool{}
	for _, pod := range there {
		wanted[pod.UID] = true
		if n.process(pod.UID) == nil && pod.Spec.NodeName == Name {
			if err := n.start(pod); err != nil {
				return err
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, process := range n.procs {
		if !wanted[uid] {
			process.end()
			delete(n.procs, uid)
		}
	}
	return nil
}

func (n *Node) process(uid types.UID) *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.procs[uid]
}

// start starts a pod; one whose volumes are not there yet is left for later, as a kubelet does.
func (n *Node) start(pod *corev1.Pod) error {
	mounts, err := n.mount(pod)
	if err != nil {
		n.options.Log.Debug("pod waits", "pod", pod.Namespace+"/"+pod.Name, "for", err)
		return nil
	}
	address := n.next
	if n.next = n.next.Next(); !n.options.Pods.Contains(n.next) {
		return fmt.Errorf("no addresses for pods are left in %s", n.options.Pods)
	}
	process, err := begin(n.options.Program, environment(pod, address, mounts))
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	n.mu.Lock()
	n.procs[pod.UID], n.names[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = process, process
	n.mu.Unlock()
	go n.follow(pod, process, address.String())
	return nil
}

// follow says of a pod that it is ready, and that it failed.
func (n *Node) follow(pod *corev1.Pod, process *process, address string) {
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		HostIP: address, Conditions: []corev1.PodCondition{ready(true)}}
	select {
	case <-process.started:
		n.setStatus(pod, status)
	case <-process.ended:
	}
	<-process.ended
	if process.wanted() {
		n.options.Log.Error("a pod failed", "pod", pod.Namespace+"/"+pod.Name, "output", process.output.all())
		status.Phase, status.Conditions = corev1.PodFailed, []corev1.PodCondition{ready(false)}
		n.setStatus(pod, status)
	}
}

func (n *Node) setStatus(pod *corev1.Pod, status corev1.PodStatus) {
	fresh := pod.DeepCopy()
	fresh.ResourceVersion = ""
	fresh.Status = status
	object, err := untyped(fresh, pods)
	if err == nil {
		_, err = n.options.Server.UpdateStatus(object)
	}
	if err != nil {
		n.options.Log.Debug("status of a pod", "pod", pod.Namespace+"/"+pod.Name, "error", err)
	}
}

func ready(is bool) corev1.PodCondition {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now())}
}
