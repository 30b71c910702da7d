package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/limpet-gateway/limpet/controller/cluster"
)

// theirs is the controllerName in the examples of the Gateway API.
const theirs = "acme.io/gateway-controller"

// examples are all manifests that the Gateway API's module ships.
func examples(t *testing.T) []string {
	t.Helper()

	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(output)), "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 80 {
		t.Fatalf("%d examples: %v", len(paths), err)
	}
	return paths
}

// TestEveryExampleOfTheGatewayAPIGetsItsConditions checks each manifest together with the classes and Gateways that it
// refers to and does not hold, so that everything in it is ours.
func TestEveryExampleOfTheGatewayAPIGetsItsConditions(t *testing.T) {
	t.Parallel()

	kinds := map[string]int{}
	for _, path := range examples(t) {
		expected := map[string]bool{}
		completed := write(t, filepath.Join(t.TempDir(), "rest.yaml"), completion(t, path, expected))
		statuses, code := checkYAML(t, path, completed)
		if code != 0 && code != exitRefused {
			t.Errorf("%s: exit code %d", path, code)
		}
		for object := range expected {
			kind, _, _ := strings.Cut(object, " ")
			kinds[kind]++
			if statuses[object] == 0 {
				t.Errorf("%s: %s has no condition", path, object)
			}
		}
	}
	want := []string{"GRPCRoute", "Gateway", "GatewayClass", "HTTPRoute", "ListenerSet", "TCPRoute", "TLSRoute", "UDPRoute"}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("the examples hold %v, want %v", got, want)
	}
}

func TestAllExamplesTogetherAreCheckedWithoutAPanic(t *testing.T) {
	t.Parallel()

	args := []string{"check", "--controller-name", theirs}
	r := limpet(t, "", append(args, examples(t)...)...)
	r.want(t, exitRefused, "is in ", " already: that one counts", " objects, ", " not ours.")
}

// checkYAML runs check and counts the conditions of each object, every one of which must be whole.
func checkYAML(t *testing.T, paths ...string) (map[string]int, int) {
	t.Helper()

	var stdout, stderr bytes.Buffer
	code := run(append([]string{"check", "-o", "yaml", "--controller-name", theirs}, paths...), nil, &stdout, &stderr)
	var list unstructured.UnstructuredList
	if err := yaml.Unmarshal(stdout.Bytes(), &list.Object); err != nil {
		t.Fatalf("%v: %v", paths, err)
	}
	counts := map[string]int{}
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	for _, item := range items {
		object := unstructured.Unstructured{Object: item.(map[string]any)}
		counts[nameOf(&object)] = countConditions(t, paths[0], object.Object["status"])
	}
	return counts, code
}

func countConditions(t *testing.T, path string, value any) int {
	t.Helper()

	count := 0
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if list, is := member.([]any); is && key == "conditions" {
				for _, c := range list {
					condition := c.(map[string]any)
					for _, field := range []string{"type", "status", "reason", "message", "observedGeneration"} {
						if condition[field] == nil || condition[field] == "" {
							t.Errorf("%s: no %s in %v", path, field, condition)
						}
					}
				}
				count += len(list)
				continue
			}
			count += countConditions(t, path, member)
		}
	case []any:
		for _, member := range value {
			count += countConditions(t, path, member)
		}
	}
	return count
}

func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

// completion returns what a manifest refers to and does not hold, and notes which of its objects must get a status.
func completion(t *testing.T, path string, expected map[string]bool) string {
	t.Helper()

	objects := readAll(t, path)
	gateways, classes := map[string]string{}, map[string]bool{}
	for _, object := range objects {
		key := object.GetNamespace() + "/" + object.GetName()
		switch object.GetKind() {
		case "GatewayClass":
			expected[nameOf(object)] = true
			classes[object.GetName()] = true
		case "Gateway":
			expected[nameOf(object)] = true
			gateways[key] = ""
		}
	}
	rest := ""
	for _, object := range objects {
		if class, _, _ := unstructured.NestedString(object.Object, "spec", "gatewayClassName"); class != "" && !classes[class] {
			classes[class] = true
			rest += classOf(class)
		}
		for _, key := range parents(object) {
			expected[nameOf(object)] = true
			if _, there := gateways[key]; !there {
				gateways[key] = ""
				rest += gatewayOf(key)
			}
		}
	}
	return rest + classOf("for-the-rest")
}

// readAll reads a manifest's objects without their types.
func readAll(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := cluster.NewFiles(cluster.FilesOptions{Paths: []string{path}}).Load()
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	if len(snapshot.Namespaces.All()) == 0 && len(snapshot.GatewayClasses.All()) == 0 {
		t.Errorf("%s holds nothing", path)
	}
	var all []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+string(text), "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if object.Object == nil {
			continue
		}
		if object.GetNamespace() == "" && object.GetKind() != "GatewayClass" && object.GetKind() != "Namespace" {
			object.SetNamespace("default")
		}
		all = append(all, object)
	}
	return all
}

// parents are the Gateways that an object refers to as its parents.
func parents(object *unstructured.Unstructured) []string {
	refs, _, _ := unstructured.NestedSlice(object.Object, "spec", "parentRefs")
	if ref, found, _ := unstructured.NestedMap(object.Object, "spec", "parentRef"); found {
		refs = append(refs, ref)
	}
	var all []string
	for _, r := range refs {
		ref := r.(map[string]any)
		if kind := ref["kind"]; kind != nil && kind != "Gateway" {
			continue
		}
		namespace, _ := ref["namespace"].(string)
		if namespace == "" {
			namespace = object.GetNamespace()
		}
		all = append(all, namespace+"/"+ref["name"].(string))
	}
	return all
}

func classOf(name string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: %s}
spec: {controllerName: %s}
`, name, theirs)
}

func gatewayOf(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: %s}
spec:
  gatewayClassName: for-the-rest
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`, name, namespace)
}
