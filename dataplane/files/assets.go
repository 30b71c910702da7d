package files

import (
	"slices"
	"strings"
)

// Folders of the assets that can change while HAProxy runs. An asset of another folder is read only when HAProxy starts.
const (
	// CertificateFolder holds certificates with their keys, for binds and for servers.
	CertificateFolder = "certs/"
	// CAFolder holds bundles of certificate authorities.
	CAFolder = "cas/"
	// ListFolder holds crt-lists: the certificates of a bind.
	ListFolder = "lists/"
	// OriginFolder holds what the TLS originator reads; HAProxy never does.
	OriginFolder = "origins/"
)

// FolderOf is the folder of an asset that can change while HAProxy runs; "" for any other.
func FolderOf(name string) string {
	for _, folder := range []string{CertificateFolder, CAFolder, ListFolder, OriginFolder} {
		if strings.HasPrefix(name, folder) {
			return folder
		}
	}
	return ""
}

// originWord goes before what the TLS originator is told: "<settings>:<ip>:<port>".
const originWord = "set-proxy-v2-tlv-fmt(0xE1)"

// Files are the assets that a server's options name: they must be there before the server comes.
func (s Server) Files() []string {
	var names []string
	before := ""
	for _, word := range strings.Fields(s.Options) {
		if folder := FolderOf(word); folder == CertificateFolder || folder == CAFolder {
			names = append(names, word)
		}
		if id, _, found := strings.Cut(word, ":"); found && before == originWord {
			names = append(names, OriginFolder+id+".json")
		}
		before = word
	}
	return names
}

// Naming are the lines of the sections that name an asset.
func (s Set) Naming(asset string) []string {
	var lines []string
	for _, section := range s.Sections {
		if !strings.Contains(section.Text, asset) {
			continue
		}
		for line := range strings.Lines(section.Text) {
			if slices.Contains(unquoted(line), asset) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// unquoted are a line's words, without the quotes around a whole one.
func unquoted(line string) []string {
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.Trim(word, `'"`)
	}
	return words
}

// ListLines are the statements of a crt-list, their words separated by single blanks. The first word is the certificate.
func ListLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if isStatement(line) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}

// ListedCertificate is the certificate of a list's line.
func ListedCertificate(line string) string {
	name, _, _ := strings.Cut(line, " ")
	return name
}
