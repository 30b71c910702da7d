package controller

import (
	"math"
	"syscall"
)

// What HAProxy takes of its container's memory. A client's connection with TLS and its way to an endpoint were measured to take 19 KiB
// when idle, and 31 KiB with bodies stuck on both sides; the rest of perConnection is for what the kernel holds of sockets, which counts
// to the container too. forItself is for configuration, tables and a second worker during a reload.
const (
	perConnection  = 96 << 10
	forItself      = 64 << 20
	perThread      = 8 << 20
	fewConnections = 100
	mostThreads    = 64
	// filesApart are file descriptors that are no connections; each of those takes two.
	filesApart = 200
)

// Sizing is how many threads and connections of clients HAProxy has within the limits of its container: CPUs in thousandths, and
// bytes of memory. 0 stands for no limit, and comes out as 0: HAProxy decides.
func Sizing(milliCPU, memory int64) (threads, connections int) {
	if milliCPU > 0 {
		threads = int(min(mostThreads, (milliCPU+999)/1000))
	}
	if memory <= 0 {
		return threads, 0
	}
	left := memory - forItself - int64(max(1, threads))*perThread
	return threads, int(min(max(fewConnections, left/perConnection), mostConnections()))
}

// mostConnections is what the limit of open files allows: HAProxy does not start with more.
func mostConnections() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Max > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(fewConnections, (int64(limit.Max)-filesApart)/2)
}
