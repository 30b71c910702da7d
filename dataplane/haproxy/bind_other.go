//go:build !linux

package haproxy

// reusePort is SO_REUSEPORT.
const reusePort = 0x200
