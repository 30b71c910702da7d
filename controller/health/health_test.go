package health

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestProbesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, listener, Options{
			Started: func() error { return errors.New("there is no configuration yet") },
			Served:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }),
			Log:     slog.New(slog.DiscardHandler),
		})
	}()
	for path, want := range map[string]string{
		"/livez": "200 ok\n", "/startedz": "503 there is no configuration yet\n", "/readyz": "200 ok\n", "/served": "200 {}",
		"/metrics": "404 404 page not found\n", "/": "404 404 page not found\n",
	} {
		if got := get(t, "http://"+listener.Addr().String()+path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it does not end")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status[:4] + string(body)
}
