package cluster

import "syscall"

func changeTime(system *syscall.Stat_t) syscall.Timespec { return system.Ctim }
