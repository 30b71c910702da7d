package cluster

import "bytes"

// part is a piece of a file that is read on its own: one YAML document, or one JSON value.
type part struct {
	// line is that of its first byte in the file, from 1.
	line int
	text []byte
}

// splitYAML cuts at the lines that begin a new document. Such a line cannot be part of anything else: YAML forbids it
// in every kind of scalar. So a mistake in one document does not hide the others, and one that did not change is not
// parsed again.
func splitYAML(text []byte) []part {
	var parts []part
	line, start, startLine, filled := 1, 0, 1, false
	for at := 0; at < len(text); line++ {
		end := len(text)
		if newline := bytes.IndexByte(text[at:], '\n'); newline >= 0 {
			end = at + newline + 1
		}
		marker := beginsDocument(text[at:end])
		if marker && filled {
			parts = append(parts, part{startLine, text[start:at]})
			start, startLine = at, line
		}
		filled = marker || filled || !isPreamble(text[at:end])
		at = end
	}
	if filled {
		parts = append(parts, part{startLine, text[start:]})
	}
	return parts
}

func beginsDocument(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0)
}

// isPreamble holds for lines that belong to the document that follows: directives, comments, empty ones.
func isPreamble(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#' || line[0] == '%'
}
