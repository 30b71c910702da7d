// Package translatetest says what a data plane must do with a request, from a model.Config alone.
//
// A Config and a Request come in, an Answer goes out: the meaning of the model in the fewest words, without HAProxy, to
// test against and to test HAProxy against. It must never know how a Config was made or how it is rendered.
package translatetest

import (
	"regexp"
	"strings"
	"sync"

	"github.com/limpet-gateway/limpet/controller/model"
)

// Request is what routing looks at.
type Request struct {
	// Port is a model.Port's ID.
	Port string
	// Host as in the Host header; a port and a dot at the end are ignored, as is the case.
	Host string
	// Path without the query.
	Path string
	// Method, "GET" if empty.
	Method string
	// Headers by name in lower case.
	Headers map[string]string
	Query   map[string]string
}

// Answer is what a request gets. Exactly one of NoHost, NoMatch, Redirect and Split is set.
type Answer struct {
	// VirtualHost is the one that answered, or the first that was asked.
	VirtualHost string
	// Owner is the route whose match took the request.
	Owner model.Owner
	// NoHost and NoMatch are 404: nobody answers for the host, or nothing there matches.
	NoHost, NoMatch bool
	Rule            *model.Rule
	Redirect        *model.Redirect
	// Split is what the request may get, by weight; a plain backend is a Split of one.
	Split []Outcome
}

// Outcome is one share of a Split that has a weight.
type Outcome struct {
	Weight uint32
	// Status is 500 without a backend, 503 without an endpoint, else 200.
	Status  int
	Backend string
	Session *model.Session
}

// Ask returns the answer to a request.
func Ask(config model.Config, request Request) Answer {
	host, found := hostOf(config, request)
	if !found {
		return Answer{NoHost: true}
	}
	for id := host; id != ""; id = parentOf(config, id) {
		if candidate := within(config, id, request); candidate != nil {
			answer := answerOf(config, candidate.Target)
			answer.VirtualHost, answer.Owner = id, candidate.Owner
			return answer
		}
	}
	return Answer{VirtualHost: host, NoMatch: true}
}

// hostOf looks for the exact hostname, then for ever shorter wildcards, then for the one for all.
func hostOf(config model.Config, request Request) (string, bool) {
	name, _, _ := strings.Cut(strings.ToLower(request.Host), ":")
	name = strings.TrimSuffix(name, ".")
	keys := []string{name}
	for rest := name; rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		if rest != "" {
			keys = append(keys, "*."+rest)
		}
	}
	for _, key := range append(keys, "*") {
		if host, found := config.Hosts.Get(model.HostKey(request.Port, key)); found {
			return host.VirtualHost, true
		}
	}
	return "", false
}

func parentOf(config model.Config, virtualHost string) string {
	if parent, found := config.Parents.Get(virtualHost); found {
		return parent.VirtualHost
	}
	return ""
}

// within asks the longest path key that the request's begins with, then ever shorter ones.
func within(config model.Config, virtualHost string, request Request) *model.Candidate {
	key := model.ExactKey(virtualHost, request.Path)
	for length := len(key); length > len(virtualHost); length-- {
		path, found := config.Paths.Get(key[:length])
		if !found {
			continue
		}
		for i := range path.Candidates {
			if holds(path.Candidates[i].Conditions, request) {
				return &path.Candidates[i]
			}
		}
	}
	return nil
}

func holds(conditions []model.Condition, request Request) bool {
	for _, condition := range conditions {
		value, found := valueOf(condition, request)
		if !found || !compare(condition, value) {
			return false
		}
	}
	return true
}

func valueOf(condition model.Condition, request Request) (value string, found bool) {
	switch condition.On {
	case model.OnMethod:
		if request.Method == "" {
			return "GET", true
		}
		return request.Method, true
	case model.OnHeader:
		value, found = request.Headers[condition.Name]
	case model.OnQuery:
		value, found = request.Query[condition.Name]
	case model.OnPath:
		return request.Path, true
	}
	return value, found
}

// compiled remembers expressions: tests ask the same ones over and over.
var compiled sync.Map

func compare(condition model.Condition, value string) bool {
	if !condition.Regex {
		return value == condition.Value
	}
	expression, found := compiled.Load(condition.Value)
	if !found {
		expression, _ = compiled.LoadOrStore(condition.Value, regexp.MustCompile("^(?:"+condition.Value+")$"))
	}
	return expression.(*regexp.Regexp).MatchString(value)
}

func answerOf(config model.Config, target model.Target) Answer {
	if target.Rule == "" {
		return Answer{Split: []Outcome{outcome(config, model.Share{Weight: 1, Backend: target.Backend})}}
	}
	rule, found := config.Rules.Get(target.Rule)
	if !found {
		panic("a target leads to the rule " + target.Rule + ", which is not there")
	}
	answer := Answer{Rule: rule, Redirect: rule.Filters.Redirect}
	for _, share := range rule.Split {
		if share.Weight > 0 {
			answer.Split = append(answer.Split, outcome(config, share))
		}
	}
	return answer
}

func outcome(config model.Config, share model.Share) Outcome {
	result := Outcome{Weight: share.Weight, Backend: share.Backend, Session: share.Session, Status: 500}
	if share.Backend == "" {
		return result
	}
	backend, found := config.Backends.Get(share.Backend)
	if !found {
		panic("a share leads to the backend " + share.Backend + ", which is not there")
	}
	result.Status = 200
	if len(backend.Endpoints) == 0 {
		result.Status = 503
	}
	return result
}
