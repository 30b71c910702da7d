// Package keys holds the two kinds of secrets that sessions rest on, and keeps them in files.
//
// A folder goes in, Keys come out: read from the folder's names.key and sign.keys, which are made on the first start. It
// must never overwrite a key, accept a file that others can read, or let a secret out in a message, a log or JSON.
package keys

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Keys are all secrets of an installation. However it is printed, no secret shows.
type Keys struct {
	// Names makes endpoints' names of pods' identities. It is never rotated: every session would move.
	Names []byte
	// Sign signs tokens: the first key signs, every one is accepted.
	Sign []SignKey
}

// SignKey is one key that signs tokens.
type SignKey struct {
	// ID is one character, a to z or 0 to 9, and part of every token that the key signed.
	ID     string
	Secret []byte
}

// String names the keys by their ids.
func (k Keys) String() string { return fmt.Sprintf("keys (%d to sign with: %s)", len(k.Sign), k.ids()) }

// GoString is String, for %#v.
func (k Keys) GoString() string { return k.String() }

// Format is String for every verb.
func (k Keys) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// LogValue is String, for log/slog.
func (k Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalJSON holds String alone.
func (k Keys) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// String is the key's id.
func (k SignKey) String() string { return "key " + k.ID }

// GoString is String, for %#v.
func (k SignKey) GoString() string { return k.String() }

// Format is String for every verb.
func (k SignKey) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// LogValue is String, for log/slog.
func (k SignKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalJSON holds String alone.
func (k SignKey) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

func (k Keys) ids() string {
	ids := ""
	for _, key := range k.Sign {
		ids += key.ID
	}
	return ids
}
