package dataplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
)

func TestABadLineIsLeftOutAloneAndStaysOutUntilItChanges(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.port("bad1", "X")
	good := l.port("p2", "Y")
	l.route("j", "one")
	got := l.apply()
	if !got.Reloaded || len(got.LeftOut) != 1 || !strings.Contains(got.LeftOut["X"], "unknown keyword 'frobnicate'") {
		t.Errorf("%+v, want X left out with HAProxy's words", got)
	}
	for _, at := range []string{address, good} {
		if answer := l.get(at, "j"); answer != "a" {
			t.Errorf("%s answers %q", at, answer)
		}
	}
	l.route("k", "one")
	if got := l.apply(); got.Reloaded || got.Commands != 2 || len(got.LeftOut) != 1 {
		t.Errorf("later: %+v, want two commands, and X still out", got)
	}
	// The owner's fragment changes, and is refused again: nothing else happens.
	l.noPort("bad1")
	l.port("bad1", "X")
	if got := l.apply(); got.Reloaded || len(got.LeftOut) != 1 {
		t.Errorf("again: %+v, want X out without a reload", got)
	}
	l.noPort("bad1")
	fixed := l.port("p3", "X")
	if got := l.apply(); !got.Reloaded || len(got.LeftOut) != 0 {
		t.Errorf("mended: %+v", got)
	}
	if answer := l.get(fixed, "k"); answer != "a" {
		t.Errorf("the mended port answers %q", answer)
	}
}

func TestABadFirstConfigurationIsServedWithoutTheCulprit(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	address := l.port("p1", "A")
	l.port("bad1", "X")
	l.port("bad2", "Y")
	l.backend("one", l.endpoint("a", 1))
	l.route("h", "one")
	if got := l.apply(); !got.Reloaded || len(got.LeftOut) != 2 || l.get(address, "h") != "a" {
		t.Errorf("%+v", got)
	}
}

func TestABadCertificateTakesNothingElseAlong(t *testing.T) {
	l, _ := serving(t)
	l.port("p2", "Gateway tls")
	ports := l.config.Frame.Ports
	ports[len(ports)-1].Servers = []model.TLSServer{{ID: "t1", Certificates: []string{"good", "weak", "garbage"}}}
	edit := l.config.Certificates.Edit()
	for _, certificate := range []*model.Certificate{
		{ID: "good", Owner: "Secret good", PEM: pemOf(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))},
		{ID: "weak", Owner: "Secret weak", PEM: pemOf(t, weakKey(t))},
		{ID: "garbage", Owner: "Secret garbage", PEM: "garbage"},
	} {
		edit.Set(certificate.ID, certificate)
	}
	l.config.Certificates = edit.Table()
	got := l.apply()
	if !got.Reloaded || len(got.LeftOut) != 2 || !strings.Contains(got.LeftOut["Secret weak"], "key too small") || got.LeftOut["Secret garbage"] == "" {
		t.Errorf("%+v, want the weak and the garbage one left out", got)
	}
	if text := fmt.Sprint(got) + l.logged(); strings.Contains(text, "PRIVATE KEY") {
		t.Error("a key is shown")
	}
	conn, err := net.Dial("tcp", netip.AddrPortFrom(ports[1].Address, ports[1].Bind).String())
	if err != nil {
		t.Fatalf("the TLS port is gone: %v", err)
	}
	_ = conn.Close()
}

func TestAPortThatIsTakenIsLeftOutUntilItIsFree(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(taken.Addr().String())
	l.config.Frame.Ports = append(append([]model.Port(nil), l.config.Frame.Ports...), model.Port{ID: "p2", Owner: "X", Address: at.Addr(), Bind: at.Port()})
	good := l.port("p3", "Y")
	l.route("j", "one")
	got := l.apply()
	if !got.Reloaded || len(got.LeftOut) != 1 || !strings.Contains(got.LeftOut["X"], at.String()+" is in use by another process") {
		t.Errorf("%+v, want X left out", got)
	}
	if a, b := l.get(address, "j"), l.get(good, "j"); a != "a" || b != "a" {
		t.Errorf("answers %q and %q", a, b)
	}
	_ = taken.Close()
	l.within(30*time.Second, "the freed port is served", func() bool { return l.get(at.String(), "j") == "a" })
	if got := l.apply(); got.Reloaded || len(got.LeftOut) != 0 {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestAPortThatIsTakenCostsNobodyARequest(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	own := l.port("p2", "Port x/1")
	l.apply()
	stops := []func() (int64, string){
		l.traffic(address, "h", "a", 3), l.traffic(own, "h", "a", 3), l.newConnections(address, "h", "a", 2), l.newConnections(own, "h", "a", 2),
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(taken.Addr().String())
	l.config.Frame.Ports = append(l.config.Frame.Ports,
		model.Port{ID: "p3", Owner: "Port x/2", Address: at.Addr(), Bind: at.Port()},
		model.Port{ID: "p4", Owner: "Port x/3", Address: netip.MustParseAddr("192.0.2.1"), Bind: at.Port()},
	)
	before := l.worker()
	got := l.apply()
	if got.Reloaded || l.worker() != before || len(got.LeftOut) != 2 ||
		!strings.Contains(got.LeftOut["Port x/3"], "this machine has no address 192.0.2.1") {
		t.Errorf("%+v, want two ports left out without a reload", got)
	}
	l.route("j", "two")
	free := l.port("p5", "Port x/4")
	if got := l.apply(); !got.Reloaded || len(got.LeftOut) != 2 || l.get(free, "h") != "a" {
		t.Errorf("%+v, want what is free served by a reload", got)
	}
	time.Sleep(2 * time.Second)
	_ = taken.Close()
	l.within(5*time.Second, "the freed port is served", func() bool { return l.get(at.String(), "h") == "a" })
	for i, stop := range stops {
		requests, wrong := stop()
		t.Logf("%d: %d requests", i, requests)
		if wrong != "" {
			t.Errorf("%d: a request was answered by %q", i, wrong)
		}
	}
	if got := l.apply(); got.Reloaded || got.Generation != 4 || len(got.LeftOut) != 1 {
		t.Errorf("afterwards: %+v, want the fourth generation by four loads", got)
	}
}

// newConnections is traffic whose every request is a connection.
func (l *lab) newConnections(address, host, want string, clients int) (stop func() (int64, string)) {
	return l.trafficWith(func() *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	}, address, host, want, clients)
}

func TestAPortOfOursIsNotTaken(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	at := netip.MustParseAddrPort(address)
	// The same port at all addresses, while HAProxy holds it at one; and back.
	one := l.config.Frame.Ports
	all := append([]model.Port(nil), one...)
	all[0].Address = netip.MustParseAddr("0.0.0.0")
	for _, ports := range [][]model.Port{all, one} {
		l.config.Frame.Ports = ports
		if got := l.apply(); !got.Reloaded || len(got.LeftOut) != 0 || l.get(address, "h") != "a" {
			t.Errorf("%s: %+v", ports[0].Address, got)
		}
	}
	// What was given up a moment ago, and after HAProxy died.
	l.noPort("p1")
	l.apply()
	l.config.Frame.Ports = []model.Port{{ID: "p9", Owner: "Y", Address: at.Addr(), Bind: at.Port()}}
	l.kill(l.worker())
	l.within(10*time.Second, "it is served again", func() bool {
		got := l.try(5 * time.Second)
		return got.Err == nil && len(got.LeftOut) == 0 && l.get(address, "h") == "a"
	})
}

func TestALoadThatFailsIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	l, address := serving(t, func(o *Options) { o.Retry = 400 * time.Millisecond })
	l.port("deaf1", "X")
	if got := l.apply(); len(got.LeftOut) != 1 {
		t.Fatalf("%+v", got)
	}
	time.Sleep(4 * time.Second)
	if tries := strings.Count(l.logged(), "because HAProxy refuses it"); tries > 5 {
		t.Errorf("%d tries in four seconds", tries)
	}
	l.noPort("deaf1")
	if got := l.apply(); len(got.LeftOut) != 0 || l.get(address, "h") != "a" {
		t.Errorf("%+v", got)
	}
}

func TestAWorkerThatSawManyRefusalsIsReplaced(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.route("j", "one")
	l.apply()
	before := l.worker()
	l.engine.end()
	l.engine.driver.refusals = manyRefusals - 1
	d := l.engine.driver
	l.port("deaf1", "X")
	d.want(l.config)
	d.reloaded = time.Time{}
	if got, done := d.round(t.Context()); !done || got.Err != nil || got.Reloaded || len(got.LeftOut) != 1 {
		t.Errorf("%+v, want X left out", got)
	}
	if d.refusals != 0 || l.worker() == before || l.get(address, "j") != "a" {
		t.Errorf("%d refusals, and worker %d still serves", d.refusals, l.worker())
	}
	d.behind.wait(d)
	d.release()
	l.engine = nil
}

func TestAnEntryThatCannotBeWrittenIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.route("bad host", "one")
	l.route("j", "one")
	got := l.apply()
	if got.Reloaded || len(got.LeftOut) != 1 || !strings.Contains(got.LeftOut["HTTPRoute bad host"], "blank") || l.get(address, "j") != "a" {
		t.Errorf("%+v", got)
	}
	l.route("bad host", "")
	if got := l.apply(); len(got.LeftOut) != 0 || got.Commands != 0 {
		t.Errorf("without it: %+v", got)
	}
}

func TestWhatIsNobodysFaultKeepsTheLastGoodAndDataGoesOn(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.port("bad1", "") // Limpet's own line
	l.backend("one", l.endpoint("z", 7))
	got := l.try(30 * time.Second)
	if got.Err == nil || got.Reloaded || !strings.Contains(got.Err.Error(), "frobnicate") || !strings.Contains(got.Err.Error(), "keeps generation 1") {
		t.Errorf("%+v, want the refusal and the last good generation", got)
	}
	if answer := l.get(address, "h"); answer != "z" {
		t.Errorf("h answers %q, want the new endpoint", answer)
	}
	if l.engine.driver.store.Current() != 1 {
		t.Errorf("current is %d", l.engine.driver.store.Current())
	}
}

func TestCulpritsWithoutALineAreFoundByTheirSection(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	for i := range 12 {
		l.port(fmt.Sprintf("odd%d", i), fmt.Sprintf("Owner %d", i))
	}
	l.backend("one", l.endpoint("z", 7))
	got := l.apply()
	if got.Reloaded || len(got.LeftOut) != 12 || !strings.Contains(got.LeftOut["Owner 3"], "Proxy 'odd3': unable to find required use_backend") {
		t.Errorf("%+v, want twelve left out", got)
	}
	if answer := l.get(address, "h"); answer != "z" {
		t.Errorf("h answers %q, want the new endpoint", answer)
	}
}

func TestCulpritsThatNothingNamesAreFoundByBisection(t *testing.T) {
	t.Parallel()
	l, _ := serving(t)
	for i := range 14 {
		l.port(fmt.Sprintf("p-%d", i), fmt.Sprintf("Owner %d", i))
	}
	l.port("odd1", "Owner 20")
	l.port("odd2", "Owner 5a")
	l.driverFinds(t, func(d *driver) {
		d.want(l.config)
		if err := d.render(); err != nil {
			t.Fatal(err)
		}
		s := &search{driver: d}
		for _, want := range []string{"Owner 20", "Owner 5a"} {
			_, err := s.try(t.Context())
			if got := s.bisect(t.Context(), err); len(got) != 1 || got[0] != want {
				t.Fatalf("found %v, want %s", got, want)
			}
		}
		c, err := s.try(t.Context())
		if err != nil || len(c.set.Sections) != len(d.left.raw.Sections)-2 {
			t.Errorf("%v: the rest is not taken", err)
		}
		if s.checks > maxChecks || strings.Count(d.left.refused["Owner 20"].words, "odd") != 1 {
			t.Errorf("%d checks; words %q", s.checks, d.left.refused["Owner 20"].words)
		}
		// Nobody's fault, and too many.
		if err := d.store.Remove(c.number); err != nil {
			t.Fatal(err)
		}
		d.left.raw.Sections = append(d.left.raw.Sections, files.Section{Name: "defaults x", Text: "defaults x\n    frobnicate\n"})
		if got := (&search{driver: d}).bisect(t.Context(), err); got != nil {
			t.Errorf("found %v, where it is nobody's fault", got)
		}
		if got := (&search{driver: d, checks: maxChecks - 2}).bisect(t.Context(), err); got != nil {
			t.Errorf("found %v after too many checks", got)
		}
	})
}

func TestAnInnocentIsNotLeftOutWithTheCulprit(t *testing.T) {
	t.Parallel()
	l, address := serving(t)
	l.driverFinds(t, func(d *driver) {
		d.left.refuse("Gateway a", "said by mistake", false)
		s := &search{driver: d, named: []string{"Gateway a", "nobody"}}
		c, err := s.try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c = s.minimize(t.Context(), c)
		if d.left.isRefused("Gateway a") || len(c.set.Sections) != len(d.left.raw.Sections) {
			t.Error("an innocent stays left out")
		}
	})
	if answer := l.get(address, "h"); answer != "a" {
		t.Errorf("h answers %q", answer)
	}
}

// driverFinds stops the engine and looks into it.
func (l *lab) driverFinds(t *testing.T, look func(*driver)) {
	t.Helper()
	l.engine.end()
	l.engine.driver.behind.wait(l.engine.driver)
	look(l.engine.driver)
	l.engine.driver.release()
	l.engine = nil
}

func weakKey(t *testing.T) *rsa.PrivateKey {
	t.Setenv("GODEBUG", "rsa1024min=0")
	return must(rsa.GenerateKey(rand.Reader, 1024))
}

func pemOf(t *testing.T, key any) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example"}}
	var public any
	switch key := key.(type) {
	case *rsa.PrivateKey:
		public = &key.PublicKey
	case *ecdsa.PrivateKey:
		public = &key.PublicKey
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, public, key))
	private := must(x509.MarshalPKCS8PrivateKey(key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
