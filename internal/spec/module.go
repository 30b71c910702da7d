package spec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// Module is the module that holds the specification.
const Module = "sigs.k8s.io/gateway-api"

// Source finds the module, at the version that the go.mod of the folder root names.
func Source(ctx context.Context, root string) (module fs.FS, version string, err error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", Module)
	command.Dir = root
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, "", fmt.Errorf("go list -m %s: %w: %s", Module, err, failed.Stderr)
	}
	if err != nil {
		return nil, "", fmt.Errorf("go list -m %s: %w", Module, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if dir == "" {
		return nil, "", fmt.Errorf("%s %s is not in the module cache: run \"go mod download %s\"", Module, version, Module)
	}
	return os.DirFS(dir), version, nil
}

// Extract gives every sentence of the specification that lays a duty on someone, once each, in the order of the text.
func Extract(module fs.FS) ([]Sentence, error) {
	text, err := godoc(module)
	if err != nil {
		return nil, err
	}
	for _, name := range proposals {
		prose, err := markdown(module, name)
		if err != nil {
			return nil, err
		}
		text = append(text, prose...)
	}
	var all []Sentence
	seen := map[string]bool{}
	for _, s := range text {
		if !seen[s.ID] {
			seen[s.ID] = true
			all = append(all, s)
		}
	}
	return all, nil
}
