package dataplane

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy"
	"github.com/limpet-gateway/limpet/internal/table"
)

// maxChecks bounds how many configurations HAProxy is asked about to find out whose fault it is.
const maxChecks = 20

// candidate is a generation that HAProxy checked well.
type candidate struct {
	number int
	set    files.Set
}

// search writes what is wanted as a generation, and leaves out whose lines HAProxy refuses, and nobody else.
type search struct {
	*driver
	checks int
	named  []string // who was left out by this search
}

func (d *driver) search(ctx context.Context) (candidate, error) {
	s := &search{driver: d}
	for {
		c, err := s.try(ctx)
		if err == nil {
			return s.minimize(ctx, c), nil
		}
		if isRefused(err) && s.checks < maxChecks {
			named := d.blame(d.left.set(), err, false)
			if len(named) == 0 {
				named = s.bisect(ctx, err)
			}
			s.named = append(s.named, named...)
			if len(named) > 0 && s.checks < maxChecks {
				continue
			}
		}
		for _, owner := range s.named {
			d.left.restore(owner)
		}
		return candidate{}, err
	}
}

// try writes a generation and has it checked.
func (s *search) try(ctx context.Context) (candidate, error) {
	s.checks++
	set := s.left.set()
	number, faults, err := s.store.Write(set, s.placement)
	if err != nil {
		return candidate{}, err
	}
	for _, fault := range faults {
		s.logger.Error("a fragment was not written", "owner", fault.Owner, "error", fault.Message)
	}
	if err := haproxy.Check(ctx, s.Binary, s.store.Path(number)); err != nil {
		return candidate{}, errors.Join(err, s.store.Remove(number))
	}
	return candidate{number, set}, nil
}

// blame leaves out the owners that HAProxy's words are about, and returns them.
func (d *driver) blame(set files.Set, err error, loading bool) []string {
	var refused *haproxy.RefusedError
	if !errors.As(err, &refused) {
		return nil
	}
	words := map[string][]string{}
	var named []string
	for _, alert := range refused.Alerts {
		for _, owner := range suspects(set, alert) {
			if !slices.Contains(named, owner) {
				named = append(named, owner)
			}
			if !slices.Contains(words[owner], alert.Message) {
				words[owner] = append(words[owner], alert.Message)
			}
		}
	}
	for _, owner := range named {
		d.leaveOut(owner, strings.Join(words[owner], "; "), loading)
	}
	return named
}

// suspects are the owners of the files that an alert mentions, else of its line, else of the section that it is about.
func suspects(set files.Set, alert haproxy.Alert) []string {
	var owners []string
	line := alert.Line
	if alert.File != files.ConfigFile {
		line = 0
	}
	for _, name := range set.Mentioned(alert.Message, line) {
		if asset, _ := set.Assets.Get(name); asset.Owner != "" {
			owners = append(owners, asset.Owner)
		}
	}
	if len(owners) > 0 {
		return owners
	}
	owner := set.Owner(alert.File, alert.Line)
	if owner == "" {
		owner = set.OwnerOfMentioned(alert.Message)
	}
	if owner == "" {
		return nil
	}
	return []string{owner}
}

// leaveOut refuses an owner and says so.
func (d *driver) leaveOut(owner, words string, loading bool) {
	d.logger.Warn("left out, because HAProxy refuses it", "owner", owner, "words", clip(words))
	d.left.refuse(owner, words, loading)
	if loading {
		d.postpone(owner)
	}
}

// bisect finds one owner without whom the rest is taken, where HAProxy's words name nobody. It returns none if it is
// nobody's fault, or if that would take too many checks.
func (s *search) bisect(ctx context.Context, cause error) []string {
	owners := slices.DeleteFunc(changedOwners(s.left.set(), s.running), s.left.isRefused)
	if len(owners) == 0 || s.with(ctx, owners, 0) != nil {
		return nil
	}
	good, bad := 0, len(owners) // with the first good ones it is taken, with the first bad ones it is not
	for bad-good > 1 {
		middle := (good + bad) / 2
		switch err := s.with(ctx, owners, middle); {
		case err == nil:
			good = middle
		case isRefused(err):
			bad, cause = middle, err
		default:
			return nil
		}
	}
	culprit := owners[bad-1]
	s.leaveOut(culprit, wordsOf(cause), false)
	return []string{culprit}
}

// errTooManyChecks ends a bisection.
var errTooManyChecks = errors.New("too many checks")

// with says what HAProxy says when of these owners only the first ones are in.
func (s *search) with(ctx context.Context, owners []string, first int) error {
	if s.checks >= maxChecks {
		return errTooManyChecks
	}
	for _, owner := range owners[first:] {
		s.left.refuse(owner, "", false)
	}
	c, err := s.try(ctx)
	for _, owner := range owners[first:] {
		s.left.restore(owner)
	}
	if err == nil {
		return s.store.Remove(c.number)
	}
	return err
}

// wordsOf are HAProxy's.
func wordsOf(err error) string {
	var refused *haproxy.RefusedError
	if !errors.As(err, &refused) || len(refused.Alerts) == 0 {
		return err.Error()
	}
	var words []string
	for _, alert := range refused.Alerts {
		words = append(words, alert.Message)
	}
	return strings.Join(words, "; ")
}

// changedOwners are those of whom HAProxy reads something that it did not read before; if there is none, all.
func changedOwners(wanted, running files.Set) []string {
	all, changed := map[string]bool{}, map[string]bool{}
	note := func(owner string) {
		if owner != "" {
			all[owner] = true
		}
	}
	for _, section := range wanted.Sections {
		for _, owner := range section.Owners {
			note(owner)
		}
	}
	for change := range wanted.Assets.Diff(table.Table[files.Asset]{}) {
		note(change.New.Owner)
	}
	for change := range wanted.Servers.Diff(running.Servers) {
		if change.HasNew && change.New.Owner != "" {
			changed[change.New.Owner] = true
		}
	}
	for owner := range all {
		if signature(wanted, owner) != signature(running, owner) {
			changed[owner] = true
		}
	}
	if len(changed) > 0 {
		all = changed
	}
	return sortedKeys(all)
}

// minimize takes those in again that were only named because of another.
func (s *search) minimize(ctx context.Context, c candidate) candidate {
	if len(s.named) < 2 {
		return c
	}
	for _, owner := range s.named {
		if s.checks >= maxChecks {
			break
		}
		refusal := s.left.refused[owner]
		s.left.restore(owner)
		better, err := s.try(ctx)
		if err != nil {
			s.left.leave(owner, refusal)
			continue
		}
		if err := s.store.Remove(c.number); err != nil {
			s.logger.Warn("a generation that is not used was not deleted", "error", err)
		}
		c = better
	}
	return c
}
