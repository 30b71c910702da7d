package cluster

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// folder is a folder with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()

	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func makePipe(t *testing.T, path string) {
	t.Helper()

	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
}

// service is a document with a Service.
func service(namespace, name, spec string) string {
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n"
	if spec != "" {
		text += "spec: " + spec + "\n"
	}
	return text
}
