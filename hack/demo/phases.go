package main

import (
	"context"
	"fmt"
	"time"
)

// phase is one thing that happens around the clients, and what must be true of it.
type phase struct {
	name string
	// act makes it happen, and returns when it has taken effect.
	act func(context.Context) error
	// expect says what is wrong with what was seen; "" if nothing is.
	expect func(before, after scene) string
	// note is added to the line.
	note func(before, after scene) string
}

// scene is what is known at one moment.
type scene struct {
	tally
	reloads int
	workers int
}

func (s *stage) phases() []phase {
	return []phase{
		{
			name:   "scale from 3 endpoints to 6",
			act:    func(ctx context.Context) error { return s.scale(ctx, 6) },
			expect: all(noneMoved, noneFailed, newOnes(6)),
			note:   func(_, after scene) string { return fmt.Sprintf("new sessions reach %d endpoints", after.newEndpoints) },
		},
		{
			name:   "an unrelated route added and removed",
			act:    s.unrelated,
			expect: all(noneMoved, noneFailed, noReload),
			note:   reloads,
		},
		{
			name:   "a forced reload (a listener is added)",
			act:    s.addListener,
			expect: all(noneMoved, noneFailed, oneReload),
			note:   reloads,
		},
		{
			name:   "HAProxy killed with SIGKILL",
			act:    s.killHAProxy,
			expect: all(noneMoved),
			note:   func(b, a scene) string { return fmt.Sprintf("%d requests found nobody there", a.failed-b.failed) },
		},
		{
			name:   "Limpet killed with SIGKILL and started again",
			act:    s.killLimpet,
			expect: all(noneMoved, noneFailed, noReload),
			note:   reloads,
		},
		{
			name:   "one endpoint draining",
			act:    s.drain,
			expect: all(noneMoved, noneFailed, noneNewOnDraining),
			note:   func(_, a scene) string { return fmt.Sprintf("%d of %d new sessions on it", a.newOnDraining, a.fresh) },
		},
		{
			name:   "that endpoint gone",
			act:    s.remove,
			expect: all(onlyItsOwnMoved, noneFailed),
			note: func(_, a scene) string {
				return fmt.Sprintf("%d sessions were on it; none moved twice", a.owners)
			},
		},
	}
}

// play runs a phase while the clients walk on, and prints its line.
func (p phase) play(ctx context.Context, s *stage, c *crowd) error {
	before, err := look(ctx, s, c)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.act(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if err := c.round(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	after, err := look(ctx, s, c)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if wrong := p.expect(before, after); wrong != "" {
		fmt.Printf("%-46s %2d moved   WRONG: %s\n", p.name, after.moved-before.moved, wrong)
		return fmt.Errorf("%s: %s", p.name, wrong)
	}
	note := ""
	if p.note != nil {
		note = p.note(before, after)
	}
	fmt.Printf("%-46s %2d moved   %d requests; %s\n", p.name, after.moved-before.moved, after.requests-before.requests, note)
	return nil
}

// look takes stock: the tally of the clients, a set of newcomers, and HAProxy's reloads.
func look(ctx context.Context, s *stage, c *crowd) (scene, error) {
	tally, err := c.take(ctx, s.draining)
	if err != nil {
		return scene{}, err
	}
	reloads, workers, err := s.processes(ctx)
	return scene{tally, reloads, workers}, err
}

type check func(before, after scene) string

func all(checks ...check) check {
	return func(before, after scene) string {
		for _, c := range checks {
			if wrong := c(before, after); wrong != "" {
				return wrong
			}
		}
		return ""
	}
}

func noneMoved(b, a scene) string {
	if n := a.moved - b.moved; n != 0 {
		return fmt.Sprintf("%d sessions moved", n)
	}
	return ""
}

func noneFailed(b, a scene) string {
	if n := a.failed - b.failed; n != 0 {
		return fmt.Sprintf("%d requests failed (%s)", n, a.lastFailure)
	}
	return ""
}

func noReload(b, a scene) string {
	if a.reloads != b.reloads {
		return fmt.Sprintf("%d reloads", a.reloads-b.reloads)
	}
	return ""
}

func oneReload(b, a scene) string {
	if a.reloads != b.reloads+1 {
		return fmt.Sprintf("%d reloads, want 1", a.reloads-b.reloads)
	}
	return ""
}

func newOnes(endpoints int) check {
	return func(_, a scene) string {
		if a.newEndpoints != endpoints {
			return fmt.Sprintf("new sessions reach %d endpoints, want %d", a.newEndpoints, endpoints)
		}
		return ""
	}
}

func noneNewOnDraining(_, a scene) string {
	if a.newOnDraining != 0 {
		return fmt.Sprintf("%d new sessions on the draining endpoint", a.newOnDraining)
	}
	return ""
}

func onlyItsOwnMoved(b, a scene) string {
	if a.moved-b.moved != b.owners || a.strayed != b.strayed || a.movedTwice != 0 {
		return fmt.Sprintf("%d moved of %d that were there, %d others, %d twice",
			a.moved-b.moved, b.owners, a.strayed-b.strayed, a.movedTwice)
	}
	return ""
}

func reloads(b, a scene) string {
	if a.reloads == b.reloads {
		return "no reload"
	}
	return fmt.Sprintf("%d reload", a.reloads-b.reloads)
}

// settle is how long the demo lets an edit take: "live within a second".
const settle = time.Second
