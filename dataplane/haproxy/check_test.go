package haproxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

func TestACheckNamesEveryCulprit(t *testing.T) {
	l := prepare(t, skeleton)
	set := haproxytest.Skeleton{Dir: l.dir, Ports: []haproxytest.Port{
		{Name: "p1", Address: "127.0.0.1:1 frobnicate", Owner: "P"},
		{Name: "p2", Address: "127.0.0.1:2 ssl crt-list l.list", Owner: "Q"},
	}}.Set()
	assets := set.Assets.Edit()
	put := func(name, owner, text string) {
		assets.Set(name, files.Asset{Owner: owner, Text: text, Secret: strings.HasSuffix(name, "pem")})
	}
	put("good.pem", "good", certificate(t, ecKey(t), nil))
	put("weak.pem", "weak", certificate(t, rsaKey(t, 1024), nil))
	put("other.pem", "mismatched", certificate(t, ecKey(t), ecKey(t)))
	put("garbage.pem", "garbage", "garbage")
	put("l.list", "L", "good.pem\nweak.pem weak.example\nother.pem other.example\ngarbage.pem garbage.example\n")
	set.Assets = assets.Table()
	l.write(set)

	var refused *RefusedError
	if err := Check(t.Context(), haproxytest.Binary(t), l.store.Path(2)); !errors.As(err, &refused) {
		t.Fatalf("%v, want a refusal", err)
	}
	got := map[string]bool{}
	for _, alert := range refused.Alerts {
		meant := set.Mentioned(alert.Message, alert.Line)
		for _, name := range meant {
			asset, _ := set.Assets.Get(name)
			got[asset.Owner] = true
		}
		if len(meant) == 0 {
			got[set.Owner(alert.File, alert.Line)] = true
		}
		if strings.Contains(alert.Message, "PRIVATE KEY") || strings.Contains(alert.Message, l.dir) {
			t.Errorf("alert shows too much: %+v", alert)
		}
	}
	for _, owner := range []string{"P", "weak", "mismatched", "garbage"} {
		if !got[owner] {
			t.Errorf("%s is not named in %+v", owner, refused.Alerts)
		}
	}
	if len(got) != 4 {
		t.Errorf("named are %v, want four", got)
	}
}

func TestACheckPassesWhatIsRightAndReadsNoEnvironment(t *testing.T) {
	l := prepare(t, skeleton)
	t.Setenv("FROBNICATE", "frobnicate")
	t.Setenv("HAPROXY_MWORKER_WAIT_ONLY", "1")
	set := skeleton(l.dir)
	set.Sections[1].Text += `    http-response set-header X "${FROBNICATE}"` + "\n"
	l.write(set)
	if err := Check(t.Context(), haproxytest.Binary(t), l.store.Path(1)); err != nil {
		t.Error(err)
	}
	// An unknown variable is empty, and an empty value is refused here.
	if err := Check(t.Context(), haproxytest.Binary(t), l.store.Path(2)); err == nil {
		t.Error("the configuration read a variable of our environment")
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := prepare(t, skeleton)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Check(ctx, haproxytest.Binary(t), l.store.Path(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	if err := Check(t.Context(), "/nonexistent/haproxy", l.store.Path(1)); err == nil || !strings.Contains(err.Error(), "is /nonexistent/haproxy an HAProxy") {
		t.Errorf("%v, want what to do", err)
	}
}

func TestAlertsAreParsed(t *testing.T) {
	t.Parallel()
	got := parseAlerts(`[NOTICE]   (1) : haproxy version is 3.0.11
[ALERT]    (1) : config : parsing [haproxy.cfg:9] : 'bind 127.0.20.1:18081' in section 'frontend' : 
  'crt-list' : error processing line 4 in file 'l.list' : inconsistencies between private key and certificate loaded 'mism.pem'.
  unable to load SSL private key into SSL Context 'mism.pem': passed a null parameter.
[WARNING]  (1) : config : parsing [haproxy.cfg:3] : never mind
[ALERT]    (1) : config : [haproxy.cfg:13] : 'server x/b' : 'id' : custom id 3 already used at haproxy.cfg:12 ('server a').
[ALERT]    (1) : Binding [haproxy.cfg:15] for frontend p1: protocol tcpv4: cannot bind socket (Address already in use) for [127.0.20.1:18083].
[ALERT]    (1) : [/usr/sbin/haproxy.main()] Some protocols failed to start their listeners! Exiting.
[ALERT]    (1) : config : Proxy 'p1': no SSL certificate specified for bind '127.0.20.1:18081' at [haproxy.cfg:9] (use 'crt').
[ALERT]    (1) : config : Error(s) found in configuration file : haproxy.cfg
[ALERT]    (1) : config : Fatal errors found in configuration.`)
	want := []Alert{
		{"haproxy.cfg", 9, "'bind 127.0.20.1:18081' in section 'frontend' : 'crt-list' : error processing line 4 in file 'l.list' : " +
			"inconsistencies between private key and certificate loaded 'mism.pem'. " +
			"unable to load SSL private key into SSL Context 'mism.pem': passed a null parameter."},
		{"haproxy.cfg", 13, "'server x/b' : 'id' : custom id 3 already used at haproxy.cfg:12 ('server a')."},
		{"haproxy.cfg", 15, "Binding [haproxy.cfg:15] for frontend p1: protocol tcpv4: cannot bind socket (Address already in use) for [127.0.20.1:18083]."},
		{"haproxy.cfg", 9, "Proxy 'p1': no SSL certificate specified for bind '127.0.20.1:18081' at [haproxy.cfg:9] (use 'crt')."},
	}
	if len(got) != len(want) {
		t.Fatalf("%d alerts: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("alert %d is\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func ecKey(t *testing.T) any {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) any {
	t.Helper()
	// Go refuses to make so weak a key by itself.
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificate is a self-signed one with its key, or with another.
func certificate(t *testing.T, key, other any) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public(key), key)
	if err != nil {
		t.Fatal(err)
	}
	if other != nil {
		key = other
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func public(key any) any {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		return &key.PublicKey
	case *rsa.PrivateKey:
		return &key.PublicKey
	}
	return nil
}
