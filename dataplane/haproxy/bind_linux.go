package haproxy

// reusePort is SO_REUSEPORT, which package syscall does not have on every architecture.
const reusePort = 0xf
