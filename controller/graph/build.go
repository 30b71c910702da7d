package graph

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// DefaultControllerName is the controllerName of the GatewayClasses that are ours.
const DefaultControllerName = "limpet.dev/gateway-controller"

// Options are what a Graph depends on besides the objects.
type Options struct {
	// ControllerName is what a GatewayClass must name to be ours; DefaultControllerName if empty.
	ControllerName string
	// DefaultAddress is what a Gateway without spec.addresses binds; 127.0.0.1 if not set.
	DefaultAddress netip.Addr
	// PortOffset is added to every listener's port to give the port that is bound.
	PortOffset int
	// Pod is set where all Gateways share a pod, each port of each with a container port of its own; DefaultAddress and
	// PortOffset then have no meaning.
	Pod *Pod
}

// Builder makes Graphs and remembers the last one, so that a Build costs what changed. It is used by one goroutine at a
// time; Graphs may be used by many, and stay as they are when it goes on.
type Builder struct {
	options Options
	// last is the Snapshot that the rest was made from.
	last cluster.Snapshot

	parameters   parameterReader
	classes      classes
	grants       grants
	certificates certificates
	usedSecrets  map[types.NamespacedName]*corev1.Secret
	// authorities are the CA certificates that Gateways refer to.
	authorities    *authorities
	usedConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	// gateways are sorted by age, byName leads to the same ones.
	gateways  []*Gateway
	byName    map[types.NamespacedName]*Gateway
	unclaimed []*Unclaimed
	// sets are the ListenerSets of our Gateways, setsByName leads to the same ones. usedNamespaces are those whose labels say
	// whether a Gateway takes a set.
	sets           []*ListenerSet
	setsByName     map[types.NamespacedName]*ListenerSet
	unclaimedSets  []*Unclaimed
	usedNamespaces map[string]bool
	policies       *tlsPolicies
	services       backends
	xbackends      *xbackends
	others         *others
	routes         *routes
	reports        *reports
}

// NewBuilder returns a Builder that remembers nothing.
func NewBuilder(options Options) *Builder {
	if options.ControllerName == "" {
		options.ControllerName = DefaultControllerName
	}
	if !options.DefaultAddress.IsValid() {
		options.DefaultAddress = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return &Builder{options: options, certificates: make(certificates), authorities: newAuthorities(),
		policies: newTLSPolicies(), xbackends: newXBackends(), others: &others{}, routes: newRoutes(), reports: newReports()}
}

// Build says what the objects of a Snapshot mean.
//
// Each step takes what changed about its objects, brings its nodes up to date, and names what now looks different to a
// route. In the end the routes that depend on any of it are read again.
func (b *Builder) Build(snapshot cluster.Snapshot) *Graph {
	changed := b.buildGrants(snapshot)
	changed = append(changed, b.buildGateways(snapshot, len(changed) > 0)...)
	policed := b.policies.update(b.last, snapshot)
	changed = append(changed, b.buildServices(snapshot, policed.services)...)
	visible, reported := b.xbackends.update(b.last, snapshot)
	changed = append(changed, visible...)
	fresh := newOthers(snapshot.Others, b.others)
	othersChanged := fresh != b.others
	b.others = fresh
	for _, c := range diff(b.last.Namespaces, snapshot.Namespaces) {
		changed = append(changed, objectKey{kindNamespace, "", c.key().Name})
	}
	routeChanges := make(map[objectKey]*routeSource)
	for _, c := range diff(b.last.HTTPRoutes, snapshot.HTTPRoutes) {
		routeChanges[objectKey{KindHTTPRoute, c.key().Namespace, c.key().Name}] = httpSource(c.new)
	}
	for _, c := range diff(b.last.GRPCRoutes, snapshot.GRPCRoutes) {
		routeChanges[objectKey{KindGRPCRoute, c.key().Namespace, c.key().Name}] = grpcSource(c.new)
	}
	for _, c := range diff(b.last.TLSRoutes, snapshot.TLSRoutes) {
		routeChanges[objectKey{KindTLSRoute, c.key().Namespace, c.key().Name}] = tlsSource(c.new)
	}
	for _, c := range diff(b.last.TCPRoutes, snapshot.TCPRoutes) {
		routeChanges[objectKey{KindTCPRoute, c.key().Namespace, c.key().Name}] = tcpSource(c.new)
	}
	b.routes.update(b.routeInput(snapshot), routeChanges, changed)
	if othersChanged || len(changed) > 0 || len(routeChanges) > 0 {
		b.others.read(&otherInput{gateways: b.byName, sets: b.setsByName, routes: b.routes})
	}
	b.report(snapshot, policed, reported)
	b.last = snapshot
	return &Graph{
		Classes: b.classes.ours, Gateways: b.gateways, ListenerSets: b.sets, Routes: b.routes.shown, Others: b.others.nodes,
		Unclaimed: slices.Concat(b.classes.others, b.unclaimed, b.unclaimedSets, b.routes.unclaimed, b.reports.unclaimed,
			b.others.unclaimed),
		Reported: b.reports.shown, HAProxy: b.classes.haproxy,
		backends: b.services, xbackends: b.xbackends.table, attached: b.routes.attached,
	}
}

func (b *Builder) routeInput(snapshot cluster.Snapshot) *routeInput {
	return &routeInput{
		sessions: snapshot.OldSessions,
		gateways: b.byName, sets: b.setsByName, namespaces: namespaces{snapshot.Namespaces},
		references: references{grants: b.grants, services: b.services, xbackends: b.xbackends.table},
	}
}

func (b *Builder) buildGrants(snapshot cluster.Snapshot) []objectKey {
	var changed []objectKey
	for _, c := range diff(b.last.ReferenceGrants, snapshot.ReferenceGrants) {
		changed = append(changed, objectKey{kindGrants, c.key().Namespace, ""})
	}
	if len(changed) > 0 {
		b.grants = newGrants(snapshot.ReferenceGrants)
	}
	return changed
}

// buildGateways reads all Gateways again if anything that one of them needs changed: they are few, and they decide
// together who gets an address.
func (b *Builder) buildGateways(snapshot cluster.Snapshot, grantsChanged bool) []objectKey {
	classesChanged := len(diff(b.last.GatewayClasses, snapshot.GatewayClasses))+len(diff(b.last.Parameters, snapshot.Parameters)) > 0
	if classesChanged {
		b.parameters = newParameterReader(snapshot.Parameters, b.parameters)
		b.classes = newClasses(snapshot.GatewayClasses, b.options.ControllerName, b.parameters, b.classes)
	}
	gatewaysChanged := len(diff(b.last.Gateways, snapshot.Gateways))+len(diff(b.last.ListenerSets, snapshot.ListenerSets)) > 0
	placesChanged := b.options.Pod != nil && b.last.Ports != snapshot.Ports
	if !classesChanged && !gatewaysChanged && !grantsChanged && !placesChanged && !b.usedChanged(snapshot) {
		return nil
	}
	ours := b.ourGateways(snapshot)
	build := &gatewayBuild{
		options: b.options, ports: snapshot.Ports, classes: b.classes, parameters: b.parameters, grants: b.grants,
		secrets: snapshot.Secrets, certificates: b.certificates,
		namespaces: namespaces{snapshot.Namespaces}, sets: b.ourSets(snapshot, ours), usedNamespaces: make(map[string]bool),
		usedSecrets: make(map[types.NamespacedName]*corev1.Secret),
		authorities: authorityReader{authorities: b.authorities, grants: b.grants, configMaps: snapshot.ConfigMaps,
			used: make(map[types.NamespacedName]*corev1.ConfigMap)},
	}
	nodes, sets := build.build(ours)
	b.usedSecrets, b.usedNamespaces = build.usedSecrets, build.usedNamespaces
	b.certificates.keepOnly(b.usedSecrets)
	b.usedConfigMaps = build.authorities.used
	b.authorities.keepOnly(b.usedConfigMaps)
	changed := b.showGateways(nodes)
	return append(changed, b.showSets(sets)...)
}

// usedChanged says whether anything changed that a Gateway refers to.
func (b *Builder) usedChanged(snapshot cluster.Snapshot) bool {
	return changedAny(b.last.Secrets, snapshot.Secrets, b.usedSecrets) ||
		changedAny(b.last.ConfigMaps, snapshot.ConfigMaps, b.usedConfigMaps) ||
		slices.ContainsFunc(diff(b.last.Namespaces, snapshot.Namespaces), func(c change[*corev1.Namespace]) bool {
			return b.usedNamespaces[c.key().Name]
		})
}

// changedAny says whether an object of that name changed, came or went.
func changedAny[T object](was, is cluster.Objects[T], names map[types.NamespacedName]T) bool {
	return slices.ContainsFunc(diff(was, is), func(c change[T]) bool {
		_, used := names[c.key()]
		return used
	})
}

// ourGateways are those of our classes, oldest first. It notes the others.
func (b *Builder) ourGateways(snapshot cluster.Snapshot) []*gatewayv1.Gateway {
	var ours []*gatewayv1.Gateway
	b.unclaimed = nil
	all := snapshot.Gateways.All()
	for i, source := range all {
		switch {
		case repeated(all, i):
		case b.classes.byName[string(source.Spec.GatewayClassName)] != nil:
			ours = append(ours, source)
		default:
			b.unclaimed = append(b.unclaimed, b.classes.unclaimed(source, b.options.ControllerName))
		}
	}
	slices.SortFunc(ours, func(a, b *gatewayv1.Gateway) int { return older(a, b) })
	return ours
}

// ourSets are the ListenerSets by their Gateway, oldest first. It notes those of other Gateways.
func (b *Builder) ourSets(snapshot cluster.Snapshot, gateways []*gatewayv1.Gateway) map[types.NamespacedName][]*gatewayv1.ListenerSet {
	ours := make(map[types.NamespacedName][]*gatewayv1.ListenerSet, len(gateways))
	for _, gateway := range gateways {
		ours[nameOf(gateway)] = nil
	}
	b.unclaimedSets = nil
	all := snapshot.ListenerSets.All()
	for i, source := range all {
		if repeated(all, i) {
			continue
		}
		name, isGateway := parentGateway(source)
		if _, found := ours[name]; !found || !isGateway {
			b.unclaimedSets = append(b.unclaimedSets, &Unclaimed{Kind: kindListenerSet, Namespace: source.Namespace, Name: source.Name,
				Message: "its parentRef does not lead to a Gateway of ours: " + name.String() + "."})
			continue
		}
		ours[name] = append(ours[name], source)
	}
	for _, sets := range ours {
		slices.SortFunc(sets, func(a, b *gatewayv1.ListenerSet) int { return older(a, b) })
	}
	return ours
}

// showGateways takes over the nodes that are equal to those of the last time, and names those that are not.
func (b *Builder) showGateways(nodes []*Gateway) []objectKey {
	var changed []objectKey
	byName := make(map[types.NamespacedName]*Gateway, len(nodes))
	for i, node := range nodes {
		name := node.Key()
		if last := b.byName[name]; last != nil && last.Source == node.Source && reflect.DeepEqual(last, node) {
			nodes[i] = last
		} else {
			changed = append(changed, objectKey{kindGateway, name.Namespace, name.Name})
		}
		byName[name] = nodes[i]
	}
	for name := range b.byName {
		if byName[name] == nil {
			changed = append(changed, objectKey{kindGateway, name.Namespace, name.Name})
		}
	}
	b.gateways, b.byName = nodes, byName
	return changed
}

// showSets shows those of the Gateways that are shown: a set that its Gateway does not take is no part of it.
func (b *Builder) showSets(sets []*ListenerSet) []objectKey {
	var changed []objectKey
	byName, taken := make(map[types.NamespacedName]*ListenerSet, len(sets)), make(map[types.NamespacedName]*ListenerSet)
	for _, gateway := range b.gateways {
		for _, node := range gateway.Sets {
			taken[node.Key()] = node
		}
	}
	for i, node := range sets {
		name, last := node.Key(), b.setsByName[node.Key()]
		node.Gateway = b.byName[node.Gateway.Key()]
		if taken[name] != nil {
			node = taken[name]
		} else if last != nil && last.Gateway == node.Gateway && reflect.DeepEqual(last, node) {
			node = last
		}
		if node != last {
			changed = append(changed, objectKey{kindListenerSet, name.Namespace, name.Name})
		}
		sets[i], byName[name] = node, node
	}
	for name := range b.setsByName {
		if byName[name] == nil {
			changed = append(changed, objectKey{kindListenerSet, name.Namespace, name.Name})
		}
	}
	b.sets, b.setsByName = sets, byName
	return changed
}

// buildServices takes the Services whose policies may be other ones besides those that changed.
func (b *Builder) buildServices(snapshot cluster.Snapshot, policed map[types.NamespacedName]bool) []objectKey {
	services := diff(b.last.Services, snapshot.Services)
	endpointSlices := diff(b.last.EndpointSlices, snapshot.EndpointSlices)
	if len(services)+len(endpointSlices)+len(policed) == 0 {
		return nil
	}
	edit := newServiceEditor(b.services)
	for _, c := range services {
		edit.setService(c)
	}
	for _, c := range endpointSlices {
		edit.setSlice(c)
	}
	for name := range policed {
		edit.setPolicies(name, b.policies.winners(name))
	}
	table, visible := edit.finish()
	b.services = table
	changed := make([]objectKey, len(visible))
	for i, name := range visible {
		changed[i] = objectKey{"Service", name.Namespace, name.Name}
	}
	return changed
}

// report says anew what came of the policies whose targets, rivals or ancestors may be other ones.
func (b *Builder) report(snapshot cluster.Snapshot, policed policyChanges, xbackends map[types.NamespacedName]bool) {
	dirty := maps.Clone(policed.policies)
	add := func(service types.NamespacedName) {
		for _, policy := range b.policies.byService[service] {
			dirty[nameOf(policy.source)] = true
		}
	}
	for service := range policed.services {
		add(service)
	}
	for _, c := range diff(b.last.Services, snapshot.Services) {
		add(c.key())
	}
	for key := range b.routes.touched {
		maps.Copy(dirty, b.policies.byOther[key])
		add(types.NamespacedName{Namespace: key.namespace, Name: key.name})
	}
	edit := reportsEdit{reports: b.reports}
	b.reportXBackends(&edit, xbackends)
	for name := range dirty {
		if policy := b.policies.all[name]; policy != nil {
			edit.set(b.policies.report(policy, b.services, b.routes))
		} else {
			edit.drop(objectKey{kindBackendTLSPolicy, name.Namespace, name.Name})
		}
	}
	edit.finish()
}
