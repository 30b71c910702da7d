package haproxy

import (
	"crypto/sha1" //nolint:gosec // HAProxy shows this fingerprint; nothing is trusted because of it
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// Pieces cuts the text of a certificate or a CA bundle into what one command takes each. A certificate cannot be cut.
func Pieces(name, text string) ([]string, error) {
	lines := withoutBlankLines(text)
	room := maxBatch - len("set ssl ca-file "+name+" <<\n")
	if len(lines) <= room {
		return []string{lines}, nil
	}
	if files.FolderOf(name) != files.CAFolder {
		return nil, fmt.Errorf("%s has %d bytes: %w", name, len(lines), ErrTooLong)
	}
	var pieces []string
	piece := ""
	for _, block := range blocks(lines) {
		one := string(pem.EncodeToMemory(block))
		if len(one) > room {
			return nil, fmt.Errorf("a certificate in %s has %d bytes: %w", name, len(one), ErrTooLong)
		}
		if len(piece)+len(one) > room {
			pieces, piece = append(pieces, piece), ""
		}
		piece += one
	}
	if piece == "" {
		return nil, fmt.Errorf("%s has %d bytes and no certificate: %w", name, len(lines), ErrTooLong)
	}
	return append(pieces, piece), nil
}

// withoutBlankLines is a text as a payload, which a blank line ends.
func withoutBlankLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	if b.Len() == 0 {
		return "-\n" // HAProxy says what is wrong with it
	}
	return b.String()
}

// blocks are the certificates of a text.
func blocks(text string) []*pem.Block {
	var all []*pem.Block
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		if strings.HasSuffix(block.Type, "CERTIFICATE") {
			all = append(all, block)
		}
	}
}

// Fingerprint tells contents of a certificate or a CA bundle apart as far as HAProxy shows it: of a certificate itself and
// the length of its chain (its key belongs to it), of a bundle all certificates, in no order. "" if there is none.
func Fingerprint(name, text string) string {
	var prints []string
	for _, block := range blocks(text) {
		prints = append(prints, fmt.Sprintf("%X", sha1.Sum(block.Bytes))) //nolint:gosec // as above
	}
	if files.FolderOf(name) != files.CAFolder {
		return certificatePrint(prints)
	}
	return bundlePrint(prints)
}

func certificatePrint(prints []string) string {
	if len(prints) == 0 {
		return ""
	}
	return fmt.Sprintf("%s+%d", prints[0], len(prints)-1)
}

func bundlePrint(prints []string) string {
	slices.Sort(prints)
	return strings.Join(slices.Compact(prints), " ")
}

// Extends tells whether a CA bundle holds all certificates of another one.
func Extends(bundle, other string) bool {
	has := strings.Fields(Fingerprint(files.CAFolder, bundle))
	for _, one := range strings.Fields(Fingerprint(files.CAFolder, other)) {
		if !slices.Contains(has, one) {
			return false
		}
	}
	return true
}
