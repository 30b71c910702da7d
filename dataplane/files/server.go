package files

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxWeight is HAProxy's.
const maxWeight = 256

// Line is the server as its slot's section holds it.
func (s Server) Line() string { return "    server " + s.Name + " " + s.Arguments() + "\n" }

// Arguments are what follows the name, in the file and in "add server" alike: a server that was added at run time must
// not differ from the one that a reload makes of its line.
func (s Server) Arguments() string {
	words := s.Address + " id " + strconv.Itoa(int(s.ID)) + " weight " + strconv.Itoa(s.Weight)
	if s.Options != "" {
		words += " " + s.Options
	}
	return words
}

// Check says what is wrong with the server; one with an error is never written.
func (s Server) Check() error {
	switch {
	case !isName(s.Slot):
		return fmt.Errorf("server %q: %q is no name of a slot: use letters, digits and . _ -", s.Name, s.Slot)
	case !isName(s.Name):
		return fmt.Errorf("server %q: this is no name for a server: use letters, digits and . _ -", s.Name)
	case s.ID < 1:
		return fmt.Errorf("server %s: the id %d is not from 1 to 2147483647", s.Name, s.ID)
	case s.Weight < 0 || s.Weight > maxWeight:
		return fmt.Errorf("server %s: the weight %d is not from 0 to %d", s.Name, s.Weight, maxWeight)
	case !arePlainWords(s.Options):
		return fmt.Errorf("server %s: the options %q need quoting, which files and commands do differently", s.Name, s.Options)
	}
	if !s.Fixed() && !s.Resolved() && !s.local() {
		return fmt.Errorf("server %s: %q is not an IP address or a hostname and a port", s.Name, s.Address)
	}
	return nil
}

// CanBecome tells whether commands can make of a server what another one is.
func (s Server) CanBecome(other Server) bool {
	return s.ID == other.ID && s.Options == other.Options && (s.Address == other.Address || s.Fixed() && other.Fixed())
}

// Fixed tells a server whose address is an IP address and a port.
func (s Server) Fixed() bool {
	address, err := netip.ParseAddrPort(s.Address)
	return err == nil && address.Addr().Zone() == "" && address.Port() != 0
}

// Resolved tells a server whose address is a hostname and a port: HAProxy asks DNS for it, and only makes it when it starts.
func (s Server) Resolved() bool {
	host, port, found := strings.Cut(s.Address, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	return found && err == nil && number != 0 && isHostname(host)
}

// local tells a server at a socket of this machine.
func (s Server) local() bool {
	path, is := strings.CutPrefix(s.Address, "unix@")
	return is && strings.HasPrefix(path, "/") && !strings.Contains(path, " ") && arePlainWords(path)
}

// isHostname tells a name as RFC 1123 has it. One whose last label is a number would be taken for an IP address.
func isHostname(name string) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isAlphanumeric(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	_, err := strconv.Atoi(labels[len(labels)-1])
	return err != nil && len(name) <= 253
}

func isName(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !strings.ContainsRune("._-", rune(s[i])) {
			return false
		}
	}
	return s != ""
}

// arePlainWords tells words that mean the same in haproxy.cfg and on the socket, without any quoting.
func arePlainWords(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !strings.ContainsRune(" ._-,:/@()[]=+%", rune(s[i])) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
