package expose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

const tableID = "ConfigMap " + ourNamespace + "/" + portsName

func (w *world) portOf(t *testing.T, gateway string, port uint16) uint16 {
	t.Helper()
	return w.snapshot().Ports.Port(cluster.NewPortHolder(types.NamespacedName{Namespace: "default", Name: gateway}, port))
}

func TestAFreedPortIsGivenToNobodyElseForTwoHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("a", httpListener), gatewayNamed("b", httpListener), pod("limpet-a", 1, true))
	w.settle(t)
	freed := w.portOf(t, "a", 80)
	delete(w.objects, "Gateway default/a")
	w.settle(t)

	// The table is in the ConfigMap alone, so that this survives a restart.
	w.table, w.now = nil, w.now.Add(rest-time.Minute)
	w.add(t, gatewayNamed("c", httpListener))
	w.settle(t)
	if port := w.portOf(t, "c", 80); port == freed || port == 0 {
		t.Errorf("c got port %d, which a gave back less than two hours ago (%d)", port, freed)
	}
	w.add(t, gatewayNamed("a", httpListener))
	w.settle(t)
	if port := w.portOf(t, "a", 80); port != freed {
		t.Errorf("a came back and got %d, want its own port %d", port, freed)
	}
	delete(w.objects, "Gateway default/a")
	w.settle(t)
	w.now = w.now.Add(rest + time.Minute)
	w.add(t, gatewayNamed("d", httpListener))
	w.settle(t)
	if port := w.portOf(t, "d", 80); port != freed {
		t.Errorf("after two hours d got %d, want %d again", port, freed)
	}
}

func TestADeletedTableComesBackWithTheSamePorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("a", httpListener), gatewayNamed("b", httpListener), pod("limpet-a", 1, true))
	w.settle(t)
	delete(w.objects, "Gateway default/a")
	w.settle(t)
	before := get[*corev1.ConfigMap](t, w, tableID).Data
	delete(w.objects, tableID)

	if gateways := w.builder.Build(w.snapshot()).Gateways; gateways[0].Listeners[0].Bind != 10001 {
		t.Errorf("without the table b is bound at %d, want its port 10001", gateways[0].Listeners[0].Bind)
	}
	wanted := w.settle(t)
	if after := get[*corev1.ConfigMap](t, w, tableID).Data; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the table came back as %v, want %v", after, before)
	}
	if len(wanted.Changes) != 0 {
		t.Errorf("still wanted: %s", keys(wanted))
	}
}

func TestAReplicaThatNeverSawTheTableSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("a", httpListener), pod("limpet-a", 1, true))
	if wanted := w.compute(); !wanted.Changes[0].First {
		t.Error("a table that was never seen is written as if it had been")
	}
	w.settle(t)
	delete(w.objects, tableID)
	if wanted := w.compute(); len(wanted.Changes) != 1 || wanted.Changes[0].First {
		t.Errorf("a table that is remembered: %s, First %t", keys(wanted), wanted.Changes[0].First)
	}
}

func TestEditsOfTheTableMoveNobodyWhoIsInIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("a", httpListener), gatewayNamed("b", httpListener), pod("limpet-a", 1, true))
	w.settle(t)
	table := get[*corev1.ConfigMap](t, w, tableID).DeepCopy()
	table.Data["10007"] = "default/a:80" // a second one
	table.Data["10008"] = "nonsense"
	table.Data["10009"] = "default/gone:80"
	w.put(table)
	w.settle(t)
	got := fmt.Sprint(get[*corev1.ConfigMap](t, w, tableID).Data)
	want := fmt.Sprintf("map[10000:default/a:80 10001:default/b:80 10007:default/a:80 free %d 10009:default/gone:80 free %d]", noon, noon)
	if got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}

func TestAGatewayWithAMistakeKeepsPortServiceAndAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, gatewayNamed("a", httpListener), pod("limpet-a", 1, true))
	before := w.settle(t).Exposures[types.NamespacedName{Namespace: "default", Name: "a"}]
	for _, spec := range []string{
		httpListener + "\n  infrastructure: {parametersRef: {group: x, kind: Y, name: z}}",
		"listeners: [{name: http, port: 80, protocol: UDP}]",
	} {
		w.add(t, gatewayNamed("a", spec))
		wanted := w.compute()
		if len(wanted.Changes) > 0 || !wanted.Exposures[types.NamespacedName{Namespace: "default", Name: "a"}].Equal(before) {
			t.Errorf("%s led to %s and %v", spec, keys(wanted), wanted.Exposures)
		}
	}
}

func TestOneNamespaceCannotTakeAllPorts(t *testing.T) {
	t.Parallel()
	entries := make(map[uint16]cluster.PortEntry)
	w := newWorld(t, class, pod("limpet-a", 1, true))
	var documents []string
	for i := range 100 {
		var listeners []string
		name := fmt.Sprintf("gw-%02d", i)
		for j := range 60 {
			listeners = append(listeners, fmt.Sprintf("{name: p%d, port: %d, protocol: HTTP}", j, 8000+j))
			if len(entries) < maxPerNamespace {
				holder := cluster.NewPortHolder(types.NamespacedName{Namespace: "default", Name: name}, uint16(8000+j))
				entries[uint16(cluster.FirstPort+len(entries))] = cluster.PortEntry{Holder: holder}
			}
		}
		documents = append(documents, gatewayNamed(name, "listeners: ["+strings.Join(listeners, ", ")+"]"))
	}
	w.add(t, documents...)
	other := strings.Replace(gatewayNamed("other", httpListener), "namespace: default", "namespace: other", 1)
	w.add(t, other)
	w.put((&computation{options: w.options}).portsConfigMap(cluster.NewPortTable("", entries)))

	exposures := w.settle(t).Exposures
	if e := exposures[types.NamespacedName{Namespace: "other", Name: "other"}]; e.Reason != "" {
		t.Errorf("the neighbour has %s: %s", e.Reason, e.Problem)
	}
	e := exposures[types.NamespacedName{Namespace: "default", Name: "gw-99"}]
	if e.Reason != gatewayv1.GatewayReasonNoResources || !strings.Contains(e.Problem, "namespace default") {
		t.Errorf("who asks for too many is told %s: %s", e.Reason, e.Problem)
	}
}

func TestWhenNoPortIsLeftTheGatewaySaysSo(t *testing.T) {
	t.Parallel()
	entries := make(map[uint16]cluster.PortEntry)
	for port := cluster.FirstPort; port <= cluster.LastPort; port++ {
		entries[uint16(port)] = cluster.PortEntry{
			Holder: cluster.NewPortHolder(types.NamespacedName{Namespace: "n", Name: fmt.Sprint(port)}, 80), Free: time.Unix(noon-60, 0),
		}
	}
	w := newWorld(t, class, gatewayNamed("a", httpListener), pod("limpet-a", 1, true))
	w.put((&computation{options: w.options}).portsConfigMap(cluster.NewPortTable("", entries)))
	table := get[*corev1.ConfigMap](t, w, tableID)
	size := 0
	for key, value := range table.Data {
		size += len(key) + len(value)
	}
	if size > 1<<20 {
		t.Errorf("a full table has %d bytes, a ConfigMap at most 1 MiB", size)
	}
	e := w.settle(t).Exposures[types.NamespacedName{Namespace: "default", Name: "a"}]
	if e.Reason != gatewayv1.GatewayReasonNoResources || !strings.Contains(e.Problem, "two hours") {
		t.Errorf("told %s: %s", e.Reason, e.Problem)
	}
	w.now = w.now.Add(rest)
	if e := w.settle(t).Exposures[types.NamespacedName{Namespace: "default", Name: "a"}]; e.Reason != "" {
		t.Errorf("after two hours still %s: %s", e.Reason, e.Problem)
	}
}

func TestThousandsOfGatewaysGetPortsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, class, pod("limpet-a", 1, true))
	var documents []string
	for i := range 3000 {
		documents = append(documents, gatewayNamed(fmt.Sprintf("gw-%d", i), httpListener))
	}
	w.add(t, documents...)
	wanted := w.settle(t)
	seen := map[int32]bool{}
	for _, service := range all(w, func(s *corev1.Service) bool { return cluster.IsExposed(s) }) {
		port := service.Spec.Ports[0].TargetPort.IntVal
		if seen[port] {
			t.Fatalf("port %d is there twice", port)
		}
		seen[port] = true
	}
	if len(seen) != 3000 || len(wanted.Exposures) != 3000 {
		t.Errorf("%d ports, %d exposures", len(seen), len(wanted.Exposures))
	}
}
