package keys

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const namesText = `# Limpet's key for the names of endpoints: 32 bytes, base64.
# Keep it: with another one every session moves once. It is never rotated. Copies of Limpet that
# serve the same clients need the same one.
`

// signText ends in the id of the first key.
const signText = `# Limpet's keys for session tokens, one a line: an id (one character, a-z or 0-9), a blank, and
# 32 to 64 bytes as base64. The first signs, all are accepted. Copies of Limpet that serve the same
# clients need the same ones.
#
# To rotate: add a line with a new id below (openssl rand -base64 32) and restart every copy; then
# move that line to the top and restart; remove the old line when the longest absoluteTimeout is over.
a `

var idForm = regexp.MustCompile(`^[a-z0-9]$`)

func parseNames(content string) ([]byte, error) {
	lines := meaning(content)
	if len(lines) != 1 {
		return nil, fmt.Errorf("holds %d lines besides comments: there must be one, the key", len(lines))
	}
	secret, err := decode(lines[0].text)
	if err == nil && len(secret) != secretSize {
		err = fmt.Errorf("the key has %d bytes: there must be %d", len(secret), secretSize)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", lines[0].number, err)
	}
	return secret, nil
}

func parseSign(content string) ([]SignKey, error) {
	var all []SignKey
	seen := map[string]int{}
	for _, line := range meaning(content) {
		key, err := parseSignKey(line.text)
		if err == nil && seen[key.ID] > 0 {
			err = fmt.Errorf("the id %s is that of line %d already: each key needs its own", key.ID, seen[key.ID])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line.number, err)
		}
		seen[key.ID] = line.number
		all = append(all, key)
	}
	if len(all) == 0 {
		return nil, errors.New("holds no key")
	}
	return all, nil
}

func parseSignKey(line string) (SignKey, error) {
	words := strings.Fields(line)
	if len(words) != 2 || !idForm.MatchString(words[0]) {
		return SignKey{}, errors.New("is not of the form: one character a-z or 0-9, a blank, the key in base64")
	}
	secret, err := decode(words[1])
	if err != nil {
		return SignKey{}, err
	}
	if len(secret) < secretSize || len(secret) > maxSecretSize {
		return SignKey{}, fmt.Errorf("the key has %d bytes: there must be %d to %d", len(secret), secretSize, maxSecretSize)
	}
	return SignKey{ID: words[0], Secret: secret}, nil
}

// decode must not say what it saw.
func decode(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the key is not base64")
	}
	return secret, nil
}

type line struct {
	number int
	text   string
}

// meaning returns the lines that are neither empty nor a comment.
func meaning(content string) []line {
	var lines []line
	for i, text := range strings.Split(content, "\n") {
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "#") {
			lines = append(lines, line{i + 1, text})
		}
	}
	return lines
}
