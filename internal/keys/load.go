package keys

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The files in a folder of keys.
const (
	NamesFile = "names.key"
	SignFile  = "sign.keys"
)

// secretSize is the size of a new key, and the least that is accepted.
const (
	secretSize    = 32
	maxSecretSize = 64
	maxFileSize   = 64 << 10
)

// Load reads the keys of a folder. What is missing is made; two that start at the same time agree.
func Load(dir string) (Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Keys{}, fmt.Errorf("folder of the keys: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return Keys{}, err
	}
	names, err := load(filepath.Join(dir, NamesFile), namesText, parseNames)
	if err != nil {
		return Keys{}, err
	}
	sign, err := load(filepath.Join(dir, SignFile), signText, parseSign)
	if err != nil {
		return Keys{}, err
	}
	return Keys{Names: names, Sign: sign}, nil
}

// load reads one file, after making it with a fresh secret if it is not there.
func load[T any](path, text string, parse func(string) (T, error)) (T, error) {
	var none T
	content, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path, text+fresh()+"\n"); err != nil {
			return none, fmt.Errorf("make the key %s: %w", path, err)
		}
		content, err = read(path)
	}
	if err != nil {
		return none, err
	}
	value, err := parse(content)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return value, nil
}

// read returns the content of a regular file that nobody but its owner can read.
func read(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("%s can be read or written by others (mode %04o): if nobody has seen it, run chmod 600 %s, else replace it",
			path, mode, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxFileSize {
		return "", fmt.Errorf("%s is larger than %d KiB: this is no file of keys", path, maxFileSize>>10)
	}
	return string(content), nil
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others can put keys into %s (mode %04o): run chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// create makes a file in one step with all its content, unless it is there already: then that one stays.
func create(path, content string) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.WriteString(content)
	err = errors.Join(err, temporary.Chmod(0o600), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func fresh() string {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // It never fails: it ends the process instead.
	return base64.StdEncoding.EncodeToString(secret)
}

// Generate returns the content of new files of keys, by name: what Load would make.
func Generate() map[string][]byte {
	return map[string][]byte{NamesFile: []byte(namesText + fresh() + "\n"), SignFile: []byte(signText + fresh() + "\n")}
}

// Parse reads the content of files of keys, by name.
func Parse(files map[string][]byte) (Keys, error) {
	names, err := parseNames(string(files[NamesFile]))
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", NamesFile, err)
	}
	sign, err := parseSign(string(files[SignFile]))
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", SignFile, err)
	}
	return Keys{Names: names, Sign: sign}, nil
}
