package behaviour

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
)

// block is 127.x.y.0/24, for one World alone: .1 is what Gateways bind, .2 and up are clients, .10 and up are pods.
type block struct{ x, y byte }

// portOffset is what Gateways' ports are moved by: port 80 is bound as 8080.
const portOffset = 8000

func newBlock(t testing.TB) block {
	t.Helper()
	for range 100 {
		b := block{byte(1 + rand.IntN(254)), byte(rand.IntN(256))}
		// Whoever listens here has the block.
		held, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("%s:20009", b.address(254)))
		if err == nil {
			t.Cleanup(func() { _ = held.Close() })
			return b
		}
	}
	t.Fatal("no loopback addresses are free")
	return block{}
}

func (b block) address(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, b.x, b.y, n}) }
