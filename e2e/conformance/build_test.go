//go:build linux

package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs are what a run needs besides this test.
type programs struct {
	Limpet, HAProxy, Echo string
	// Definitions is the folder with Gateway API's CustomResourceDefinitions.
	Definitions string
}

// build builds them, in the repository's bin.
func build(t *testing.T) programs {
	t.Helper()
	root := absolute(t, filepath.Join("..", ".."))
	bin := filepath.Join(root, "bin", "conformance")
	p := programs{
		Limpet: filepath.Join(bin, "limpet"), Echo: filepath.Join(bin, "echo-basic"), HAProxy: os.Getenv("HAPROXY"),
		Definitions: filepath.Join(moduleDir(t, "sigs.k8s.io/gateway-api"), "config", "crd", "experimental"),
	}
	if p.HAProxy == "" {
		t.Fatal("$HAPROXY is not set: run `make conformance-files`, or set it to what `make haproxy` prints")
	}
	run(t, root, "go", "build", "-o", p.Limpet, "./cmd/limpet")
	buildEcho(t, filepath.Join(bin, "echo"), p.Echo)
	return p
}

// binds is where echo-basic says what it listens at, by file: it listens at all addresses, and every pod at the same ports. As here all
// pods share one loopback interface, each must listen at its own address only. Nothing else of it is changed.
var binds = map[string][]string{
	"echo-basic/echo-basic.go":                  {`Sprintf(":%s", `, `Sprintf(os.Getenv("POD_IP")+":%s", `, "3"},
	"echo-basic/grpc/grpc.go":                   {`Sprintf("0.0.0.0:%d", `, `Sprintf(os.Getenv("POD_IP")+":%d", `, "2"},
	"echo-basic/tcpserver/tcpserver.go":         {`Sprintf(":%s", `, `Sprintf(os.Getenv("POD_IP")+":%s", `, "2"},
	"echo-basic/udpechoserver/udpechoserver.go": {`":"+port`, `os.Getenv("POD_IP")+":"+port`, "1"},
}

// buildEcho builds the suite's back end from its own module.
func buildEcho(t *testing.T, source, program string) {
	t.Helper()
	if err := os.RemoveAll(source); err != nil {
		t.Fatal(err)
	}
	module := moduleDir(t, "sigs.k8s.io/gateway-api-conformance-images")
	err := fs.WalkDir(os.DirFS(module), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(module, path))
		if err != nil {
			return err
		}
		if change, there := binds[path]; there {
			if count := bytes.Count(text, []byte(change[0])); fmt.Sprint(count) != change[2] {
				return fmt.Errorf("%s has %d times %s, not %s times: see how it listens now", path, count, change[0], change[2])
			}
			text = bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1]))
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(source, path), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, source, "go", "build", "-o", program, "./echo-basic")
}

func moduleDir(t *testing.T, path string) string {
	t.Helper()
	return strings.TrimSpace(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", path))
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, errs.Bytes())
	}
	return string(out)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
