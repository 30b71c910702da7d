package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/limpet-gateway/limpet/controller"
	"github.com/limpet-gateway/limpet/controller/status"
)

// table is rows of cells, aligned when they are written.
type table struct{ rows [][]string }

// writeTable writes every condition in a line of its own, by object, and what is not ours at the end.
func writeTable(to io.Writer, p *controller.Preview) error {
	t := &table{}
	t.row("KIND", "NAMESPACE/NAME", "CONDITION", "STATUS", "REASON", "MESSAGE")
	refused := 0
	for _, update := range p.Updates {
		t.object(update)
		if update.Refused() {
			refused++
		}
	}
	for _, other := range p.Graph.Unclaimed {
		t.row(other.Kind, objectName(other.Namespace, other.Name), "-", "-", "-", other.Message)
	}
	_, err := fmt.Fprintf(to, "%s\n%s\n", t, summary(len(p.Updates), refused, len(p.Graph.Unclaimed)))
	return err
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// object names the object once, and each listener or parent with its conditions below.
func (t *table) object(update *status.Update) {
	kind, name := update.Kind, objectName(update.Namespace, update.Name)
	for _, section := range update.Sections() {
		if section.Name != "" {
			if kind != "" {
				t.row(kind, name)
			}
			kind, name = "", "  "+section.Name
		}
		for _, c := range section.Conditions {
			t.row(kind, name, c.Type, string(c.Status), c.Reason, c.Message)
			kind, name = "", ""
		}
	}
}

// String aligns all columns but the last.
func (t *table) String() string {
	var widths [5]int
	for _, row := range t.rows {
		for i := range min(len(row), len(widths)) {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			if i < len(widths) {
				cell += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
			}
			line += cell
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func summary(objects, refused, unclaimed int) string {
	text := fmt.Sprintf("%d objects, ", objects)
	if objects == 1 {
		text = "1 object, "
	}
	if refused == 0 {
		text += "none refused"
	} else {
		text += fmt.Sprintf("%d refused wholly or in part", refused)
	}
	if unclaimed > 0 {
		text += fmt.Sprintf("; %d more not ours", unclaimed)
	}
	return text + "."
}
