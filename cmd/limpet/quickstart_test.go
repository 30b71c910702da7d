package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

// TestTheFirstSessionOfTheREADME does what the README tells a new user to do, on ports that are free.
func TestTheFirstSessionOfTheREADME(t *testing.T) {
	t.Parallel()

	port, dir := freePort(t), haproxytest.Dir(t)
	ports := strings.NewReplacer(
		"port: 8080", fmt.Sprint("port: ", port), "port: 9001", fmt.Sprint("port: ", named(t, "one")),
		"port: 9002", fmt.Sprint("port: ", named(t, "two")))
	for _, name := range []string{"gateway.yaml", "route.yaml", "backends.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples/quickstart", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "quickstart", name), ports.Replace(string(text)))
	}
	limpet(t, "", "check", "-f", "../../examples/quickstart").want(t, 0, "none refused")
	serve(t, "-f", filepath.Join(dir, "quickstart"), "--port-offset", "0", "--dir", filepath.Join(dir, "s"))
	eventually(t, "answer", 20*time.Second, func() bool { code, _ := get(port, "shop.localhost"); return code == 200 })

	visitor := newVisitor(t, port)
	endpoint := visitor.ask(t)
	others := map[string]bool{}
	for range 8 {
		if got := visitor.ask(t); got != endpoint {
			t.Errorf("the client with the jar moved from %s to %s", endpoint, got)
		}
		others[newVisitor(t, port).ask(t)] = true
	}
	if len(others) != 2 {
		t.Errorf("new clients reach %v, not both endpoints in turn", others)
	}

	backends := filepath.Join(dir, "quickstart", "backends.yaml")
	text, err := os.ReadFile(backends)
	if err != nil {
		t.Fatal(err)
	}
	pod := "  targetRef: {kind: Pod, namespace: default, name: shop-" + endpoint
	write(t, backends, strings.Replace(string(text), pod, "  conditions: {ready: false, serving: true}\n"+pod, 1))
	// Two in a row, because new clients take turns.
	eventually(t, "drained endpoint", 10*time.Second, func() bool {
		first, second := newVisitor(t, port).ask(t), newVisitor(t, port).ask(t)
		return first != endpoint && second != endpoint
	})
	if got := visitor.ask(t); got != endpoint {
		t.Errorf("the client with the jar left the draining endpoint %s for %s", endpoint, got)
	}
}

// named starts a back end that answers with its name.
func named(t *testing.T, name string) int {
	t.Helper()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Name", name) }))
	t.Cleanup(s.Close)
	return freeOf(s.URL)
}

// visitor is a client with a cookie jar.
type visitor struct {
	client *http.Client
	port   int
}

func newVisitor(t *testing.T, port int) visitor {
	t.Helper()

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return visitor{&http.Client{Jar: jar, Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, port}
}

// ask returns the name of the back end that answered.
func (v visitor) ask(t *testing.T) string {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", v.port), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "shop.localhost"
	response, err := v.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("Name")
}
