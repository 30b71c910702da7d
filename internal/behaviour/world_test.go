package behaviour

import (
	"crypto/tls"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// World is Limpet serving some objects, with the pods of their Services.
type World struct {
	// t is the test that the World belongs to; subtests pass their own.
	t         testing.TB
	block     block
	folder    string
	services  []*service
	addresses byte
	manifests string
	limpet    *limpet
}

// option is something that a World has besides the manifests.
type option func(*World)

// pods gives the World a Service with that many pods: "<name>-1" and so on.
func pods(name string, count int) option {
	return func(w *World) {
		s := &service{name: name}
		w.services = append(w.services, s)
		for range count {
			w.addPod(w.t, s)
		}
	}
}

// speaking gives the World a Service with one pod that speaks HTTP/2 or HTTP/1.1, in TLS if a configuration is given.
func speaking(name, appProtocol string, http2 bool, config *tls.Config) option {
	return func(w *World) {
		s := &service{name: name, appProtocol: appProtocol, http2: http2, tls: config}
		w.services = append(w.services, s)
		w.addPod(w.t, s)
	}
}

// trusting believes what proxies at these addresses say of clients.
func trusting(prefixes ...string) option {
	return func(w *World) {
		for _, prefix := range prefixes {
			w.limpet.options.trusted = append(w.limpet.options.trusted, netip.MustParsePrefix(prefix))
		}
	}
}

// problems lets the manifests hold what is no object.
func problems() option { return func(w *World) { w.limpet.options.problems = true } }

// Run brings Limpet up with these manifests, and everything down again when the test ends.
func Run(t testing.TB, manifests string, options ...option) *World {
	t.Helper()
	w := &World{t: t, block: newBlock(t), folder: folder(t)}
	w.limpet = newLimpet(t, w)
	for _, option := range options {
		option(w)
	}
	w.Apply(t, manifests)
	return w
}

// folder is a temporary one with a short path: a socket's has at most 107 bytes.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Apply replaces the manifests, and returns when they are served.
func (w *World) Apply(t testing.TB, manifests string) {
	t.Helper()
	w.manifests = manifests
	w.Sync(t)
}

// Sync returns when the manifests and the pods as they are now are served.
func (w *World) Sync(t testing.TB) {
	t.Helper()
	var services strings.Builder
	for _, s := range w.services {
		services.WriteString(s.manifest())
	}
	w.write(t, "manifests.yaml", w.manifests)
	w.write(t, "services.yaml", services.String())
	w.limpet.apply(t)
}

// write puts a file beside the manifests, or removes it if there is no text.
func (w *World) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(w.objects(), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.objects(), name)
	if text == "" {
		_ = os.Remove(path)
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *World) objects() string { return filepath.Join(w.folder, "objects") }

// address is where Gateways listen.
func (w *World) address() netip.Addr { return w.block.address(1) }
