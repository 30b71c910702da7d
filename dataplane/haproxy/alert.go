package haproxy

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
)

// Alert is one complaint of HAProxy about its configuration.
type Alert struct {
	// File and Line are where it is, if HAProxy says so; the file as a generation names it.
	File string
	Line int
	// Message is what HAProxy says, without the place.
	Message string
}

var (
	alertLine = regexp.MustCompile(`^\[([A-Z]+)\]\s*\(\d+\) : (.*)$`)
	placeName = regexp.MustCompile(`\[(?:[^\[\]\s]*/)?([^\[\]\s/]+):(\d+)\]`)
	preamble  = regexp.MustCompile(`^(?:config : )?(?:[Pp]arsing )?(?:\[[^\]]*:\d+\] ?:? ?)*`)
)

// summaries follow the alerts that say something.
var summaries = []string{
	"Error(s) found in configuration file", "Fatal errors found in configuration", "Some protocols failed to start their listeners",
	"Loading failure", "Failed to get the sockets from the old process",
}

// parseAlerts finds the alerts in what HAProxy printed. The lines of a long one begin with blanks.
func parseAlerts(output string) []Alert {
	var alerts []Alert
	var text string
	end := func() {
		if text != "" {
			alerts = appendAlert(alerts, text)
		}
		text = ""
	}
	for line := range strings.SplitSeq(output, "\n") {
		match := alertLine.FindStringSubmatch(line)
		switch {
		case match == nil && text != "" && strings.HasPrefix(line, " "):
			text += " " + strings.TrimSpace(line)
		case match == nil:
			end()
		default:
			end()
			if match[1] == "ALERT" {
				text = match[2]
			}
		}
	}
	end()
	return alerts
}

func appendAlert(alerts []Alert, text string) []Alert {
	for _, summary := range summaries {
		if strings.Contains(text, summary) {
			return alerts
		}
	}
	alert := Alert{Message: redact(strings.Join(strings.Fields(preamble.ReplaceAllString(text, "")), " "))}
	if match := placeName.FindStringSubmatch(text); match != nil {
		alert.File = match[1]
		alert.Line, _ = strconv.Atoi(match[2])
	}
	if alert.File == files.KeysFile {
		alert.Message = "(withheld: HAProxy's words are about " + files.KeysFile + ", which holds keys)"
	}
	return append(alerts, alert)
}

// RefusedError says that HAProxy did not take a configuration.
type RefusedError struct {
	Alerts []Alert
	// Output is the end of what it printed, when it gave no alert.
	Output string
}

// Error implements error.
func (e *RefusedError) Error() string {
	if len(e.Alerts) == 0 {
		return "HAProxy refused the configuration: " + e.Output
	}
	words := make([]string, len(e.Alerts))
	for i, alert := range e.Alerts {
		words[i] = alert.Message
	}
	return "HAProxy refused the configuration: " + strings.Join(words, "; ")
}

func refused(output string) *RefusedError {
	const enough = 500
	e := &RefusedError{Alerts: parseAlerts(output), Output: redact(strings.TrimSpace(output))}
	if len(e.Output) > enough {
		e.Output = e.Output[len(e.Output)-enough:]
	}
	return e
}
