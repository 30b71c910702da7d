package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Sentence is one sentence of the specification that says what must or should be.
type Sentence struct {
	// ID is made of all the other fields: it changes when the sentence changes or moves to another field.
	ID string
	// File is the file's path within the module.
	File string
	// Where is a type, "Type.Field" or a constant, or the heading that the sentence stands under.
	Where string
	// Text has its white space and line breaks made single blanks.
	Text string
}

func newSentence(file, where, text string) Sentence {
	sum := sha256.Sum256([]byte(file + "\n" + where + "\n" + text))
	return Sentence{ID: hex.EncodeToString(sum[:4]), File: file, Where: where, Text: text}
}

// duty finds the words of RFC 2119 that oblige or advise. "must" and "should" count in lower case too: the
// specification often means a duty by them, and whether it does here is for the entry to say.
var duty = regexp.MustCompile(`(?i:\b(must|should)\b)|\b(REQUIRED|RECOMMENDED|SHALL)\b`)

// A block is a paragraph, or one item of a list.
type block struct {
	text string
	item bool
}

// leaning sentences begin with a word that points back: they are not understood without the one before.
var leaning = regexp.MustCompile(
	`^(In (this|these|such|either|that)|If that|Instead|It|Its|Such|These|This (must|should|MUST|SHOULD|certificate|name|means))\b`)

// sentences gives the duties in the blocks. A list follows the sentence that leads to it, unless its items speak for
// themselves; a sentence that leans on the one before it follows that, unless it is a duty of its own.
func sentences(file, where string, blocks []block) []Sentence {
	var found []Sentence
	for i := range blocks {
		all := split(blocks[i].text)
		if last := len(all) - 1; last >= 0 && strings.HasSuffix(all[last], ":") && duty.MatchString(all[last]) {
			all[last] += list(blocks[i+1:])
		}
		for j, text := range all {
			if !duty.MatchString(text) {
				continue
			}
			if j > 0 && leaning.MatchString(text) && !duty.MatchString(all[j-1]) {
				text = all[j-1] + " " + text
			}
			found = append(found, newSentence(file, where, text))
		}
	}
	return found
}

// list is the items that come first, in one line, or "" if one of them holds a duty of its own.
func list(blocks []block) string {
	var items strings.Builder
	for _, b := range blocks {
		if !b.item {
			break
		}
		if duty.MatchString(b.text) {
			return ""
		}
		items.WriteString(" • " + blanks.ReplaceAllString(b.text, " "))
	}
	return items.String()
}

var (
	// end is what ends a sentence, with the blank and the beginning of the next.
	end = regexp.MustCompile("[.!?][)\"'`*_]*\\s+[A-Z`\"'(*_\\[0-9]")
	// abbreviation ends with a period that ends no sentence.
	abbreviation = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs|cf)\.$`)
	blanks       = regexp.MustCompile(`\s+`)
)

// split cuts a text into sentences.
func split(text string) []string {
	text = strings.TrimSpace(blanks.ReplaceAllString(text, " "))
	var all []string
	from := 0
	for at := 0; at < len(text); {
		loc := end.FindStringIndex(text[at:])
		if loc == nil {
			break
		}
		cut := at + loc[1] - 1 // The next sentence begins here.
		at = cut
		if abbreviation.MatchString(strings.TrimSpace(text[from:cut])) {
			continue
		}
		all = append(all, strings.TrimSpace(text[from:cut]))
		from = cut
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		all = append(all, rest)
	}
	return all
}
