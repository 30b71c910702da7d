package apiservertest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

func goList(path string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	command := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", path)
	command.Dir = filepath.Dir(here)
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return string(out), nil
}
