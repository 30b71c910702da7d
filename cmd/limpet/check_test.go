package main

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestCheckShowsATableOfAllConditions(t *testing.T) {
	t.Parallel()

	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), shopWith(80, 9000)+`---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: theirs}
spec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}
`)
	r := limpet(t, "", "check", "-f", path)
	r.want(t, 0)
	const want = `KIND          NAMESPACE/NAME       CONDITION         STATUS  REASON            MESSAGE
GatewayClass  limpet               Accepted          True    Accepted          Gateways of this class are served by Limpet.
                                   SupportedVersion  True    SupportedVersion  Limpet is built for Gateway API v1.7.
Gateway       default/gw           Accepted          True    Accepted          The Gateway and all its listeners are valid.
                                   ResolvedRefs      True    ResolvedRefs      All references are resolved.
                                   Programmed        True    Programmed        HAProxy serves the Gateway.
                listener http      Accepted          True    Accepted          The listener is valid.
                                   Conflicted        False   NoConflicts       The listener is distinct from all others.
                                   ResolvedRefs      True    ResolvedRefs      All references are resolved.
                                   Programmed        True    Programmed        HAProxy serves the listener.
HTTPRoute     default/shop
                parent default/gw  Accepted          True    Accepted          The route is accepted.
                                   ResolvedRefs      True    ResolvedRefs      All references are resolved.
Gateway       default/theirs       -                 -       -                 `
	if !strings.HasPrefix(r.stdout, want) || !strings.HasSuffix(r.stdout, "\n3 objects, none refused; 1 more not ours.\n") {
		t.Errorf("got\n%s", r.stdout)
	}
}

func TestCheckEndsWithOneWhenSomethingIsRefused(t *testing.T) {
	t.Parallel()

	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), strings.Replace(shopWith(80, 9000), "backendRefs: [{name: shop,", "backendRefs: [{name: none,", 1))
	limpet(t, "", "check", "-f", path).want(t, exitRefused, "BackendNotFound", "1 refused wholly or in part")
	limpet(t, "", "check", path).want(t, exitRefused, "BackendNotFound")
}

func TestCheckEndsWithOneWhenAFileIsBroken(t *testing.T) {
	t.Parallel()

	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), shopWith(80, 9000)+"---\nkind: [\n")
	r := limpet(t, "", "check", "-f", path)
	r.want(t, exitRefused, "a.yaml:35: error: the YAML is broken", "none refused")
	if !strings.Contains(r.stderr, "broken") || strings.Contains(r.stdout, "broken") {
		t.Error("what is wrong with the file does not go to standard error alone")
	}
}

func TestCheckWarnsOfAFieldThatDoesNotExist(t *testing.T) {
	t.Parallel()

	text := strings.Replace(shopWith(80, 9000), "cookie: {name: sid}", "cookie: {name: sid}, cookieName: sid", 1)
	limpet(t, text, "check", "-f", "-").want(t, 0,
		"stdin:21: warning: HTTPRoute default/shop: spec.rules[0].sessionPersistence.cookieName: there is no such field: it is ignored")
}

func TestCheckReadsStandardInputAndPrintsYAML(t *testing.T) {
	t.Parallel()

	r := limpet(t, shopWith(80, 9000), "check", "-f", "-", "-o", "yaml")
	r.want(t, 0)
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Status   map[string]any
		}
	}
	if err := yaml.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "List" || len(list.Items) != 3 || list.Items[2].Kind != "HTTPRoute" || list.Items[2].Status["parents"] == nil {
		t.Errorf("%+v", list)
	}
	if strings.Contains(r.stdout, "null") {
		t.Errorf("something is null:\n%s", r.stdout)
	}
}

func TestRenderShowsEverythingButKeys(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	certificate, key := testCertificate(t)
	text := strings.Replace(shopWith(80, 9000), "protocol: HTTP}]",
		"protocol: HTTP}, {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}]", 1) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: cert}\ntype: kubernetes.io/tls\nstringData:\n  tls.crt: |\n" +
		indent(certificate) + "  tls.key: |\n" + indent(key)
	path := write(t, filepath.Join(dir, "m", "a.yaml"), text)
	limpet(t, "", "check", "-f", path).want(t, 0)

	first := limpet(t, "", "render", "-f", path)
	first.want(t, 0, "==> haproxy.cfg <==\n", "==> keys.cfg <==\n# Not shown", "==> maps/hosts.map <==\n", "shop.example", "==> certs/")
	if again := limpet(t, "", "render", "-f", path); again != first {
		t.Error("a second run prints something else")
	}
	for _, secret := range []string{"PRIVATE KEY", "BEGIN CERTIFICATE", "hmac-key", strings.Split(key, "\n")[1]} {
		if strings.Contains(first.stdout, secret) {
			t.Errorf("%q is printed", secret)
		}
	}

	limpet(t, "", "render", "-f", path, "--output", filepath.Join(dir, "out")).want(t, 0)
	config := read(t, filepath.Join(dir, "out", "haproxy.cfg"))
	if !strings.Contains(first.stdout, config) || read(t, filepath.Join(dir, "out", "maps", "hosts.map")) == "" {
		t.Error("the files differ from what is printed")
	}
}

func TestRenderTellsOfABrokenFile(t *testing.T) {
	t.Parallel()

	limpet(t, shopWith(80, 9000)+"---\n{", "render", "-f", "-").want(t, exitRefused, "stdin:35: error", "==> haproxy.cfg <==")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
