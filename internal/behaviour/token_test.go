package behaviour

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/internal/keys"
)

// token is a session's, in its parts.
type token struct {
	version, backend, endpoint string
	issued, seen               int64
	mac                        string
}

func parseToken(t testing.TB, text string) token {
	t.Helper()
	f := strings.Split(text, ".")
	if len(f) != 6 {
		t.Fatalf("%q is no token", text)
	}
	issued, err1 := strconv.ParseInt(f[3], 10, 64)
	seen, err2 := strconv.ParseInt(f[4], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("%q is no token", text)
	}
	return token{f[0], f[1], f[2], issued, seen, f[5]}
}

func (k token) unsigned() string {
	return strings.Join([]string{k.version, k.backend, k.endpoint, strconv.FormatInt(k.issued, 10), strconv.FormatInt(k.seen, 10)}, ".")
}

func (k token) String() string { return k.unsigned() + "." + k.mac }

// signed is the token with the MAC that a key gives it in a scope.
func (k token) signed(by keys.SignKey, scope string) token {
	mac := hmac.New(sha256.New, by.Secret)
	mac.Write([]byte(k.unsigned() + "." + scope))
	k.mac = base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
	return k
}

// expires is when a session that the token opened ends.
func (k token) expires(after time.Duration) time.Time { return time.Unix(k.issued, 0).Add(after) }

// session is the model's for a cookie or header of that name. It must be the only one.
func (w *World) session(t testing.TB, name string) *model.Session {
	t.Helper()
	config, _ := w.limpet.rendered()
	var found []*model.Session
	for _, e := range config.Rules.Sorted() {
		for _, share := range e.Value.Split {
			if share.Session != nil && share.Session.Name == name {
				found = append(found, share.Session)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d sessions named %q", len(found), name)
	}
	return found[0]
}

// scopeOf is what the tokens of a session are bound to.
func scopeOf(s *model.Session) string { return s.Scope + "." + s.Backend }

// token is what an answer gives under a cookie's name.
func (a answer) token(t testing.TB, cookie string) token {
	t.Helper()
	for _, given := range a.given() {
		if given.Name == cookie {
			return parseToken(t, given.Value)
		}
	}
	t.Fatalf("no cookie %s in %q", cookie, a.header.Values("Set-Cookie"))
	return token{}
}

// keeps says whether an answer left the session as it is: nothing is given.
func (a answer) keeps() bool { return len(a.header.Values("Set-Cookie")) == 0 }
