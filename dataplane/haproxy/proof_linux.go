package haproxy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// proven tells whether a process is an HAProxy that was started for dir; known is false where that cannot be found out.
// The proof is what it was started with and where it is: a number alone may have gone to another process.
func proven(pid int, dir string) (ours, known bool) {
	if pid <= 0 {
		return false, true
	}
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	line, err := commandLine(folder)
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

// execPatience bounds how long a process has no command line while it executes its program anew, as a master does at every
// reload.
const execPatience = 200 * time.Millisecond

// commandLine reads what a process was started with. Kernel threads and zombies have none, and no program either.
func commandLine(folder string) ([]byte, error) {
	for end := time.Now().Add(execPatience); ; time.Sleep(time.Millisecond) {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(line) > 0 || !hasProgram(folder) || time.Now().After(end) {
			return line, err
		}
	}
}

func hasProgram(folder string) bool {
	_, err := os.Readlink(filepath.Join(folder, "exe"))
	return err == nil
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

// masterOf returns the live process that is proven to be the master of dir's HAProxy: the one whose number is in the pid
// file, or that is another one's parent; 0 if there is none. A worker whose master died is none.
func masterOf(dir string) int {
	if text, err := os.ReadFile(filepath.Join(dir, runFolder, pidFile)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			if ours, _ := proven(pid, dir); ours {
				return pid
			}
		}
	}
	ours := leftovers(dir)
	for _, pid := range ours {
		if fields := stat(pid); len(fields) > 1 {
			if parent, err := strconv.Atoi(fields[1]); err == nil && slices.Contains(ours, parent) {
				return parent
			}
		}
	}
	return 0
}

// isZombie tells a process that has ended, and whose parent does not care.
func isZombie(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] == "Z"
}

// stat are a process's state, parent and so on; nothing if there is no such process.
func stat(pid int) []string {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// The name before the state is in parentheses, and may hold some.
	return strings.Fields(string(status[bytes.LastIndexByte(status, ')')+1:]))
}
