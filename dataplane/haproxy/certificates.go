package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// HAProxy keeps the files of TLS in two stores, of certificates and of CA bundles, and changes one by a transaction. There
// is one transaction per store: what another one left behind is aborted.

// storeOf is what commands call the store of a file.
func storeOf(name string) string {
	if files.FolderOf(name) == files.CAFolder {
		return "ssl ca-file"
	}
	return "ssl cert"
}

// PutFile gives a certificate or a CA bundle new content, by the name that the configuration has for it; HAProxy makes it
// if it has none of that name. New handshakes see it when PutFile returns. A *RejectedError has HAProxy's words, and then
// it has what it had before. ErrTooLong means that only a reload can do it.
func (c *Client) PutFile(ctx context.Context, name, text string) error {
	pieces, err := Pieces(name, text)
	if err != nil {
		return err
	}
	created, err := c.create(ctx, name)
	if err != nil {
		return err
	}
	err = c.replace(ctx, name, pieces)
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		return errors.Join(err, c.undo(ctx, name, created))
	}
	return err
}

// create makes an empty file of a name, and says whether there was none.
func (c *Client) create(ctx context.Context, name string) (bool, error) {
	command := storeCommand("new", name, "New ")
	replies, err := c.line(ctx, command.text)
	if err != nil {
		return false, err
	}
	if _, words := parseReply(replies[0]); strings.HasSuffix(words, "already exists!") {
		return false, nil
	}
	if refused := command.check(replies[0]); refused != nil {
		return false, refused
	}
	return true, nil
}

// replace is the transaction.
func (c *Client) replace(ctx context.Context, name string, pieces []string) error {
	for i, piece := range pieces {
		verb := "set "
		if i > 0 {
			verb = "add "
		}
		words, err := c.payload(ctx, verb+storeOf(name)+" "+name, piece)
		if other := ongoing(words); other != "" && err == nil {
			if err = c.abort(ctx, other); err == nil {
				words, err = c.payload(ctx, verb+storeOf(name)+" "+name, piece)
			}
		}
		if err != nil {
			return err
		}
		if !strings.HasPrefix(strings.ToLower(words), "transaction ") {
			return &RejectedError{Command: verb + storeOf(name) + " " + name, Reply: complaint(words)}
		}
	}
	return c.succeed(ctx, "commit "+storeOf(name)+" "+name)
}

// ongoing names the file of another transaction that is in the way.
func ongoing(words string) string {
	rest, is := strings.CutPrefix(words, "The ongoing transaction is about '")
	name, _, _ := strings.Cut(rest, "'")
	if !is || !isFileName(name) {
		return ""
	}
	return name
}

// succeed runs a command that tells what it does and ends with "Success!".
func (c *Client) succeed(ctx context.Context, command string) error {
	replies, err := c.line(ctx, command)
	if err != nil {
		return err
	}
	if _, words := parseReply(replies[0]); !strings.HasSuffix(words, "Success!") {
		return &RejectedError{Command: command, Reply: complaint(words)}
	}
	return nil
}

// complaint is what HAProxy complains about, without the lines that only say that there is something.
func complaint(words string) string {
	var said []string
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		noise := line == "" || line == "Failed!" || line == "Can't load the payload"
		for _, start := range []string{"Committing ", "Inserting certificate ", "Can't update ", "Can't commit "} {
			noise = noise || strings.HasPrefix(line, start)
		}
		if !noise {
			said = append(said, line)
		}
	}
	return redact(strings.Join(said, "; "))
}

// undo aborts a transaction that was refused; a file that was made for it goes.
func (c *Client) undo(ctx context.Context, name string, created bool) error {
	err := c.abort(ctx, name)
	if err == nil && created {
		_, err = c.Try(ctx, DelFile(name))
	}
	return err
}

// abort ends a transaction; there may be none.
func (c *Client) abort(ctx context.Context, name string) error {
	_, err := c.line(ctx, "abort "+storeOf(name)+" "+name)
	return err
}

// DelFile removes a certificate or a CA bundle; it is refused while a bind or a server uses it.
func DelFile(name string) Command { return storeCommand("del", name, "Certificate '", "CA file '") }

func storeCommand(verb, name string, says ...string) Command {
	c := Command{text: verb + " " + storeOf(name) + " " + name, says: says}
	c.shown = c.text
	if !isFileName(name) {
		c.err = fmt.Errorf("%q is no name of a file that commands can give", name)
	}
	return c
}

// ListCertificate adds a line to a crt-list, at its end. A *RejectedError has HAProxy's words.
func (c *Client) ListCertificate(ctx context.Context, list, line string) error {
	name := files.ListedCertificate(line)
	if !isFileName(list) || !isFileName(name) {
		return fmt.Errorf("%q and %q are no names that commands can give", list, name)
	}
	command := "add ssl crt-list " + list
	if name == line {
		return c.succeed(ctx, command+" "+name)
	}
	words, err := c.payload(ctx, command, line+"\n")
	if err == nil && !strings.HasSuffix(words, "Success!") {
		err = &RejectedError{Command: command + " " + name, Reply: complaint(words)}
	}
	return err
}

// UnlistCertificate removes a certificate's line from a crt-list. HAProxy keeps the first one of a list.
func UnlistCertificate(list, name string) Command {
	c := storeCommand("del", name, "Entry '")
	c.text = "del ssl crt-list " + list + " " + name
	c.shown = c.text
	return c
}

// isFileName tells a name that needs no quoting on the socket.
func isFileName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@") == ""
}

// payload sends a command with lines that follow it, and returns what HAProxy says. It says something in any case.
func (c *Client) payload(ctx context.Context, command, lines string) (string, error) {
	answer, err := c.send(ctx, command+" <<\n"+lines)
	if err != nil {
		return "", err
	}
	if _, words := parseReply(strings.TrimSpace(answer)); words != "" {
		return words, nil
	}
	return "", fmt.Errorf("%w: it did not say what became of %q", ErrUnavailable, command)
}
