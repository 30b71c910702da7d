package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// howToGet is what to do where there is no right HAProxy.
const howToGet = "install 3.0 or newer (Debian 13: apt install haproxy; macOS: brew install haproxy; " +
	"elsewhere, make haproxy in Limpet's source compiles one), or say where it is with --haproxy"

// findHAProxy returns the path of an HAProxy that is new enough. Debian keeps it in a folder that is not in every
// user's PATH.
func findHAProxy(ctx context.Context, given string) (string, error) {
	candidates := []string{given}
	if given == "" {
		candidates = []string{"haproxy", "/usr/local/sbin/haproxy", "/usr/sbin/haproxy"}
	}
	for _, candidate := range candidates {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		return path, checkHAProxy(ctx, path)
	}
	if given != "" {
		return "", fmt.Errorf("there is no HAProxy at %s: %s", given, howToGet)
	}
	return "", fmt.Errorf("there is no HAProxy here: %s", howToGet)
}

var haproxyVersion = regexp.MustCompile(`HAProxy version (\d+)\.(\d+)[^ \n]*`)

func checkHAProxy(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, "-v")
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	output, err := command.CombinedOutput()
	found := haproxyVersion.FindSubmatch(output)
	if err != nil || found == nil {
		return fmt.Errorf("%s is no HAProxy that runs here: %s", path, howToGet)
	}
	if major, err := strconv.Atoi(string(found[1])); err != nil || major < 3 {
		return fmt.Errorf("%s is HAProxy %s.%s, which is too old: %s", path, found[1], found[2], howToGet)
	}
	return nil
}
