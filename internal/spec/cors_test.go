package spec

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestCredentialsAreForTheBrowserToJudge asks across origins with what may be credentials.
func TestCredentialsAreForTheBrowserToJudge(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cors := func(path, more string) string {
		return "- matches: [{path: {value: " + path + "}}]\n  filters: [{type: CORS, cors: {allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*']" + more +
			"}}]\n  backendRefs: [{name: shop, port: 80}]\n"
	}
	run(t, class+gateway("gw", fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port))+
		shop(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })+
		route("r", "parentRefs: [{name: gw}]\nrules:\n"+cors("/without", "")+cors("/with", ", allowCredentials: true")))
	for _, credential := range []string{"", "Cookie: a=b", "Authorization: Bearer x"} {
		for path, want := range map[string]string{"/without": "* ", "/with": "https://a.example true"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Origin", "https://a.example")
			if name, value, given := strings.Cut(credential, ": "); given {
				request.Header.Set(name, value)
			}
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			got := response.Header.Get("Access-Control-Allow-Origin") + " " + response.Header.Get("Access-Control-Allow-Credentials")
			if response.StatusCode != http.StatusOK || got != want {
				t.Errorf("%s with %q: %d, %q, want %q", path, credential, response.StatusCode, got, want)
			}
		}
	}
}
