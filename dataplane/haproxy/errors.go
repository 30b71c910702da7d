package haproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrUnavailable is HAProxy's silence: it does not run, hangs, or broke off. What was sent may have been done or not.
var ErrUnavailable = errors.New("HAProxy does not answer")

// IsUnreachable tells an ErrUnavailable that waiting does not mend: nobody listens at the socket, or there is none.
func IsUnreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// ErrTooLong is a command that is longer, quoted, than the socket takes.
var ErrTooLong = errors.New("the command is longer than the socket takes")

// RejectedError is HAProxy's refusal of a command.
type RejectedError struct {
	// Command is what was refused, without values.
	Command string
	// Reply is what HAProxy said.
	Reply string
}

// Error implements error.
func (e *RejectedError) Error() string {
	reply := e.Reply
	if reply == "" {
		reply = "nothing, where a word was due"
	}
	return fmt.Sprintf("HAProxy refused %q: %s", e.Command, reply)
}

// withoutCommand cuts the command off an error of client-native, which quotes all that was sent, key material included.
func withoutCommand(err error) error {
	text := err.Error()
	if i := strings.IndexByte(text, '['); i >= 0 {
		return errors.New(strings.TrimSpace(text[:i]))
	}
	return err
}

// redact withholds words that might quote key material.
func redact(words string) string {
	if strings.Contains(words, "-----BEGIN") || strings.Contains(words, "PRIVATE KEY") {
		return "(withheld: HAProxy's words quote a key)"
	}
	return words
}
