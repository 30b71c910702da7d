package dataplane

import (
	"context"
	"slices"
	"sync"

	"github.com/limpet-gateway/limpet/controller/model"
)

// request is one Apply that waits.
type request struct {
	ctx   context.Context
	reply chan Result
}

// mailbox takes configurations also while the loop is busy: of several, the newest counts, and it counts too when nobody
// waits for it any more.
type mailbox struct {
	mu      sync.Mutex
	config  *model.Config // nil when there is nothing new
	waiting []request
	bell    chan struct{}
}

func newMailbox() *mailbox { return &mailbox{bell: make(chan struct{}, 1)} }

// put leaves a configuration, and returns where its result comes.
func (m *mailbox) put(ctx context.Context, config model.Config) <-chan Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := request{ctx: ctx, reply: make(chan Result, 1)}
	m.waiting = slices.DeleteFunc(m.waiting, func(r request) bool { return r.ctx.Err() != nil })
	m.waiting = append(m.waiting, r)
	m.config = &config
	select {
	case m.bell <- struct{}{}:
	default: // it rings already
	}
	return r.reply
}

// take returns what has come, if anything has.
func (m *mailbox) take() (*model.Config, []request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	config, waiting := m.config, m.waiting
	m.config, m.waiting = nil, nil
	return config, waiting
}
