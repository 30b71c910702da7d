package haproxy

import (
	"net/netip"
	"syscall"
)

// TryBind tells why HAProxy could not bind an address; nil if it could. It binds and does not listen, so that no
// connection ever comes to it. A shared address is one that HAProxys of ours may hold: HAProxy binds it beside them.
func TryBind(at netip.AddrPort, shared bool) error {
	family, address := syscall.AF_INET, syscall.Sockaddr(&syscall.SockaddrInet4{Port: int(at.Port()), Addr: as4(at.Addr())})
	if at.Addr().Is6() {
		family, address = syscall.AF_INET6, &syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	options := []int{syscall.SO_REUSEADDR}
	if shared {
		options = append(options, reusePort)
	}
	for _, option := range options {
		if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, option, 1); err != nil {
			return err
		}
	}
	return syscall.Bind(socket, address)
}

func as4(address netip.Addr) [4]byte {
	if address.Is4() {
		return address.As4()
	}
	return [4]byte{}
}
