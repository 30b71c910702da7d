package haproxy

import (
	"context"
	"fmt"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// LoadedFiles are the names of the certificates and CA bundles that the worker has. Transactions that somebody left behind
// are aborted.
func (c *Client) LoadedFiles(ctx context.Context) (map[string]bool, error) {
	replies, err := c.line(ctx, "show ssl cert", "show ssl ca-file")
	if err != nil {
		return nil, err
	}
	loaded := map[string]bool{}
	for line := range strings.SplitSeq(strings.Join(replies, "\n"), "\n") {
		name, _, _ := strings.Cut(line, " ")
		if begun, is := strings.CutPrefix(name, "*"); is && isFileName(begun) {
			if err := c.abort(ctx, begun); err != nil {
				return nil, err
			}
			continue
		}
		if folder := files.FolderOf(name); folder == files.CertificateFolder || folder == files.CAFolder {
			loaded[name] = true
		}
	}
	return loaded, nil
}

// Fingerprints tells what the worker has of some certificates and CA bundles, as Fingerprint does of texts. Those that it
// does not have are left out.
func (c *Client) Fingerprints(ctx context.Context, names []string) (map[string]string, error) {
	var commands []Command
	for _, name := range names {
		command := storeCommand("show", name)
		if command.err != nil {
			return nil, command.err
		}
		commands = append(commands, command)
	}
	prints := map[string]string{}
	for len(commands) > 0 {
		batch := fit(commands)
		texts := make([]string, len(batch))
		for i, command := range batch {
			texts[i] = command.text
		}
		answer, err := c.send(ctx, sentinel+";"+strings.Join(texts, ";")+";"+sentinel)
		if err != nil {
			return nil, err
		}
		if err := readPrints(answer, prints); err != nil {
			return nil, err
		}
		commands = commands[len(batch):]
	}
	return prints, nil
}

// readPrints reads what HAProxy shows of files. A bundle's certificates are behind lines of a blank, so that replies are told
// apart by their first lines instead of by empty ones.
func readPrints(answer string, into map[string]string) error {
	lines := strings.Split(answer, "\n")
	name, prints := "", []string(nil)
	end := func() {
		switch {
		case name == "" || len(prints) == 0:
		case files.FolderOf(name) == files.CAFolder:
			into[name] = bundlePrint(prints)
		default:
			into[name] = certificatePrint(prints)
		}
		prints = nil
	}
	versions := 0
	for _, line := range lines {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "Filename":
			end()
			name = value
		case "SHA1 FingerPrint", "Chain Subject":
			prints = append(prints, value)
		}
		if line == lines[0] {
			versions++
		}
	}
	end()
	if versions != 2 || lines[0] == "" {
		return fmt.Errorf("%w: it broke off while it showed its certificates", ErrUnavailable)
	}
	return nil
}

// ListedLines are the lines of crt-lists as the worker has them, as files.ListLines has them of texts. Those that it does not
// have are left out.
func (c *Client) ListedLines(ctx context.Context, lists []string) (map[string][]string, error) {
	all := map[string][]string{}
	for _, list := range lists {
		if !isFileName(list) {
			return nil, fmt.Errorf("%q is no name of a list that commands can give", list)
		}
		replies, err := c.line(ctx, "show ssl crt-list -n "+list)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(replies[0], "\n")
		if lines[0] != "# "+list {
			continue
		}
		all[list] = []string{}
		for _, line := range lines[1:] {
			all[list] = append(all[list], listedLine(line))
		}
	}
	return all, nil
}

// listedLine cuts the number off a line, which stands behind the certificate's name.
func listedLine(line string) string {
	words := strings.Fields(strings.ReplaceAll(line, "\x00", ""))
	if len(words) == 0 {
		return ""
	}
	if i := strings.LastIndexByte(words[0], ':'); i > 0 {
		words[0] = words[0][:i]
	}
	return strings.Join(words, " ")
}
