package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevalidation "k8s.io/apimachinery/pkg/util/validation"
	gatewayxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/internal/table"
)

// LabelXBackend names the XBackend of its namespace that an EndpointSlice belongs to, besides the Pods that are selected. Its
// value is the LabelValue of the XBackend's name.
const LabelXBackend = "limpet.dev/xbackend"

// LabelValue is a name as the value of a label, which has at most 63 characters: the end of a longer one gives way to a hash.
func LabelValue(name string) string {
	if len(name) <= kubevalidation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return name[:kubevalidation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}

// xbackend is one XBackend as a Graph knows it. It is never changed.
type xbackend struct {
	source *gatewayxv1alpha1.XBackend
	*xbackendSettings

	backend *Backend
}

// xbackendTable leads from an XBackend's namespace and name to it.
type xbackendTable = table.Table[*xbackend]

// xbackends are all XBackends, with what each is made of.
type xbackends struct {
	table xbackendTable
	all   map[types.NamespacedName]*xbackendParts
	// byNamespace are their names.
	byNamespace map[string]map[string]bool
	// byObject leads from a ConfigMap or Secret to those that refer to it, whether it exists or not.
	byObject    map[objectKey]map[types.NamespacedName]bool
	authorities *authorities
	// slices are those that name an XBackend, by its namespace and label, whether it exists or not.
	slices map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice
}

// xbackendParts is what an XBackend is made of. It is edited while a Graph is built.
type xbackendParts struct {
	source   *gatewayxv1alpha1.XBackend
	settings *xbackendSettings
	// pods are those that are selected, by name.
	pods map[string]*corev1.Pod
}

func newXBackends() *xbackends {
	return &xbackends{
		all: make(map[types.NamespacedName]*xbackendParts), byNamespace: make(map[string]map[string]bool),
		byObject: make(map[objectKey]map[types.NamespacedName]bool), authorities: newAuthorities(),
		slices: make(map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice),
	}
}

// update brings the XBackends up to date. It names those that look different to a route, and those that have something else
// to report.
func (x *xbackends) update(last, now cluster.Snapshot) (visible []objectKey, reported map[types.NamespacedName]bool) {
	dirty := make(map[types.NamespacedName]bool)
	x.updateSources(last, now, dirty)
	x.updatePods(diff(last.Pods, now.Pods), dirty)
	x.updateSlices(diff(last.EndpointSlices, now.EndpointSlices), dirty)
	reported = make(map[types.NamespacedName]bool)
	edit := x.table.Edit()
	for name := range dirty {
		key := serviceKey(name.Namespace, name.Name)
		was, _ := x.table.Get(key)
		is := x.node(name, was)
		if is == nil {
			edit.Delete(key)
		} else {
			edit.Set(key, is)
		}
		if was == nil || is == nil || was.source != is.source || was.xbackendSettings != is.xbackendSettings {
			reported[name] = true
			visible = append(visible, objectKey{kindXBackend, name.Namespace, name.Name})
		}
	}
	x.table = edit.Table()
	return visible, reported
}

// updateSources reads the XBackends that changed, and those whose ConfigMap or Secret did.
func (x *xbackends) updateSources(last, now cluster.Snapshot, dirty map[types.NamespacedName]bool) {
	for _, c := range diff(last.XBackends, now.XBackends) {
		dirty[c.key()] = true
		x.setSource(c.key(), c.new, now)
	}
	var changed []objectKey
	for _, c := range diff(last.ConfigMaps, now.ConfigMaps) {
		changed = append(changed, objectKey{"ConfigMap", c.key().Namespace, c.key().Name})
	}
	for _, c := range diff(last.Secrets, now.Secrets) {
		changed = append(changed, objectKey{"Secret", c.key().Namespace, c.key().Name})
	}
	for _, key := range changed {
		for name := range maps.Clone(x.byObject[key]) {
			dirty[name] = true
			x.setSettings(name, now)
		}
	}
	if len(changed) > 0 || len(dirty) > 0 {
		x.forget(now)
	}
}

func (x *xbackends) setSource(name types.NamespacedName, source *gatewayxv1alpha1.XBackend, now cluster.Snapshot) {
	if was := x.all[name]; was != nil {
		x.depend(name, was.settings, false)
		delete(x.all, name)
	}
	depend(x.byNamespace, name.Namespace, name.Name, source != nil)
	if source == nil {
		return
	}
	parts := &xbackendParts{source: source, pods: make(map[string]*corev1.Pod)}
	x.all[name] = parts
	x.setSettings(name, now)
	for _, pod := range now.Pods.Namespace(name.Namespace) {
		if parts.selects(pod) {
			parts.pods[pod.Name] = pod
		}
	}
}

func (x *xbackends) setSettings(name types.NamespacedName, now cluster.Snapshot) {
	parts := x.all[name]
	x.depend(name, parts.settings, false)
	fresh := readXBackend(parts.source, &xbackendInput{authorities: x.authorities, configMaps: now.ConfigMaps, secrets: now.Secrets})
	if parts.settings == nil || !reflect.DeepEqual(parts.settings, fresh) {
		parts.settings = fresh
	}
	x.depend(name, parts.settings, true)
}

func (x *xbackends) depend(name types.NamespacedName, settings *xbackendSettings, add bool) {
	if settings == nil {
		return
	}
	for _, key := range settings.needs {
		depend(x.byObject, key, name, add)
	}
}

// forget drops the bundles that nothing refers to any more.
func (x *xbackends) forget(now cluster.Snapshot) {
	used := make(map[types.NamespacedName]*corev1.ConfigMap)
	for key := range x.byObject {
		if held, found := now.ConfigMaps.Get(key.namespace, key.name); found && key.kind == "ConfigMap" {
			used[types.NamespacedName{Namespace: key.namespace, Name: key.name}] = held
		}
	}
	x.authorities.keepOnly(used)
}

func (x *xbackends) updatePods(changes []change[*corev1.Pod], dirty map[types.NamespacedName]bool) {
	for _, c := range changes {
		pod := c.key()
		for name := range x.byNamespace[pod.Namespace] {
			owner := types.NamespacedName{Namespace: pod.Namespace, Name: name}
			parts := x.all[owner]
			was, selected := parts.pods[pod.Name], c.new != nil && parts.selects(c.new)
			switch {
			case selected:
				parts.pods[pod.Name] = c.new
			case was != nil:
				delete(parts.pods, pod.Name)
			default:
				continue
			}
			dirty[owner] = true
		}
	}
}

func (x *xbackends) updateSlices(changes []change[*discoveryv1.EndpointSlice], dirty map[types.NamespacedName]bool) {
	for _, c := range changes {
		if owner, found := xbackendOf(c.old); found {
			delete(x.slices[owner], c.old.Name)
			if len(x.slices[owner]) == 0 {
				delete(x.slices, owner)
			}
			x.markLabelled(owner, dirty)
		}
		if owner, found := xbackendOf(c.new); found {
			if x.slices[owner] == nil {
				x.slices[owner] = make(map[string]*discoveryv1.EndpointSlice)
			}
			x.slices[owner][c.new.Name] = c.new
			x.markLabelled(owner, dirty)
		}
	}
}

// markLabelled marks the XBackends that slices with this label belong to.
func (x *xbackends) markLabelled(label types.NamespacedName, dirty map[types.NamespacedName]bool) {
	dirty[label] = true
	if len(label.Name) < kubevalidation.LabelValueMaxLength {
		return
	}
	for name := range x.byNamespace[label.Namespace] {
		if LabelValue(name) == label.Name {
			dirty[types.NamespacedName{Namespace: label.Namespace, Name: name}] = true
		}
	}
}

func xbackendOf(slice *discoveryv1.EndpointSlice) (types.NamespacedName, bool) {
	if slice == nil || slice.Labels[LabelXBackend] == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[LabelXBackend]}, true
}

// node makes the node of an XBackend anew, and keeps what is equal to the last one's; nil for one that is gone.
func (x *xbackends) node(name types.NamespacedName, was *xbackend) *xbackend {
	parts := x.all[name]
	if parts == nil {
		return nil
	}
	is := &xbackend{source: parts.source, xbackendSettings: parts.settings}
	is.backend = x.backend(name, parts)
	if was != nil && reflect.DeepEqual(was.backend, is.backend) {
		is.backend = was.backend
	}
	return is
}

// backend is nil for an XBackend that is not valid. One whose TLS has nothing to verify by has no endpoints: 503.
func (x *xbackends) backend(name types.NamespacedName, parts *xbackendParts) *Backend {
	settings := parts.settings
	if settings.invalid.any() || settings.unsupported.any() {
		return nil
	}
	backend := &Backend{Key: BackendKey{Kind: kindXBackend, Namespace: name.Namespace, Name: name.Name}, HTTP2: settings.http2}
	if settings.demandsTLS {
		backend.TLS = settings.tls
		backend.Untrusted = settings.tls == nil
	}
	backend.External = settings.external
	if settings.external == "" {
		backend.Endpoints = parts.endpoints(x.slices[types.NamespacedName{Namespace: name.Namespace, Name: LabelValue(name.Name)}])
	}
	return backend
}

// selects says whether a Pod of the XBackend's namespace has all its labels. Nothing is selected by no label.
func (p *xbackendParts) selects(pod *corev1.Pod) bool {
	selector := p.source.Spec.EndpointSelector
	if selector == nil || len(selector.MatchLabels) == 0 {
		return false
	}
	for key, value := range selector.MatchLabels {
		if has, found := pod.Labels[string(key)]; !found || has != string(value) {
			return false
		}
	}
	return true
}

// endpoints joins the selected Pods and the slices that name the XBackend. Its port counts, not that of the slices.
func (p *xbackendParts) endpoints(all map[string]*discoveryv1.EndpointSlice) []Endpoint {
	port := uint16(p.source.Spec.Port.Number)
	var found []candidate
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].AddressType != discoveryv1.AddressTypeFQDN {
			found = appendCandidates(found, all[name], port)
		}
	}
	for _, pod := range p.pods {
		found = appendPod(found, pod, port)
	}
	return newEndpoints(oncePerAddress(oncePerPod(found)))
}

// appendPod reads a Pod as the EndpointSlice controller does: one that has ended has no endpoint, one that is not ready does
// not serve, and one that is ready while it is deleted serves what it has.
func appendPod(found []candidate, pod *corev1.Pod, port uint16) []candidate {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	serving := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if ended || !serving {
		return found
	}
	addresses := pod.Status.PodIPs
	if len(addresses) == 0 {
		addresses = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	ready := pod.DeletionTimestamp == nil
	for _, address := range addresses {
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{address.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		if candidate, usable := newCandidate(pod.Namespace, &endpoint, port); usable {
			found = append(found, candidate)
		}
	}
	return found
}
