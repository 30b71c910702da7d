package cluster

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

func TestWhatDidNotChangeKeepsItsPointer(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{
		"a.yaml": service("default", "a", "{clusterIP: one}") + "---\n" + service("default", "b", ""),
		"b.yaml": "kind: Secret\napiVersion: v1\nmetadata: {name: s}\n---\nkind: Widget\napiVersion: x/v1\nmetadata: {name: w}\n",
	})
	files := NewFiles(FilesOptions{Paths: []string{dir}})
	before, _ := files.Load()
	same, _ := files.Load()
	if !before.same(same) {
		t.Fatal("a second look gives another snapshot")
	}

	// Another order, another layout, and a change of one object.
	write(t, filepath.Join(dir, "a.yaml"), "# hello\n"+service("default", "b", "")+"---\nmetadata:\n  namespace: default\n  name: a\n"+
		"spec:\n    clusterIP: two\napiVersion: v1\nkind: Service\n")
	after, problems := files.Load()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if !after.Secrets.Same(before.Secrets) || !after.Namespaces.Same(before.Namespaces) || &after.Others[0] != &before.Others[0] {
		t.Error("a kind without a change has another list")
	}
	was, _ := before.Services.Get("default", "b")
	is, _ := after.Services.Get("default", "b")
	if was != is {
		t.Error("an object without a change has another pointer")
	}
	was, _ = before.Services.Get("default", "a")
	is, _ = after.Services.Get("default", "a")
	if was == is || was.Spec.ClusterIP != "one" || is.Spec.ClusterIP != "two" {
		t.Errorf("was %+v, is %+v", was.Spec, is.Spec)
	}
}

func TestGenerationsCountChangesOfTheSpec(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	files := NewFiles(FilesOptions{Paths: []string{dir}})
	generation := func(text string) int64 {
		t.Helper()
		write(t, path, text)
		s, problems := files.Load()
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return s.Services.All()[0].Generation
	}
	const head = "apiVersion: v1\nkind: Service\n"
	steps := []struct {
		text string
		want int64
	}{
		{head + "metadata: {name: x}\nspec: {clusterIP: a, type: t}", 1},
		{head + "metadata: {name: x}\nspec: {type: t, clusterIP: a} # the same", 1},
		{head + "metadata: {name: x, labels: {a: b}}\nspec: {clusterIP: a, type: t}\nstatus: {}", 1},
		{head + "metadata: {name: x}\nspec: {clusterIP: b}", 2},
		{head + "metadata: {name: x}\nspec: {clusterIP: a}", 3},
		{head + "metadata: {name: x, generation: 7}\nspec: {clusterIP: a}", 7},
		{head + "metadata: {name: x, generation: 7}\nspec: {clusterIP: b}", 7},
		{head + "metadata: {name: x}\nspec: {clusterIP: c}", 8},
	}
	for i, step := range steps {
		if got := generation(step.text); got != step.want {
			t.Errorf("step %d: generation %d, want %d", i, got, step.want)
		}
	}
}

func TestAValueThatWasShownNeverChanges(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"b.yaml": service("default", "x", "{clusterIP: b}")})
	files := NewFiles(FilesOptions{Paths: []string{dir}})
	first, _ := files.Load()
	write(t, filepath.Join(dir, "a.yaml"), service("default", "x", "{clusterIP: a}"))
	second, _ := files.Load()
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	third, _ := files.Load()

	for i, s := range []Snapshot{first, second, third} {
		x := s.Services.All()[0]
		if got, want := fmt.Sprint(x.Spec.ClusterIP, x.Generation), []string{"b1", "a2", "b3"}[i]; got != want {
			t.Errorf("snapshot %d: %s, want %s", i, got, want)
		}
	}
}

func TestABrokenFileChangesNothingUntilItIsMended(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "") + "---\n" + service("default", "b", ""), "c.yaml": service("default", "c", "")})
	var log strings.Builder
	files := NewFiles(FilesOptions{Paths: []string{dir}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	good, _ := files.Load()

	for _, broken := range []string{
		service("default", "a", "{clusterIP: new}") + "---\n{",
		service("default", "a", "{clusterIP: new}") + "---\n" + service("default", "b", "{ports: 3}"),
		"kind: Service\n",
	} {
		write(t, filepath.Join(dir, "a.yaml"), broken)
		for range 2 {
			now, problems := files.Load()
			if !now.same(good) || len(problems) != 1 || !strings.Contains(problems[0].File, "a.yaml") {
				t.Errorf("%d services, %v", len(now.Services.All()), problems)
			}
		}
	}
	if count := strings.Count(log.String(), "level=ERROR"); count != 3 || strings.Count(log.String(), "what the file held before stays") != 3 || !strings.Contains(log.String(), "a.yaml:6") {
		t.Errorf("%d errors in\n%s", count, log.String())
	}

	write(t, filepath.Join(dir, "a.yaml"), service("default", "a", "{clusterIP: new}"))
	now, problems := files.Load()
	if len(now.Services.All()) != 2 || len(problems) != 0 || !strings.Contains(log.String(), "no problem is left here") {
		t.Errorf("%d services, %v\n%s", len(now.Services.All()), problems, log.String())
	}
}

func TestWhatWasNamedAndIsMissingKeepsWhatItHeld(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", ""), "d/b.yaml": service("default", "b", "")})
	file, inner := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "d")
	files := NewFiles(FilesOptions{Paths: []string{file, inner}})
	before, _ := files.Load()
	for _, path := range []string{file, inner} {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	now, problems := files.Load()
	if !now.same(before) || len(problems) != 2 {
		t.Errorf("%d services, %v", len(now.Services.All()), problems)
	}
	for _, path := range []string{file, inner} {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(inner, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	now, _ = files.Load()
	if len(now.Services.All()) != 1 {
		t.Errorf("%d services", len(now.Services.All()))
	}
}

func TestAFolderNamedByMistakeIsRefusedSoon(t *testing.T) {
	t.Parallel()

	// The whole file system: its folders are too many, or some cannot be read, and links lead in circles.
	w := look([]string{"/proc/self"})
	if len(w.unreadable) == 0 {
		t.Error("nothing is wrong with it")
	}
}

func TestAChangeOfOneObjectReadsOneDocument(t *testing.T) {
	t.Parallel()

	var text strings.Builder
	for i := range 500 {
		text.WriteString("---\n" + service("default", fmt.Sprintf("s%d", i), ""))
	}
	first := readText([]byte(text.String()), false, nil)
	second := readText([]byte(strings.Replace(text.String(), "name: s77,", "name: changed,\n\n", 1)), false, first)
	fresh := 0
	for i := range second.parts {
		if first.parts[i].document != second.parts[i].document {
			fresh++
		}
	}
	if fresh != 1 || len(second.parts) != 500 || second.parts[499].line != first.parts[499].line+2 {
		t.Errorf("%d of %d documents were read", fresh, len(second.parts))
	}
}

func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		service("default", "a", "{ports: [{port: 80}]}") + "---\n" + service("default", "b", ""),
		`{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x"}}]}`,
		"a: &a {<<: [*a, *a]}\n%YAML 1.1\n--- !!binary x\n...\n? [a]\n: b\n",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [{sessionPersistence: {sessionName: a}}]}",
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: e, generation: 3}\nendpoints: [{addresses: [::1], conditions: {ready: yes}}]\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: n}\nstringData: {a: !!binary eA==}\ndata: {b: eA==}\n",
		"apiVersion: x/v1\nkind: Widget\nmetadata: {name: w, creationTimestamp: null, ownerReferences: [{}]}\nvalue: [1_000, 0o7, .nan, ~, 1e99]\n",
		laughs("{<<: [*PREVIOUS, *PREVIOUS]}"),
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, isJSON bool) {
		m := newMerger()
		first := readText(text, isJSON, nil)
		s, _ := m.merge(Snapshot{}, []source{{path: "a", content: first}})
		lines := 1
		for _, r := range string(text) {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) { // all of which end a line in YAML
				lines++
			}
		}
		for _, p := range first.problems("a") {
			if p.Message == "" || p.Line < 0 || p.Line > lines || strings.Contains(p.Message, "mistake in Limpet") ||
				strings.ContainsFunc(p.String(), unicode.IsControl) {
				t.Errorf("problem %q in %d lines", p, lines)
			}
		}
		for _, o := range m.taken {
			if o.value.GetName() == "" || o.value.GetGeneration() == 0 || o.line < 1 || o.line > lines {
				t.Errorf("%v: %+v", o.id, o)
			}
		}
		again, _ := m.merge(s, []source{{path: "a", content: readText(append(text, '\n'), isJSON, nil)}})
		if !s.same(again) {
			t.Error("a second read gives something else")
		}
	})
}

func BenchmarkAnEditAmong5000Routes(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: route-%d
  namespace: shop
spec:
  parentRefs:
  - name: gw
  hostnames: [host-%d.example.com]
  rules:
  - matches:
    - path: {type: PathPrefix, value: /a}
    backendRefs:
    - name: svc-%d
      port: 80
`, i, i, i)
	}
	one := []byte(text.String())
	other := []byte(strings.Replace(text.String(), "/a}", "/b}", 1))
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			m := newMerger()
			m.merge(Snapshot{}, []source{{content: readText(one, false, nil)}})
		}
	})
	b.Run("edit", func(b *testing.B) {
		m := newMerger()
		now := readText(one, false, nil)
		s, _ := m.merge(Snapshot{}, []source{{content: now}})
		for i := 0; b.Loop(); i++ {
			now = readText([][]byte{other, one}[i%2], false, now)
			s, _ = m.merge(s, []source{{content: now}})
		}
	})
}
