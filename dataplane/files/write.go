package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// writeFile puts a file in place as a whole or not at all: whoever reads it, and whatever remains after a crash or on a
// full disk, is the old content or the new.
func writeFile(path, text string) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return explain(err)
	}
	if err := fill(temporary, text); err != nil {
		_ = os.Remove(temporary.Name())
		return explain(fmt.Errorf("writing %s: %w", path, err))
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		_ = os.Remove(temporary.Name())
		return explain(err)
	}
	return nil
}

// fill writes, syncs and closes.
func fill(file *os.File, text string) error {
	_, err := file.WriteString(text)
	if err == nil {
		err = file.Chmod(fileMode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// link makes newname another name of oldname, a file that is never written to again; where the file system can't, it
// says so by false.
func link(oldname, newname string) bool { return os.Link(oldname, newname) == nil }

func makeFolder(path string) error { return explain(os.MkdirAll(path, folderMode)) }

// syncFolder makes what was renamed in a folder last. Not every file system can; then the rename is as good as it gets.
func syncFolder(path string) {
	if folder, err := os.Open(path); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}

// explain adds what to do about an error of the file system.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room on that file system; until then HAProxy keeps what it has", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: let Limpet's user write there; until then HAProxy keeps what it has", err)
	}
	return err
}
