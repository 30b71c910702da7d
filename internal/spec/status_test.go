package spec

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/limpet-gateway/limpet/controller/cluster"
	"github.com/limpet-gateway/limpet/controller/conditions"
	"github.com/limpet-gateway/limpet/controller/graph"
	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/controller/status"
	"github.com/limpet-gateway/limpet/controller/translate"
)

func newTranslator() *translate.Translator {
	return translate.New(translate.Options{NamesKey: []byte("names")})
}

func TestAGatewayWithoutADistinctListenerIsRejected(t *testing.T) {
	t.Parallel()
	g := build(t, class+gateway("gw", "{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: HTTP}"))
	state := statusOf(t, statuses(g), "Gateway", "gw").Gateway
	if c := condition(state.Conditions, accepted); c.Status != "False" || c.Reason != "ListenersNotValid" ||
		!strings.Contains(c.Message, `"a"`) || !strings.Contains(c.Message, `"b"`) {
		t.Errorf("Accepted is %+v", c)
	}
	for _, listener := range state.Listeners {
		if conflicted := condition(listener.Conditions, "Conflicted"); conflicted.Status != "True" || condition(listener.Conditions, accepted).Status != "False" {
			t.Errorf("listener %s: %s", listener.Name, show(listener.Conditions))
		}
	}
	if config := newTranslator().Config(g); len(config.Frame.Ports) != 0 {
		t.Errorf("ports are bound: %+v", config.Frame.Ports)
	}
}

func TestAConflictedListenersPortIsNotBound(t *testing.T) {
	t.Parallel()
	config := translated(t, class+gateway("gw", "{name: a, port: 80, protocol: HTTP}", "{name: b, port: 80, protocol: HTTP}", "{name: c, port: 81, protocol: HTTP}"))
	if len(config.Frame.Ports) != 1 || config.Frame.Ports[0].Public != 81 {
		t.Errorf("ports are %+v, want 81 alone", config.Frame.Ports)
	}
}

func TestAddressesAreReported(t *testing.T) {
	t.Parallel()
	manifests := class + strings.Replace(gateway("gw", http80, "{name: more, port: 81, protocol: HTTP}"), "listeners:",
		"addresses: [{value: 127.0.0.2}, {type: IPAddress, value: '::1'}], listeners:", 1)
	g := build(t, manifests)
	var reported []string
	for _, address := range statusOf(t, statuses(g), "Gateway", "gw").Gateway.Addresses {
		reported = append(reported, string(*address.Type)+" "+address.Value)
	}
	if want := []string{"IPAddress 127.0.0.2", "IPAddress ::1"}; !slices.Equal(reported, want) {
		t.Errorf("status.addresses are %q, want %q", reported, want)
	}
	if ports := newTranslator().Config(g).Frame.Ports; len(ports) != 4 {
		t.Errorf("%d ports are bound, want two on each address: %+v", len(ports), ports)
	}
}

func TestARouteHasOneEntryForEachParentRefOfOurs(t *testing.T) {
	t.Parallel()
	base := class + gateway("gw", "{name: a, port: 80, protocol: HTTP, hostname: a.com}", "{name: b, port: 81, protocol: HTTP}")
	one := "{name: gw, sectionName: a}, "
	rest := "{name: gw, sectionName: b}, {name: foreign}, {group: '', kind: Service, name: shop}"
	builder, computer := graph.NewBuilder(graph.Options{}), status.NewComputer(graph.DefaultControllerName)
	for _, step := range []struct{ refs, want string }{
		{one + rest, "a False, b True"}, {rest, "b True"}, {one + rest, "a False, b True"},
	} {
		g := builder.Build(load(t, base+route("r", "parentRefs: ["+step.refs+"]\nhostnames: [b.com]")))
		var got []string
		for _, parent := range statusOf(t, computer.Compute(g, status.Result{Running: g}), "HTTPRoute", "r").Route.Parents {
			if parent.ControllerName != graph.DefaultControllerName {
				t.Errorf("an entry has the controllerName %q", parent.ControllerName)
			}
			got = append(got, string(*parent.ParentRef.SectionName)+" "+string(condition(parent.Conditions, accepted).Status))
		}
		if text := strings.Join(got, ", "); text != step.want {
			t.Errorf("entries are %q, want %q", text, step.want)
		}
	}
}

func TestAProgrammedConditionIsAlwaysThere(t *testing.T) {
	t.Parallel()
	manifests := class + gateway("gw", http80, "{name: bad, port: 81, protocol: UDP}") + gateway("refused", "{name: bad, port: 81, protocol: UDP}")
	g := build(t, manifests)
	for name, test := range map[string]struct {
		result                      status.Result
		gateway, listener, otherOne string
	}{
		"before anything is applied": {status.Result{}, "False/Pending", "False/Pending", "False/Invalid"},
		"when it is served":          {status.Result{Running: g}, "True/Programmed", "True/Programmed", "False/Invalid"},
		"when HAProxy fails":         {status.Result{Problem: "no"}, "False/Pending", "False/Pending", "False/Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			updates := status.Compute(graph.DefaultControllerName, g, test.result)
			state := statusOf(t, updates, "Gateway", "gw").Gateway
			refused := statusOf(t, updates, "Gateway", "refused").Gateway
			for what, c := range map[string]struct {
				conditions []metav1.Condition
				want       string
			}{
				"the Gateway":              {state.Conditions, test.gateway},
				"its good listener":        {state.Listeners[0].Conditions, test.listener},
				"its bad listener":         {state.Listeners[1].Conditions, test.otherOne},
				"the refused Gateway":      {refused.Conditions, test.otherOne},
				"the refused one's listen": {refused.Listeners[0].Conditions, test.otherOne},
			} {
				got := condition(c.conditions, programme)
				if text := string(got.Status) + "/" + got.Reason; text != c.want || got.ObservedGeneration != 1 {
					t.Errorf("%s has Programmed=%s of generation %d, want %s of 1", what, text, got.ObservedGeneration, c.want)
				}
			}
		})
	}
}

// listed are the reasons that the comment of a condition lists: "Possible reasons for this condition to be …".
func listed(t testing.TB) map[string][]string {
	t.Helper()
	module, _, err := Source(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(module)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string][]string{}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Doc == nil || len(spec.Values) != 1 || !strings.Contains(spec.Names[0].Name, "Condition") {
				return true
			}
			for _, b := range blocks(commentLines(spec.Doc)) {
				if reason := strings.Trim(b.text, `"`); b.item && reason != b.text {
					reasons[spec.Names[0].Name] = append(reasons[spec.Names[0].Name], reason)
				}
			}
			return true
		})
	}
	return reasons
}

// unlisted are reasons that a condition's comment does not list, each with why Limpet gives it.
var unlisted = map[string]string{
	"RouteConditionAccepted IncompatibleFilters":   "a constant of the API, made for this case",
	"GatewayConditionProgrammed AddressNotUsable":  "a constant of the API, made for this case",
	"ListenerConditionAccepted HostnameConflict":   "says more than Invalid, and is what the upstream tests want of ListenerSets",
	"ListenerConditionAccepted ProtocolConflict":   "as HostnameConflict",
	"ListenerConditionProgrammed HostnameConflict": "as HostnameConflict",
	"ListenerConditionProgrammed ProtocolConflict": "as HostnameConflict",

	"ListenerEntryConditionAccepted HostnameConflict":   "is what the upstream tests want",
	"ListenerEntryConditionAccepted ProtocolConflict":   "as HostnameConflict",
	"ListenerEntryConditionProgrammed HostnameConflict": "as HostnameConflict",
	"ListenerEntryConditionProgrammed ProtocolConflict": "as HostnameConflict",
	"ListenerEntryConditionAccepted UnsupportedValue":   "a constant of the API, made for listeners of Gateways",
	"ListenerSetConditionProgrammed NotAllowed":         "is what the upstream tests want",
}

// TestStatusesKeepTheRulesOfConditions looks at the status of every object in the specification's own examples, and of
// objects that make Limpet say all that it can.
func TestStatusesKeepTheRulesOfConditions(t *testing.T) {
	t.Parallel()
	reasons := listed(t)
	for name, snapshot := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graph.NewBuilder(graph.Options{}).Build(snapshot)
			for _, result := range []status.Result{{}, {Running: g}} {
				for _, update := range status.Compute(graph.DefaultControllerName, g, result) {
					for _, section := range update.Sections() {
						checkConditions(t, update, section, reasons)
					}
				}
			}
		})
	}
}

func checkConditions(t *testing.T, update *status.Update, section status.Section, reasons map[string][]string) {
	t.Helper()
	prefix := map[string]string{"Gateway": "GatewayCondition", "HTTPRoute": "RouteCondition"}[update.Kind]
	inListener := strings.HasPrefix(section.Name, "listener ")
	switch {
	case update.Kind == "ListenerSet" && inListener:
		prefix = "ListenerEntryCondition"
	case update.Kind == "ListenerSet":
		prefix = "ListenerSetCondition"
	case inListener:
		prefix = "ListenerCondition"
	}
	seen := map[string]bool{}
	for _, c := range section.Conditions {
		if seen[c.Type] {
			t.Errorf("%s, %s: there are two conditions of type %s", update.Object, section.Name, c.Type)
		}
		seen[c.Type] = true
		if !conditions.Ours(c.Type) {
			t.Errorf("%s, %s: %s would be taken for somebody else's, and stay for ever", update.Object, section.Name, c.Type)
		}
		if c.Type == "Ready" {
			t.Errorf("%s, %s: the condition Ready is reserved", update.Object, section.Name)
		}
		if c.ObservedGeneration == 0 || c.Message == "" {
			t.Errorf("%s, %s: %s has generation %d and message %q", update.Object, section.Name, c.Type, c.ObservedGeneration, c.Message)
		}
		if prefix == "" || c.Type == conditions.TypeIgnored {
			continue
		}
		constant := prefix + c.Type
		if _, known := unlisted[constant+" "+c.Reason]; !known && !slices.Contains(reasons[constant], c.Reason) {
			t.Errorf("%s, %s: %s=%s has the reason %s, which is none of %q", update.Object, section.Name, c.Type, c.Status, c.Reason, reasons[constant])
		}
	}
	if prefix != "" && prefix != "RouteCondition" {
		for _, kind := range []string{accepted, programme, "ResolvedRefs"} {
			if prefix == "ListenerSetCondition" && kind == "ResolvedRefs" {
				continue
			}
			if !seen[kind] {
				t.Errorf("%s, %s: there is no condition %s", update.Object, section.Name, kind)
			}
		}
	}
	if prefix == "RouteCondition" && (!seen[accepted] || !seen["ResolvedRefs"]) {
		t.Errorf("%s, %s: %s", update.Object, section.Name, show(section.Conditions))
	}
}

// corpus is the examples that the specification's module ships, and objects with everything that can be wrong.
func corpus(t testing.TB) map[string]cluster.Snapshot {
	t.Helper()
	all := map[string]cluster.Snapshot{"everything wrong": load(t, everythingWrong())}
	module, _, err := Source(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	examples, err := fs.Sub(module, "examples")
	if err == nil {
		err = os.CopyFS(copied, examples)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS(copied), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(copied, path))
		if err != nil {
			return err
		}
		// Make every class ours.
		ours := controllerLine.ReplaceAllString(string(text), "controllerName: "+graph.DefaultControllerName)
		if err := os.WriteFile(filepath.Join(copied, path), []byte(ours), 0o600); err != nil {
			return err
		}
		snapshot, _ := cluster.NewFiles(cluster.FilesOptions{Paths: []string{filepath.Join(copied, path)}}).Load()
		all[path] = claimed(snapshot)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// claimed adds the GatewayClasses that Gateways name and that no file has.
func claimed(s cluster.Snapshot) cluster.Snapshot {
	for _, gw := range s.Gateways.All() {
		name := string(gw.Spec.GatewayClassName)
		if _, there := s.GatewayClasses.Get("", name); !there {
			fresh := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
			fresh.Spec.ControllerName = graph.DefaultControllerName
			s.GatewayClasses = s.GatewayClasses.With(fresh)
		}
	}
	return s
}

var controllerLine = regexp.MustCompile(`controllerName: .*`)

// everythingWrong is objects with all kinds of faults, beside good ones.
func everythingWrong() string {
	text := class + service("default", "shop") + service("other", "far")
	listeners := []string{
		"{name: good, port: 80, protocol: HTTP}",
		"{name: same-a, port: 81, protocol: HTTP}", "{name: same-b, port: 81, protocol: HTTP}",
		"{name: mixed-a, port: 82, protocol: HTTP}", "{name: mixed-b, port: 82, protocol: HTTPS, tls: {certificateRefs: [{name: x}]}}",
		"{name: tcp, port: 83, protocol: UDP}", "{name: big, port: 65535, protocol: HTTP, hostname: BAD}",
		"{name: kinds, port: 84, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}",
		"{name: tls-a, port: 443, protocol: HTTPS, hostname: a.com, tls: {certificateRefs: [{name: gone}]}}",
		"{name: tls-b, port: 443, protocol: HTTPS, hostname: '*.com', tls: {certificateRefs: [{name: x, namespace: other}]}}",
	}
	text += strings.Replace(gateway("gw", listeners...), "listeners:", "allowedListeners: {namespaces: {from: Same}}, listeners:", 1) + gateway("younger", http80) + gateway("none", "{name: tcp, port: 83, protocol: UDP}")
	for i, set := range []string{
		"{parentRef: {name: gw}, listeners: [{name: a, port: 80, protocol: HTTP, hostname: set.com}, {name: b, port: 80, protocol: HTTP}]}",
		"{parentRef: {name: gw}, listeners: [" + strings.Join(listeners, ", ") + "]}", "{parentRef: {name: gw}, listeners: []}",
		"{parentRef: {name: gw}, listeners: [{name: a, port: 81, protocol: HTTPS}]}",
		"{parentRef: {name: younger}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
		"{parentRef: {name: none}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
	} {
		text += fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: set%d}\nspec: %s\n", i, set)
	}
	for i, more := range []string{
		"addresses: [{type: Hostname, value: a.com}]", "addresses: [{value: 10.0.0.300}]", "defaultScope: All",
		"infrastructure: {parametersRef: {group: g, kind: K, name: p}}", "tls: {backend: {clientCertificateRef: {name: gone}}}",
		"tls: {backend: {clientCertificateRef: {name: x, namespace: other}}}",
	} {
		listener := fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", 100+i)
		text += strings.Replace(gateway(fmt.Sprint("gw", i), listener), "listeners:", more+", listeners:", 1)
	}
	for i, spec := range []string{
		"parentRefs: [{name: gw}, {name: younger}, {name: none}]",
		"parentRefs: [{name: gw, sectionName: nowhere}, {name: gw, sectionName: kinds}, {name: gw, sectionName: tls-a}]\nhostnames: [b.com]",
		"parentRefs: [{name: gw, sectionName: good}]\nhostnames: [BAD]",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [" + good + ", " + bad + "]",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [" + bad + "]",
		"parentRefs: [{name: gw, sectionName: good}]\nuseDefaultGateways: All",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [{filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {hostname: a.com}}]}]",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [{backendRefs: [{name: gone, port: 80}]}]",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [{backendRefs: [{name: far, namespace: other, port: 80}]}]",
		"parentRefs: [{name: gw, sectionName: good}]\nrules: [{backendRefs: [{name: shop, kind: Bucket, group: a.com}]}]",
	} {
		text += route(fmt.Sprint("r", i), spec)
	}
	return text
}

func TestRoutesCountOnListenersThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	manifests := class + gateway("gw", http80, "{name: refused, port: 81, protocol: HTTP, tls: {}}") +
		route("one", "parentRefs: [{name: gw}]") + route("two", "parentRefs: [{name: gw, sectionName: refused}]") +
		route("invalid", "parentRefs: [{name: gw}]\nrules: ["+bad+"]")
	listeners := statusOf(t, statuses(build(t, manifests)), "Gateway", "gw").Gateway.Listeners
	if listeners[0].AttachedRoutes != 1 || listeners[1].AttachedRoutes != 2 || condition(listeners[1].Conditions, accepted).Status != "False" {
		t.Errorf("%d and %d routes, the second listener has %s", listeners[0].AttachedRoutes, listeners[1].AttachedRoutes, show(listeners[1].Conditions))
	}
}

func TestAnAddressThatCannotBeBoundIsReported(t *testing.T) {
	t.Parallel()
	g := build(t, class+strings.Replace(gateway("gw", http80), "listeners:", "addresses: [{value: 192.0.2.1}], listeners:", 1))
	const words = "192.0.2.1:80 cannot be bound, because this machine has no address 192.0.2.1"
	result := status.Result{Running: g, LeftOut: map[model.Owner]string{"Port default/gw 192.0.2.1:80": words}}
	state := statusOf(t, status.Compute(graph.DefaultControllerName, g, result), "Gateway", "gw").Gateway
	for what, list := range map[string][]metav1.Condition{"the Gateway": state.Conditions, "its listener": state.Listeners[0].Conditions} {
		if got := condition(list, programme); got.Status != "False" || !strings.Contains(got.Message, "192.0.2.1") {
			t.Errorf("%s has %s=%s/%s: %s", what, got.Type, got.Status, got.Reason, got.Message)
		}
	}
}

func TestAConflictedEntrysPortIsNotBound(t *testing.T) {
	t.Parallel()
	open := strings.Replace(gateway("gw", http80, "{name: b, port: 81, protocol: HTTP}"), "listeners:", "allowedListeners: {namespaces: {from: Same}}, listeners:", 1)
	set := func(name, listener string) string {
		return fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: %s}\nspec: {parentRef: {name: gw}, listeners: [%s]}\n", name, listener)
	}
	config := translated(t, class+open+set("a", "{name: one, port: 82, protocol: HTTP}, {name: two, port: 82, protocol: HTTP}, {name: three, port: 83, protocol: HTTP}"))
	var bound []uint16
	for _, port := range config.Frame.Ports {
		bound = append(bound, port.Public)
	}
	if !slices.Equal(bound, []uint16{80, 81, 83}) {
		t.Errorf("ports %v are bound, want 80, 81 and 83", bound)
	}
}
