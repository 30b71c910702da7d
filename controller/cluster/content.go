package cluster

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"
)

// What a file may hold: some 20,000 routes, and some 5,000 in one list.
const (
	maxFile  = 32 << 20
	maxPart  = 8 << 20
	maxParts = 100_000
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// fileContent is what stands in a file.
type fileContent struct {
	hash  [sha256.Size]byte
	parts []placedDocument
	// err is about the whole file, which then has no parts.
	err *Problem
	// broken says that something in the file could not be read.
	broken bool
}

// placedDocument is a document with the line that it begins in.
type placedDocument struct {
	*document
	line int
}

// problems are all that the file has, by the file's name.
func (c *fileContent) problems(file string) []Problem {
	if c.err != nil {
		return []Problem{c.err.placed(file, 1)}
	}
	var all []Problem
	for _, part := range c.parts {
		for _, p := range part.document.problems {
			all = append(all, p.placed(file, part.line))
		}
	}
	return all
}

// same says that both say the same.
func (c *fileContent) same(other *fileContent) bool {
	return c == other || c.err != nil && other.err != nil && *c.err == *other.err
}

// failed is the content of a file that cannot be read.
func failed(message string) *fileContent {
	return &fileContent{err: &Problem{Severity: Error, Message: message}, broken: true}
}

// readFile reads a file. Documents that were read before, in what was there before, are kept.
func readFile(path string, before *fileContent) *fileContent {
	// Without O_NONBLOCK, a pipe that took the place of the file would make us wait.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return failed(reason(err))
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return failed("is not a regular file")
	}
	return readAll(file, filepath.Ext(path) == ".json", before)
}

func readAll(from io.Reader, isJSON bool, before *fileContent) *fileContent {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return failed(reason(err))
	}
	if len(text) > maxFile {
		return failed(fmt.Sprintf("is larger than %d MiB: split it into several files", maxFile>>20))
	}
	return readText(text, isJSON, before)
}

func readText(text []byte, isJSON bool, before *fileContent) *fileContent {
	hash := sha256.Sum256(text)
	if before != nil && before.err == nil && before.hash == hash {
		return before
	}
	c := &fileContent{hash: hash}
	text = bytes.TrimPrefix(text, byteOrderMark)
	if at := notText(text); at >= 0 {
		c.fail(1+bytes.Count(text[:at], []byte("\n")), "is not UTF-8 text")
		return c
	}
	parts, isJSON, err := split(text, isJSON)
	if err != nil {
		c.fail(err.line, err.message)
		return c
	}
	if len(parts) > maxParts {
		c.fail(parts[maxParts].line, fmt.Sprintf("there are more than %d documents: split the file into several", maxParts))
		return c
	}
	known := before.documents()
	for _, part := range parts {
		c.add(part, isJSON, known)
	}
	return c
}

func (c *fileContent) fail(line int, message string) {
	c.err, c.broken = &Problem{Severity: Error, Line: line, Message: message}, true
}

func (c *fileContent) add(part part, isJSON bool, known map[[sha256.Size]byte]*document) {
	hash := sha256.Sum256(part.text)
	d, again := known[hash]
	if !again {
		d = readDocument(part.text, isJSON)
		d.hash = hash
	}
	c.parts = append(c.parts, placedDocument{d, part.line})
	c.broken = c.broken || slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Severity == Error })
}

// split cuts a text into parts. What is named otherwise, but looks like JSON and is, is read as JSON.
func split(text []byte, isJSON bool) ([]part, bool, *syntaxError) {
	if isJSON || looksLikeJSON(text) {
		parts, err := splitJSON(text)
		if err == nil || isJSON {
			return parts, true, err
		}
	}
	return splitYAML(text), false, nil
}

// notText returns where text stops being UTF-8, -1 if it does not.
func notText(text []byte) int {
	if zero := bytes.IndexByte(text, 0); zero >= 0 {
		return zero
	}
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// documents are those that a file held, by their hash.
func (c *fileContent) documents() map[[sha256.Size]byte]*document {
	if c == nil {
		return nil
	}
	all := make(map[[sha256.Size]byte]*document, len(c.parts))
	for _, part := range c.parts {
		all[part.hash] = part.document
	}
	return all
}

// holds says whether the file has every object of another.
func (c *fileContent) holds(other *fileContent) bool {
	have := map[objectID]bool{}
	for _, part := range c.parts {
		for _, o := range part.objects {
			have[o.id] = true
		}
	}
	for _, part := range other.parts {
		for _, o := range part.objects {
			if !have[o.id] {
				return false
			}
		}
	}
	return true
}
