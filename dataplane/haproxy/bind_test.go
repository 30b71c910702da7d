package haproxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

func TestAnAddressIsTriedAsHAProxyBindsIt(t *testing.T) {
	t.Parallel()
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1) }), err)
	}}
	for name, test := range map[string]struct {
		config        net.ListenConfig
		alone, beside error
	}{
		"of another program": {net.ListenConfig{}, syscall.EADDRINUSE, syscall.EADDRINUSE},
		"of another HAProxy": {shared, syscall.EADDRINUSE, nil},
	} {
		listener, err := test.config.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := netip.MustParseAddrPort(listener.Addr().String())
		everywhere := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		for _, at := range []netip.AddrPort{at, everywhere, netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())} {
			if err := TryBind(at, false); !errors.Is(err, test.alone) && !errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Errorf("%s: %s: %v, want %v", name, at, err, test.alone)
			}
			if err := TryBind(at, true); !errors.Is(err, test.beside) && !errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Errorf("%s: %s beside: %v, want %v", name, at, err, test.beside)
			}
		}
		_ = listener.Close()
		if err := TryBind(at, false); err != nil {
			t.Errorf("%s: free again: %v", name, err)
		}
	}
	if err := TryBind(netip.MustParseAddrPort("192.0.2.1:80"), false); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("%v, want that there is no such address", err)
	}
}
