package controller

import "testing"

func TestHAProxyFollowsTheLimitsOfItsContainer(t *testing.T) {
	t.Parallel()
	most := int(mostConnections())
	for _, c := range []struct {
		milliCPU, memory     int64
		threads, connections int
	}{
		{0, 0, 0, 0},
		{500, 0, 1, 0},
		{2000, 0, 2, 0},
		{2001, 0, 3, 0},
		{200_000, 0, 64, 0},
		{2000, 1 << 30, 2, min(10_069, most)},
		{1000, 64 << 20, 1, fewConnections},
		{1000, 1 << 50, 1, most},
	} {
		threads, connections := Sizing(c.milliCPU, c.memory)
		if threads != c.threads || connections != c.connections {
			t.Errorf("%d m, %d bytes: %d threads, %d connections, want %d and %d",
				c.milliCPU, c.memory, threads, connections, c.threads, c.connections)
		}
	}
}
