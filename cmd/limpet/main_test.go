package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binary is the Limpet that tests run.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "limpet-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "limpet")
		build := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3", "-o", binary, ".")
		if output, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v\n%s", err, output))
		}
		return m.Run()
	}())
}

// ran is what a run of Limpet came to.
type ran struct {
	code           int
	stdout, stderr string
}

// limpet runs the binary to its end.
func limpet(t *testing.T, stdin string, args ...string) ran {
	t.Helper()

	return limpetIn(t, os.Environ(), stdin, args...)
}

func limpetIn(t *testing.T, environment []string, stdin string, args ...string) ran {
	t.Helper()

	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = environment
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// want fails unless the run came to a code and said what it should.
func (r ran) want(t *testing.T, code int, texts ...string) {
	t.Helper()

	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	if t.Failed() {
		t.Logf("%s%s", r.stdout, r.stderr)
	}
	if strings.Contains(r.stdout+r.stderr, "goroutine ") {
		t.Errorf("a panic:\n%s%s", r.stdout, r.stderr)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const shop = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: limpet}
spec: {controllerName: limpet.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: limpet
  listeners: [{name: http, port: PORT, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: gw}]
  hostnames: [shop.example]
  rules:
  - backendRefs: [{name: shop, port: 80}]
    sessionPersistence: {absoluteTimeout: 1h, cookie: {name: sid}}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{port: BACKEND}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// shopWith is the shop on a port, with a back end.
func shopWith(port, backend int) string {
	return strings.NewReplacer("PORT", fmt.Sprint(port), "BACKEND", fmt.Sprint(backend)).Replace(shop)
}

func TestHelpHasExamplesAndEveryCommand(t *testing.T) {
	t.Parallel()

	limpet(t, "").want(t, 0, "serve ", "check ", "render ", "version ", "completion ", "Examples:")
	for _, command := range []string{"serve", "check", "render"} {
		limpet(t, "", command, "--help").want(t, 0, "Examples:\n  ", "-f, --filename", "--port-offset", "--address")
	}
	limpet(t, "", "serve", "--help").want(t, 0, "--dir", "--haproxy", "--status-file", "--log-format", "--log-level", "--trusted-proxy", "Ctrl-C")
	limpet(t, "", "completion", "bash").want(t, 0, "bash completion")
	limpet(t, "", "__complete", "check", "-o", "").want(t, 0, "table\nyaml\n")
}

func TestVersionNamesItsParts(t *testing.T) {
	t.Parallel()

	limpet(t, "", "version").want(t, 0, "limpet v1.2.3 (Gateway API v1.7.0, go1.")
}

func TestMistakesInTheCommandLineSayWhatToDo(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), shopWith(80, 9000))
	cases := map[string]struct {
		args []string
		want string
	}{
		"no such command":        {[]string{"chekc"}, `there is no command "chekc": is check meant?`},
		"no such flag":           {[]string{"check", "--bad"}, "unknown flag: --bad"},
		"no files":               {[]string{"check"}, "give files or folders with -f"},
		"a file that is missing": {[]string{"serve", "-f", dir + "/nosuch"}, "nosuch: there is no such file or folder"},
		"an address of words":    {[]string{"check", "-f", path, "--address", "localhost"}, "give one such as 127.0.0.1"},
		"a large offset":         {[]string{"render", "-f", path, "--port-offset", "70000"}, "give a number from 0 to 65534"},
		"a proxy of words":       {[]string{"serve", "-f", path, "--trusted-proxy", "edge"}, "give one such as 10.0.0.0/8"},
		"a form of output":       {[]string{"check", "-f", path, "-o", "json"}, "give table or yaml"},
		"a form of log":          {[]string{"serve", "-f", path, "--log-format", "xml"}, "give text or json"},
		"a level of log":         {[]string{"serve", "-f", path, "--log-level", "loud"}, "give debug, info, warn or error"},
		"standard input":         {[]string{"serve", "-f", "-"}, "standard input cannot be watched"},
		"a status nowhere":       {[]string{"serve", "-f", path, "--status-file", dir + "/x/y.yaml"}, "there is no folder"},
		"a status among objects": {[]string{"serve", "-f", dir, "--status-file", dir + "/x/status.yaml"}, "put it elsewhere"},
		"a state among objects":  {[]string{"serve", "-f", dir, "--dir", dir}, "put it elsewhere"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			limpet(t, "", c.args...).want(t, exitUsage, "limpet: ", c.want)
		})
	}
}

func TestAnHAProxyThatIsMissingOrOldIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "m", "a.yaml"), shopWith(80, 9000))
	old, broken := write(t, filepath.Join(dir, "old"), "#!/bin/sh\necho 'HAProxy version 2.6.12-1+deb12u1 2023/12/16'\n"),
		write(t, filepath.Join(dir, "broken"), "#!/bin/sh\necho 'no such library'; exit 127\n")
	for _, script := range []string{old, broken} {
		if err := os.Chmod(script, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(haproxy string) ran {
		return limpet(t, "", "serve", "-f", path, "--dir", filepath.Join(dir, "s"), "--haproxy", haproxy)
	}
	serve(old).want(t, exitRefused, "old is HAProxy 2.6, which is too old: install 3.0 or newer (Debian 13: apt install haproxy; macOS: brew install haproxy;")
	serve(broken).want(t, exitRefused, "broken is no HAProxy that runs here: install 3.0")
	serve(filepath.Join(dir, "nosuch")).want(t, exitRefused, "there is no HAProxy at "+filepath.Join(dir, "nosuch")+": install 3.0")
	if _, err := findHAProxy(context.Background(), filepath.Join(dir, "nosuch")); err == nil {
		t.Error("found")
	}
}
