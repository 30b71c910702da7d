package templates

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// pieces are what hostile values are made of: everything that any of HAProxy's contexts gives a meaning to.
var pieces = []string{
	"a", "b", "1", " ", "'", `"`, "#", "$", "%", `\`, "[", "]", "{", "}", "(", ")", ",", ";", "|", "&", "*", "?", "+", "^", "~",
	"<", ">", "=", ":", "@", "!", ".", "-", "_", "/", "`", "\t", "é", "${HOME}", "$HOME", "%[date]", "%[env(HOME)]", "%%",
	`\x41`, `\n`, "%T", "-f", "\n", "\r", "\x01", "\x7f", "if", "unless", "--",
}

func hostile(random *rand.Rand) string {
	var b strings.Builder
	for range 1 + random.IntN(10) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// TestEveryQuotingFunctionKeepsAValueWhole sends hostile values through a real HAProxy in each context and reads them back.
func TestEveryQuotingFunctionKeepsAValueWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	port := freePort(t)
	var cfg strings.Builder
	fmt.Fprintf(&cfg, "defaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\nfrontend f\n  bind 127.0.0.1:%d\n", port)
	var values []string
	for i := range 150 {
		s := hostile(random)
		values = append(values, s)
		rule := func(context, action string) {
			fmt.Fprintf(&cfg, "  http-request %s if { path /%s/%d }\n", action, context, i)
		}
		rule("word", "return status 200 content-type text/plain string "+word(s))
		rule("format", "return status 200 content-type text/plain lf-string "+word(logFormat(s)))
		rule("argument", "set-var(txn.v) "+word("str("+argument(s)+")"))
		rule("argument", "return status 200 content-type text/plain lf-string %[var(txn.v)]")
		rule("pattern", "set-var(txn.v) "+word("str("+argument(s)+")"))
		fmt.Fprintf(&cfg, "  acl same%d var(txn.v) -m str -- %s\n  acl like%d var(txn.v) -m reg -- %s\n", i, word(s), i, word("^"+pattern(s)+"$"))
		fmt.Fprintf(&cfg, "  http-request return status 204 if { path /pattern/%d } same%d like%d\n", i, i, i)
	}
	startText(t, cfg.String(), port)
	for i, s := range values {
		for _, context := range []string{"word", "format"} {
			if got := ask(t, port, "x", fmt.Sprintf("/%s/%d", context, i), nil); got.status != http.StatusOK || got.body != s {
				t.Errorf("%s: %q came back as %d %q", context, s, got.status, got.body)
			}
		}
		// %[var()] shows control characters as escapes of its own.
		if got := ask(t, port, "x", fmt.Sprintf("/argument/%d", i), nil); !strings.ContainsAny(s, "\n\r\x01\x7f\t") && got.body != s {
			t.Errorf("argument: %q came back as %q", s, got.body)
		}
		if got := ask(t, port, "x", fmt.Sprintf("/pattern/%d", i), nil); got.status != http.StatusNoContent {
			t.Errorf("pattern: %q does not match itself: %d", s, got.status)
		}
	}
}

// startText starts HAProxy on a configuration of the test's own.
func startText(t *testing.T, text string, port uint16) {
	t.Helper()
	file := t.TempDir() + "/haproxy.cfg"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(haproxy(t), "-db", "-f", file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 100 {
		if res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port)); err == nil {
			_ = res.Body.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Fatalf("haproxy does not serve:\n%s", stderr.String())
}

// words splits a configuration line as HAProxy does: blanks separate, single quotes hold, a backslash outside of them
// takes the next character, # begins a comment. ok is false if a quote stays open.
func words(line string) (out []string, ok bool) {
	var current strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted && c == '\'':
			quoted = false
		case quoted:
			current.WriteByte(c)
		case c == '\'':
			quoted, inWord = true, true
		case c == '\\' && i+1 < len(line):
			i++
			current.WriteByte(line[i])
			inWord = true
		case c == '#':
			i = len(line)
		case c == ' ' || c == '\t':
			if inWord {
				out = append(out, current.String())
				current.Reset()
			}
			inWord = false
		default:
			current.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		out = append(out, current.String())
	}
	return out, !quoted
}

// FuzzQuote: whatever the value, a quoted word is one word of one line, and comes back.
func FuzzQuote(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 30 {
		f.Add(hostile(random))
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := "server " + word(s) + " end"
		if strings.ContainsAny(line, "\n\r\x00") && !strings.Contains(s, "\x00") {
			t.Fatalf("%q breaks its line: %q", s, line)
		}
		got, ok := words(line)
		if !ok || len(got) != 3 || got[0] != "server" || got[2] != "end" {
			t.Fatalf("%q became %d words: %q", s, len(got), got)
		}
		printable := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
		if printable && got[1] != s {
			t.Fatalf("%q became %q", s, got[1])
		}
		if quoted := argument(s); strings.Count(strings.ReplaceAll(strings.ReplaceAll(quoted, `\\`, ""), `\"`, ""), `"`) != 2 {
			t.Fatalf("%q leaves its argument: %q", s, quoted)
		}
		if strings.Contains(strings.ReplaceAll(logFormat(s), "%%", ""), "%") {
			t.Fatalf("%q is a log-format: %q", s, logFormat(s))
		}
	})
}
