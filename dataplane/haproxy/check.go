package haproxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// checkTimeout bounds a check whose context has no deadline: a thousand certificates take a second and more.
const checkTimeout = time.Minute

// Check lets HAProxy read the configuration in a folder, without serving it. A *RefusedError has its words.
func Check(ctx context.Context, binary, folder string) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"-W", "-c"}, configArguments(folder)...)...)
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("checking the configuration: %w", ctx.Err())
	case errors.As(err, &exit):
		return refused(string(output))
	}
	return fmt.Errorf("checking the configuration: %w: is %s an HAProxy 3.0 or newer?", err, binary)
}

// configArguments make HAProxy read a generation. It changes into the folder first, at every reload anew: so the names in
// the files are relative to it, and alerts and map names are the same in all generations.
func configArguments(folder string) []string {
	arguments := []string{"-C", folder}
	for _, name := range files.ConfigFiles() {
		arguments = append(arguments, "-f", name)
	}
	return arguments
}

// environment is all that HAProxy gets of ours: a configuration can read variables, and must not find any.
func environment() []string { return []string{"PATH=" + os.Getenv("PATH")} }
