package haproxy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// proven tells whether a process is an HAProxy that was started for dir; known is false where that cannot be found out.
// The proof is what it was started with and where it is: a number alone may have gone to another process.
func proven(pid int, dir string) (ours, known bool) {
	if pid <= 0 {
		return false, true
	}
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return false, os.IsNotExist(err)
	}
	var arguments []string
	for word := range bytes.SplitSeq(line, []byte{0}) {
		arguments = append(arguments, string(word))
	}
	if !slices.Contains(arguments, "unix@"+masterSocket(dir)+",mode,600") || !slices.Contains(arguments, "-W") {
		return false, true
	}
	at, err := os.Readlink(filepath.Join(folder, "cwd"))
	if err != nil {
		return false, os.IsNotExist(err)
	}
	folder, err = filepath.EvalSymlinks(dir)
	return err == nil && (at == folder || strings.HasPrefix(at, folder+"/")), true
}

// leftovers are all processes that are proven to be HAProxys for dir.
func leftovers(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if ours, known := proven(pid, dir); known && ours {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isZombie tells a process that has ended, and whose parent does not care.
func isZombie(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	// The name before the state is in parentheses, and may hold some.
	_, state, found := strings.Cut(string(status[bytes.LastIndexByte(status, ')')+1:]), " ")
	return found && strings.HasPrefix(state, "Z")
}
