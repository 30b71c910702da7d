package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"sync"
	"time"
)

// client is one visitor: a cookie jar, or a header that is sent back.
type client struct {
	http   *http.Client
	url    string
	header string // the session header's name; "" for a client with cookies
	token  string

	mu       sync.Mutex // one request at a time, as a person clicks
	endpoint string
	moves    int
}

// crowd is all clients, and what happened to them.
type crowd struct {
	address string
	clients []*client
	cookie  string

	mu          sync.Mutex
	requests    int
	failed      int
	lastFailure string
	moves       []move
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

type move struct{ from, to string }

// tally is what the crowd can tell.
type tally struct {
	requests, failed, moved, movedTwice int
	lastFailure                         string
	// owners had their session on the draining endpoint, strayed moved from another one.
	owners, strayed int
	// fresh sessions were opened to see where new ones go.
	fresh, newEndpoints, newOnDraining int
}

const sessionHeader = "X-Demo-Session"

func newCrowd(address string) *crowd {
	c := &crowd{address: address, cancel: func() {}}
	for range clients {
		c.clients = append(c.clients, newClient(address, ""), newClient(address, sessionHeader))
	}
	return c
}

func newClient(address, header string) *client {
	c := &client{http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}, header: header}
	c.url = "http://shop.example/"
	if header != "" {
		c.url += "api"
	} else {
		c.http.Jar, _ = cookiejar.New(nil)
	}
	transport, _ := c.http.Transport.(*http.Transport)
	transport.DialContext = dialTo(address)
	return c
}

// ask sends one request and returns the name of the endpoint that answered, and the Set-Cookie line if there was one.
func (c *client) ask(ctx context.Context) (endpoint, given string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return "", "", err
	}
	if c.header != "" && c.token != "" {
		req.Header.Set(c.header, c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return "", "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", "", errors.New(res.Status)
	}
	if c.header != "" {
		if token := res.Header.Get(c.header); token != "" {
			c.token = token
		}
	}
	return res.Header.Get("Server-Name"), res.Header.Get("Set-Cookie"), nil
}

// arrive opens every client's session.
func (c *crowd) arrive(ctx context.Context) error {
	for _, client := range c.clients {
		endpoint, given, err := client.ask(ctx)
		if err != nil {
			return fmt.Errorf("a first request: %w", err)
		}
		if client.header == "" && given == "" || client.header != "" && client.token == "" {
			return errors.New("a first request was given no session")
		}
		if given != "" {
			c.cookie = given
		}
		client.endpoint = endpoint
	}
	return nil
}

// walk keeps all clients asking until stop.
func (c *crowd) walk(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	for _, client := range c.clients {
		c.done.Go(func() {
			for ctx.Err() == nil {
				c.step(ctx, client)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}

func (c *crowd) stop() {
	c.cancel()
	c.done.Wait()
}

func (c *crowd) step(ctx context.Context, client *client) {
	client.mu.Lock()
	defer client.mu.Unlock()
	endpoint, _, err := client.ask(ctx)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if err != nil {
		c.failed++
		c.lastFailure = err.Error()
		return
	}
	if endpoint != client.endpoint {
		c.moves = append(c.moves, move{client.endpoint, endpoint})
		client.endpoint = endpoint
		client.moves++
	}
}

// round makes every client ask once more, so that what happened to each is known.
func (c *crowd) round(ctx context.Context) error {
	for _, client := range c.clients {
		c.step(ctx, client)
	}
	return ctx.Err()
}

// take counts, and opens some new sessions to see where they go.
func (c *crowd) take(ctx context.Context, draining string) (tally, error) {
	t := tally{fresh: 60}
	seen := map[string]bool{}
	for range t.fresh {
		newcomer := newClient(c.address, "")
		endpoint, _, err := newcomer.ask(ctx)
		if err != nil {
			return t, fmt.Errorf("a new session: %w", err)
		}
		newcomer.http.CloseIdleConnections()
		seen[endpoint] = true
		if endpoint == draining {
			t.newOnDraining++
		}
	}
	t.newEndpoints = len(seen)
	c.mu.Lock()
	defer c.mu.Unlock()
	t.requests, t.failed, t.moved, t.lastFailure = c.requests, c.failed, len(c.moves), c.lastFailure
	for _, m := range c.moves {
		if m.from != draining {
			t.strayed++
		} else {
			t.owners++
		}
	}
	for _, client := range c.clients {
		if client.endpoint == draining {
			t.owners++
		}
		if client.moves > 1 {
			t.movedTwice++
		}
	}
	return t, nil
}
