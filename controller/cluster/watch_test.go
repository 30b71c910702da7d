package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limpet-gateway/limpet/internal/apiservertest"
)

// live is within what an edit must be live.
const live = time.Second

// observer runs Files and remembers which Services each snapshot had.
type observer struct {
	t   *testing.T
	log lockedBuffer

	mu   sync.Mutex
	seen []string
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func observe(t *testing.T, paths ...string) *observer {
	t.Helper()

	o := &observer{t: t}
	files := NewFiles(FilesOptions{Paths: paths, Log: slog.New(slog.NewTextHandler(&o.log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- files.Run(ctx, o.take) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ends with %v", err)
		}
	})
	return o
}

func (o *observer) take(s Snapshot) {
	var all []string
	for _, service := range s.Services.All() {
		all = append(all, service.Name+service.Spec.ClusterIP)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, strings.Join(all, " "))
}

func (o *observer) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

// want waits for a snapshot with these Services.
func (o *observer) want(want string) {
	o.t.Helper()

	if !within(live, func() bool { seen := o.all(); return len(seen) > 0 && seen[len(seen)-1] == want }) {
		o.t.Fatalf("after %v: %q, want %q\n%s", live, o.all(), want, o.log.String())
	}
}

// within says whether something holds in time. Time that a busy machine did not give us does not count.
func within(limit time.Duration, holds func() bool) bool {
	const pause = time.Millisecond
	for used := time.Duration(0); used < limit; used += pause {
		start := time.Now()
		if holds() {
			return true
		}
		time.Sleep(pause)
		if late := time.Since(start) - pause; late < 10*pause {
			used += late
		}
	}
	return holds()
}

// never says that no snapshot had these Services.
func (o *observer) never(not string) {
	o.t.Helper()

	if seen := o.all(); slices.Contains(seen, not) {
		o.t.Errorf("%q was in %q", not, seen)
	}
}

func TestMain(m *testing.M) {
	// client-go leaves the goroutine of a watch's filter behind when a watch is ended with an event under way.
	// controller-runtime leaves two for each informer of several namespaces.
	goleak.VerifyTestMain(apiservertest.Tests{M: m},
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformer.func1"),
		goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformerHandlerRegistration.func1"))
}

func TestAnEditInPlaceIsLive(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "")})
	o := observe(t, dir)
	o.want("a")
	for i := range 5 {
		write(t, filepath.Join(dir, "a.yaml"), service("default", "a", fmt.Sprintf("{clusterIP: v%d}", i)))
		o.want(fmt.Sprintf("av%d", i))
	}
}

func TestAFileThatIsRenamedOverAnotherIsLive(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "")})
	o := observe(t, filepath.Join(dir, "a.yaml"))
	o.want("a")
	for i := range 3 {
		write(t, filepath.Join(dir, ".a.yaml.swp"), service("default", "a", fmt.Sprintf("{clusterIP: v%d}", i)))
		if err := os.Rename(filepath.Join(dir, ".a.yaml.swp"), filepath.Join(dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		o.want(fmt.Sprintf("av%d", i))
	}
}

func TestAMountedConfigMapThatIsSwappedIsLive(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"..one/a.yaml": service("default", "a", ""), "..two/a.yaml": service("default", "a", "{clusterIP: two}")})
	link(t, "..one", filepath.Join(dir, "..data"))
	link(t, "..data/a.yaml", filepath.Join(dir, "a.yaml"))
	o := observe(t, dir)
	o.want("a")
	link(t, "..two", filepath.Join(dir, "..data_tmp"))
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "..one")); err != nil {
		t.Fatal(err)
	}
	o.want("atwo")
}

func TestAChangeBehindALinkIsLive(t *testing.T) {
	t.Parallel()

	elsewhere := folder(t, map[string]string{"real": service("default", "a", ""), "one/b.yaml": service("default", "b", ""), "two/b.yaml": service("default", "b", "two")})
	dir := t.TempDir()
	link(t, filepath.Join(elsewhere, "real"), filepath.Join(dir, "a.yaml"))
	link(t, filepath.Join(elsewhere, "one"), filepath.Join(dir, "current"))
	o := observe(t, filepath.Join(dir, "a.yaml"), filepath.Join(dir, "current"))
	o.want("a b")
	write(t, filepath.Join(elsewhere, "real"), service("default", "a", "{clusterIP: new}"))
	o.want("anew b")
	write(t, filepath.Join(elsewhere, "two", "b.yaml"), service("default", "b", "{clusterIP: two}"))
	link(t, filepath.Join(elsewhere, "two"), filepath.Join(dir, "next"))
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	o.want("anew btwo")
}

func TestFilesAndFoldersComeAndGo(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	o := observe(t, dir)
	o.want("")
	write(t, filepath.Join(dir, "new", "deep", "a.yaml"), service("default", "a", ""))
	o.want("a")
	write(t, filepath.Join(dir, "new", "deep", "b.yaml"), service("default", "b", ""))
	o.want("a b")
	if err := os.Remove(filepath.Join(dir, "new", "deep", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	o.want("b")
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "old", "deep", "c.yaml"), service("default", "c", ""))
	o.want("b c")
	if err := os.RemoveAll(filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	o.want("")
}

func TestAFileThatIsEmptiedAndThenWrittenLosesNothing(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "") + "---\n" + service("default", "b", "")})
	path := filepath.Join(dir, "a.yaml")
	o := observe(t, dir)
	o.want("a b")
	for i := range 3 {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range []string{service("default", "a", fmt.Sprintf("{clusterIP: v%d}", i)), "---\n" + service("default", "b", "")} {
			time.Sleep(50 * time.Millisecond)
			if _, err := file.WriteString(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		o.want(fmt.Sprintf("av%d b", i))
	}
	for i := range 3 {
		o.never("")
		o.never(fmt.Sprintf("av%d", i))
	}
	if strings.Contains(o.log.String(), "level=") {
		t.Errorf("logged:\n%s", o.log.String())
	}
}

func TestAFileThatIsRemovedAndMadeAgainLosesNothing(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "")})
	o := observe(t, dir)
	o.want("a")
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	write(t, filepath.Join(dir, "a.yaml"), service("default", "a", "{clusterIP: new}"))
	o.want("anew")
	o.never("")
}

func TestAnObjectThatMovesToAnotherFileIsNotLost(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "") + "---\n" + service("default", "b", "")})
	o := observe(t, dir)
	o.want("a b")
	write(t, filepath.Join(dir, "a.yaml"), service("default", "a", ""))
	time.Sleep(40 * time.Millisecond)
	write(t, filepath.Join(dir, "b.yaml"), service("default", "b", "{clusterIP: new}"))
	o.want("a bnew")
	if err := os.Rename(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "0.yaml")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * loss)
	o.want("a bnew")
	o.never("a")
	if strings.Contains(o.log.String(), "already") {
		t.Errorf("a move is reported as a duplicate:\n%s", o.log.String())
	}
}

func TestABrokenEditIsReportedAndChangesNothing(t *testing.T) {
	t.Parallel()

	dir := folder(t, map[string]string{"a.yaml": service("default", "a", "")})
	o := observe(t, dir)
	o.want("a")
	write(t, filepath.Join(dir, "a.yaml"), service("default", "b", "")+"---\n{\n")
	if !within(live, func() bool { return strings.Contains(o.log.String(), "a.yaml:") }) {
		t.Fatalf("no report:\n%s", o.log.String())
	}
	write(t, filepath.Join(dir, "b.yaml"), service("default", "c", ""))
	o.want("a c")
	write(t, filepath.Join(dir, "a.yaml"), service("default", "b", ""))
	o.want("b c")
}

func TestManyEditsAtOnceAreFewSnapshots(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	o := observe(t, dir)
	o.want("")
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("s%03d", i)
		want = append(want, name)
		write(t, filepath.Join(dir, name+".yaml"), service("default", name, ""))
	}
	o.want(strings.Join(want, " "))
	if seen := o.all(); len(seen) > 20 {
		t.Errorf("%d snapshots", len(seen))
	}
}

// link makes a symbolic link.
func link(t *testing.T, target, path string) {
	t.Helper()

	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
