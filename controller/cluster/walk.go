package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// What a walk may find at most: more is a folder named by mistake.
const (
	maxEntries = 100_000
	maxFolders = 32 // deep
)

// signature tells a file's versions apart without reading it.
type signature struct {
	inode    uint64
	size     int64
	modified time.Time
	changed  syscall.Timespec
}

// found is one file that a walk found.
type found struct {
	path      string
	signature signature
	err       error
}

// walk is one look at all paths.
type walk struct {
	files []found
	// folders to watch: those that were listed, and those that links lead to.
	folders []string
	// unreadable are paths below which something may be that could not be seen, with the reasons.
	unreadable []Problem

	seen    map[string]bool
	entries int
	full    bool
}

// look finds the files that the given paths name, in order: each path's in the order of their names. It reads none.
func look(paths []string) *walk {
	w := &walk{seen: map[string]bool{}}
	for _, path := range paths {
		w.named(filepath.Clean(path))
	}
	slices.Sort(w.folders)
	w.folders = slices.Compact(w.folders)
	return w
}

func (w *walk) named(path string) {
	if link, err := os.Lstat(path); err != nil || !link.IsDir() {
		w.folders = append(w.folders, filepath.Dir(path))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		w.fail(path, err)
	case info.IsDir():
		before := len(w.files) + len(w.unreadable)
		w.folder(path, nil)
		if w.full {
			w.fail(path, fmt.Errorf("there are more than %d files below the folders that were named: name the ones with manifests", maxEntries))
		} else if len(w.files)+len(w.unreadable) == before {
			w.unreadable = append(w.unreadable, Problem{File: path, Message: "the folder holds no file *.yaml, *.yml or *.json"})
		}
	default:
		w.watchTarget(path)
		w.file(path, info, nil)
	}
}

func (w *walk) fail(path string, err error) {
	w.unreadable = append(w.unreadable, Problem{Severity: Error, File: path, Message: reason(err)})
}

// folder lists a folder with all below it. outer are the folders that it is in, to notice a link that leads back.
func (w *walk) folder(path string, outer []os.FileInfo) {
	info, err := os.Stat(path)
	if err != nil {
		w.fail(path, err)
		return
	}
	if slices.ContainsFunc(outer, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
		w.fail(path, errors.New("the link leads back to a folder that it is in"))
		return
	}
	if len(outer) == maxFolders {
		w.fail(path, fmt.Errorf("folders are nested more than %d deep", maxFolders))
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		w.fail(path, err)
		return
	}
	w.folders = append(w.folders, path)
	outer = append(slices.Clip(outer), info)
	for _, entry := range entries {
		if w.entries++; w.entries > maxEntries {
			w.full = true
		}
		if w.full {
			return
		}
		w.entry(path, entry, outer)
	}
}

func (w *walk) entry(folder string, entry os.DirEntry, outer []os.FileInfo) {
	if strings.HasPrefix(entry.Name(), ".") {
		return
	}
	path := filepath.Join(folder, entry.Name())
	if entry.Type().IsRegular() && !isManifest(entry.Name()) {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		w.folder(path, outer)
	case !isManifest(entry.Name()):
	case errors.Is(err, fs.ErrNotExist) && entry.Type()&fs.ModeSymlink == 0:
		// It went while we looked.
	default:
		if entry.Type()&fs.ModeSymlink != 0 {
			w.watchTarget(path)
		}
		w.file(path, info, err)
	}
}

// isManifest holds for names of files that a folder is read for. Editors' backups have other endings; a kustomization
// is no object, but says how to make some.
func isManifest(name string) bool {
	ending := filepath.Ext(name)
	return (ending == ".yaml" || ending == ".yml" || ending == ".json") && strings.TrimSuffix(name, ending) != "kustomization"
}

func (w *walk) watchTarget(path string) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		w.folders = append(w.folders, filepath.Dir(target))
	}
}

func (w *walk) file(path string, info os.FileInfo, err error) {
	if w.seen[absolute(path)] {
		return
	}
	w.seen[absolute(path)] = true
	file := found{path: path, err: err}
	if err == nil {
		file.signature = sign(info)
		if !info.Mode().IsRegular() {
			file.err = fmt.Errorf("is %s, not a regular file", mode(info.Mode()))
		}
	}
	w.files = append(w.files, file)
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

func sign(info os.FileInfo) signature {
	s := signature{size: info.Size(), modified: info.ModTime()}
	if system, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = system.Ino, changeTime(system)
	}
	return s
}

func mode(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something else"
	}
}

// hides says whether a file may be there although the walk did not find it.
func (w *walk) hides(path string) bool {
	return slices.ContainsFunc(w.unreadable, func(p Problem) bool {
		return p.Severity == Error && (path == p.File || strings.HasPrefix(path, p.File+string(filepath.Separator)))
	})
}

// reason is an error without the path, which stands before it.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		return "it must not be read by this user (permission denied)"
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
