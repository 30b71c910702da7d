package status

import (
	"context"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logChanges logs every condition whose status or reason is not what it was: one line each, as a warning if it is not
// as the object's owner would like it.
func logChanges(log *slog.Logger, was, is *Update) {
	before := map[string][]metav1.Condition{}
	if was != nil {
		for _, section := range was.Sections() {
			before[section.Name] = section.Conditions
		}
	}
	for _, section := range is.Sections() {
		for _, c := range section.Conditions {
			logChange(log, is.Object, section.Name, before[section.Name], c)
		}
		for _, c := range before[section.Name] {
			if _, still := find(section.Conditions, c.Type); !still {
				c.Status = "-"
				logChange(log, is.Object, section.Name, before[section.Name], c)
			}
		}
	}
}

func logChange(log *slog.Logger, object Object, section string, before []metav1.Condition, c metav1.Condition) {
	was, there := find(before, c.Type)
	if there && was.Status == c.Status && was.Reason == c.Reason {
		return
	}
	from := "-"
	if there {
		from = string(was.Status)
	}
	attributes := []any{"object", object.String()}
	if section != "" {
		attributes = append(attributes, "of", section)
	}
	attributes = append(attributes, "condition", c.Type, "change", from+" → "+string(c.Status), "reason", c.Reason, "message", c.Message)
	level := slog.LevelInfo
	if c.Status != "-" && !Good(c) {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "status", attributes...)
}
