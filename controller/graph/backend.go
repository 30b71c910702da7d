package graph

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/limpet-gateway/limpet/internal/table"
)

// Backend returns a Service's port, or an XBackend, with its endpoints; nil if there is no such thing. The pointer stays the
// same, also from one Graph of a Builder to the next, until an endpoint of it changes.
func (g *Graph) Backend(key BackendKey) *Backend {
	if key.Kind == kindXBackend {
		if known, found := g.xbackends.Get(serviceKey(key.Namespace, key.Name)); found {
			return known.backend
		}
		return nil
	}
	service, found := g.backends.Get(serviceKey(key.Namespace, key.Name))
	if !found {
		return nil
	}
	return service.backend(key.Port)
}

// ChangedBackends names the Services (with port 0) and XBackends for which Backend may give something else than in another
// Graph of the same Builder, in no particular order. It costs what differs.
func (g *Graph) ChangedBackends(since *Graph) iter.Seq[BackendKey] {
	return func(yield func(BackendKey) bool) {
		for c := range g.backends.Diff(since.backends) {
			if !yield(changedKey(kindService, c.Key)) {
				return
			}
		}
		for c := range g.xbackends.Diff(since.xbackends) {
			if !yield(changedKey(kindXBackend, c.Key)) {
				return
			}
		}
	}
}

func changedKey(kind, key string) BackendKey {
	namespace, name, _ := strings.Cut(key, "/")
	return BackendKey{Kind: kind, Namespace: namespace, Name: name}
}

// backends lead from a Service's namespace and name to what is known about it.
type backends = table.Table[*service]

func serviceKey(namespace, name string) string { return namespace + "/" + name }

// service is a Service with its EndpointSlices, at one moment. Graphs share it while neither changes.
type service struct {
	// source is nil for slices without a Service.
	source *corev1.Service
	// slices are sorted by name.
	slices []*discoveryv1.EndpointSlice
	// policies are the BackendTLSPolicies that hold, by the name of the port; "" is for every other one.
	policies map[string]*tlsPolicy

	mu sync.Mutex
	// ports holds the Backends that were asked for.
	ports map[int32]*Backend
	// previous holds those of the service before the last change: they stay where they are equal.
	previous map[int32]*Backend
}

// backend reads the endpoints of a port when they are first asked for.
func (s *service) backend(port int32) *Backend {
	if s.source == nil || s.source.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.ports[port]; found {
		return known
	}
	fresh := s.read(port)
	if previous := s.previous[port]; previous != nil && reflect.DeepEqual(previous, fresh) {
		fresh = previous
	}
	if s.ports == nil {
		s.ports = make(map[int32]*Backend)
	}
	s.ports[port] = fresh
	return fresh
}

func (s *service) read(port int32) *Backend {
	servicePort, found := tcpPort(s.source, port)
	if !found {
		return nil
	}
	backend := &Backend{Key: BackendKey{kindService, s.source.Namespace, s.source.Name, port}, HTTP2: speaksHTTP2(servicePort)}
	if policy := s.policy(servicePort.Name); policy != nil {
		backend.TLS = policy.tls
		backend.Untrusted = policy.tls == nil // GEP-1897: never plain text. Without an endpoint the answer is 503.
	}
	backend.Endpoints = readEndpoints(s.slices, servicePort.Name)
	return backend
}

// policy is the BackendTLSPolicy that holds for the port of that name, valid or not.
func (s *service) policy(port string) *tlsPolicy {
	if policy := s.policies[port]; policy != nil {
		return policy
	}
	return s.policies[""]
}

// policed says for each of the Service's ports whether it is spoken to in TLS.
func (s *service) policed() []bool {
	if s.source == nil || len(s.policies) == 0 {
		return nil
	}
	all := make([]bool, len(s.source.Spec.Ports))
	for i := range all {
		all[i] = s.policy(s.source.Spec.Ports[i].Name) != nil
	}
	return all
}

// tcpPort finds a Service's port by its number.
func tcpPort(source *corev1.Service, number int32) (*corev1.ServicePort, bool) {
	for i := range source.Spec.Ports {
		port := &source.Spec.Ports[i]
		if port.Port == number && (port.Protocol == corev1.ProtocolTCP || port.Protocol == "") {
			return port, true
		}
	}
	return nil, false
}

func hasTCPPort(source *corev1.Service, name string) bool {
	return slices.ContainsFunc(source.Spec.Ports, func(port corev1.ServicePort) bool {
		return port.Name == name && (port.Protocol == corev1.ProtocolTCP || port.Protocol == "")
	})
}

// changed returns a copy that can be edited; it remembers the Backends that were read so far.
func (s *service) changed() *service {
	s.mu.Lock()
	defer s.mu.Unlock()
	previous := make(map[int32]*Backend, len(s.previous)+len(s.ports))
	for _, known := range []map[int32]*Backend{s.previous, s.ports} {
		for port, backend := range known {
			if backend != nil {
				previous[port] = backend
			}
		}
	}
	return &service{source: s.source, slices: slices.Clone(s.slices), policies: s.policies, previous: previous}
}

// unusable says what of the slices is not used, in the order of their names.
func (s *service) unusable() []string {
	var all []string
	for _, slice := range s.slices {
		all = append(all, unusable(s.source, slice)...)
	}
	return all
}

// serviceEditor brings the Services up to date; each one that is touched is copied once.
type serviceEditor struct {
	was     backends
	edit    *table.Editor[*service]
	touched map[types.NamespacedName]*service
}

func newServiceEditor(was backends) *serviceEditor {
	return &serviceEditor{was: was, edit: was.Edit(), touched: make(map[types.NamespacedName]*service)}
}

// own returns the editable copy of a service.
func (e *serviceEditor) own(name types.NamespacedName) *service {
	if own, found := e.touched[name]; found {
		return own
	}
	own := &service{}
	if was, found := e.was.Get(serviceKey(name.Namespace, name.Name)); found {
		own = was.changed()
	}
	e.touched[name] = own
	e.edit.Set(serviceKey(name.Namespace, name.Name), own)
	return own
}

func (e *serviceEditor) setPolicies(name types.NamespacedName, winners map[string]*tlsPolicy) {
	e.own(name).policies = winners
}

func (e *serviceEditor) setService(c change[*corev1.Service]) { e.own(c.key()).source = c.new }

// setSlice moves a slice to the Service that its label names.
func (e *serviceEditor) setSlice(c change[*discoveryv1.EndpointSlice]) {
	if name, found := serviceOf(c.old); found {
		own := e.own(name)
		if at, found := findSlice(own.slices, c.old.Name); found {
			own.slices = slices.Delete(own.slices, at, at+1)
		}
	}
	if name, found := serviceOf(c.new); found {
		own := e.own(name)
		at, _ := findSlice(own.slices, c.new.Name)
		own.slices = slices.Insert(own.slices, at, c.new)
	}
}

func serviceOf(slice *discoveryv1.EndpointSlice) (types.NamespacedName, bool) {
	if slice == nil || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}, true
}

func findSlice(list []*discoveryv1.EndpointSlice, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(slice *discoveryv1.EndpointSlice, name string) int {
		return strings.Compare(slice.Name, name)
	})
}

// finish returns the edited table, and the names of those Services that look different to a route: endpoints do not count.
func (e *serviceEditor) finish() (backends, []types.NamespacedName) {
	var visible []types.NamespacedName
	for name, own := range e.touched {
		key := serviceKey(name.Namespace, name.Name)
		was, found := e.was.Get(key)
		if !found {
			was = &service{}
		}
		if was.source != own.source || !slices.Equal(was.unusable(), own.unusable()) || !slices.Equal(was.policed(), own.policed()) {
			visible = append(visible, name)
		}
		if own.source == nil && len(own.slices)+len(own.policies) == 0 {
			e.edit.Delete(key)
		}
	}
	return e.edit.Table(), visible
}
