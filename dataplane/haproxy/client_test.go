package haproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/dataplane/haproxy/haproxytest"
)

const paths = "paths.map"

// hostile are keys and values that a shell, a file or a socket might take for something else.
var hostile = []string{
	"v/a/", "v/a/\x01", "a;b", `a\b`, `\`, `\\`, `a\`, `"a"`, `'a'`, `a'b"c`, "a#b", "$HOME", "${HOME}", "%[env(HOME)]",
	"<<", "<<E", "a<<", "ü/ß", "\xff\xfe", "@1", "@", "-", "--", "-f", "{", "}", "[a]", "(", "a,b", "a=b", "*", "?", "~", "^", "!",
	";quit", "a;set\\map", "0x1", ">", "> ", "+", "a|b", "`id`", "&", "%s%n", "\xc2\xa0", "\xe2\x80\xa8", "=", ":", "/;/", "#",
}

func TestHostileKeysAndValuesArriveUnchanged(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	random := rand.New(rand.NewPCG(5, 6))
	want := map[string]string{}
	for _, key := range hostile {
		for _, value := range hostile {
			key, value := key+fmt.Sprint(len(want)), value+" \\ "+value
			if files.CheckEntry(key, value) == nil {
				want[key] = value
			}
		}
	}
	for range 3000 {
		if key, value := randomText(random, 40, ""), randomText(random, 80, " "); files.CheckEntry(key, value) == nil {
			want[key] = value
		}
	}
	for _, key := range hostile { // as they are, at both ends
		if files.CheckEntry(key, key) == nil {
			want[key] = key
		}
	}
	t.Logf("%d entries", len(want))

	var commands []Command
	for _, key := range slices.Sorted(maps.Keys(want)) {
		commands = append(commands, AddMap(paths, key, "first"))
	}
	l.exec(commands...)
	commands = nil
	for _, key := range slices.Sorted(maps.Keys(want)) {
		commands = append(commands, SetMap(paths, key, want[key]))
	}
	l.exec(commands...)
	l.mapIs(paths, want)

	commands = nil
	for i, key := range slices.Sorted(maps.Keys(want)) {
		if i%2 == 0 {
			commands = append(commands, DelMap(paths, key), AddMap("hosts.map", key, want[key]))
			delete(want, key)
		}
	}
	l.exec(commands...)
	l.mapIs(paths, want)

	if err := l.client.ReplaceMap(t.Context(), paths, entries(want)); err != nil {
		t.Fatal(err)
	}
	l.mapIs(paths, want)
	if servers, err := l.client.Servers(t.Context()); err != nil || len(servers) != 0 {
		t.Errorf("there are servers now: %v %v", servers, err)
	}
}

// TestFilesAndCommandsMeanTheSame writes hostile entries to a file, and compares what HAProxy reads with what it was
// told by commands.
func TestFilesAndCommandsMeanTheSame(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for i, text := range hostile {
		if key := fmt.Sprint("k", i, text); files.CheckEntry(key, text+"  x") == nil {
			want[key] = text + "  x"
		}
		if files.CheckEntry(text, text) == nil {
			want[text] = text
		}
	}
	l := run(t, func(dir string) files.Set {
		set := skeleton(dir)
		edit := set.Maps[paths].Edit()
		for key, value := range want {
			edit.Set(key, files.Entry{Value: value})
		}
		set.Maps[paths] = edit.Table()
		return set
	})
	l.mapIs(paths, want)
}

func randomText(random *rand.Rand, length int, more string) string {
	const common = `ab/;\"'#<>$%&{}[]()|=,.-_@!?*~^+:` + "\x80\xc3\xff"
	letters := common + more
	var b strings.Builder
	for range 1 + random.IntN(length) {
		b.WriteByte(letters[random.IntN(len(letters))])
	}
	return b.String()
}

func FuzzMapCommand(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		command := SetMap(paths, key, value)
		if command.err != nil {
			return
		}
		words := commandWords(command.text)
		if len(words) != 5 || words[3] != key || words[4] != value {
			t.Errorf("key %q value %q became the words %q", key, value, words)
		}
	})
}

// commandWords reads a command line as HAProxy's cli.c does; nil if it is more than one command, or begins a payload.
func commandWords(line string) []string {
	var words []string
	var word strings.Builder
	inside := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inside = true
		case c == '\n', c == ';':
			return nil
		case c == ' ' || c == '\t':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		case c == '<' && !inside && strings.HasPrefix(line[i:], "<<"):
			return nil
		default:
			word.WriteByte(c)
			inside = true
		}
	}
	if last := line[strings.LastIndexAny(line, " \t")+1:]; strings.HasPrefix(last, "<<") {
		return nil
	}
	return append(words, word.String())
}

func TestWhatCannotBeQuotedIsNotSent(t *testing.T) {
	t.Parallel()
	client := NewClient("/nonexistent")
	for _, command := range []Command{
		AddMap(paths, "a\nb", "v"), SetMap(paths, "a b", "v"), SetMap(paths, "k", "v\nshow info"), DelMap(paths, "#1"), DelMap(paths, ""),
		AddServer(files.Server{Slot: "s1", Name: "a;b", Address: "127.0.0.1:1", ID: 1}),
		SetAddress("s1", "a", "example.com:1"), SetWeight("s1", "a b", 1), DelServer("s1;", "a"), EnableServer("", "a"),
	} {
		if err := client.Exec(t.Context(), command); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, want an error before anything is sent", command, err)
		}
	}
}

func TestARefusedCommandIsNamedAndTheOthersRun(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	refused, err := l.client.Try(t.Context(),
		AddMap(paths, "a", "1"), SetMap(paths, "missing", "secret value"), AddMap(paths, "b", "2"), DelMap(paths, "missing"),
		SetMap("unknown.map", "k", "v"), SetWeight("s1", "nobody", 3), AddMap(paths, "c", "3"), Command{text: "frobnicate"})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for i, e := range refused {
		if e != nil {
			got = append(got, i)
			if strings.Contains(e.Error(), "secret value") {
				t.Errorf("the error shows a value: %v", e)
			}
		}
	}
	if !slices.Equal(got, []int{1, 3, 4, 5, 7}) {
		t.Errorf("refused are %v, want 1, 3, 4, 5 and 7", got)
	}
	l.mapIs(paths, map[string]string{"a": "1", "b": "2", "c": "3"})
	var rejected *RejectedError
	if err := l.client.Exec(t.Context(), DelMap(paths, "missing")); !errors.As(err, &rejected) {
		t.Errorf("%v, want a *RejectedError", err)
	}
}

func TestALineOfEightKiBFitsInACommand(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	long := strings.Repeat(";", files.MaxLine-2)
	command := SetMap(paths, "k", strings.Repeat("v", files.MaxLine-2))
	l.exec(AddMap(paths, "k", "v"), command, command, command)
	l.mapIs(paths, map[string]string{"k": strings.Repeat("v", files.MaxLine-2)})
	almost := "k" + strings.Repeat(";", 3680)
	longest := SetMap(paths, almost, strings.Repeat(";", 3780))
	if size := len(longest.text); size < maxBatch-100 || size > maxBatch {
		t.Fatalf("the longest command has %d bytes", size)
	}
	l.exec(AddMap(paths, almost, "v"), longest)
	l.exec(DelMap(paths, almost))
	// Quoted, it is too long: the whole map is replaced then.
	if err := l.client.Exec(t.Context(), SetMap(paths, "k", long)); !errors.Is(err, ErrTooLong) {
		t.Errorf("a command of 16 KiB: %v, want ErrTooLong", err)
	}
	if err := l.client.ReplaceMap(t.Context(), paths, entries(map[string]string{"k": long})); err != nil {
		t.Fatal(err)
	}
	l.mapIs(paths, map[string]string{"k": long})
}

func TestALargeMapIsReplacedInOneStep(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	want := map[string]string{}
	for i := range 20_000 {
		want[fmt.Sprintf("v%d/some/path/", i)] = fmt.Sprintf("s%d", i%100)
	}
	start := time.Now()
	if err := l.client.ReplaceMap(t.Context(), paths, entries(want)); err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 entries in %s", time.Since(start))
	l.mapIs(paths, want)
	if err := l.client.ReplaceMap(t.Context(), paths, entries(nil)); err != nil {
		t.Fatal(err)
	}
	l.mapIs(paths, nil)
	if sizes, err := l.client.MapSizes(t.Context()); err != nil || sizes[paths] != 0 || len(sizes) != 2 {
		t.Errorf("sizes are %v %v, want two empty maps", sizes, err)
	}
	bad := entries(map[string]string{"a": "1", "b": " "})
	if err := l.client.ReplaceMap(t.Context(), paths, bad); err == nil {
		t.Error("an entry that cannot be written was written")
	}
	l.mapIs(paths, nil)
}

func TestAHungHAProxyIsAnErrorWithinTheDeadline(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	l.exec(AddMap(paths, "a", "1"))
	l.pause()
	start := time.Now()
	err := l.client.Exec(l.ctx(300*time.Millisecond), SetMap(paths, "a", "2"))
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("after %s: %v, want ErrUnavailable within 300 ms", time.Since(start), err)
	}
	if err := l.client.Settle(l.ctx(100 * time.Millisecond)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("settled while the command is still on its way: %v", err)
	}
	l.resume()
	if err := l.client.Settle(l.ctx(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	l.exec(SetMap(paths, "a", "3"))
	l.mapIs(paths, map[string]string{"a": "3"})
}

func TestADeadHAProxyIsUnavailable(t *testing.T) {
	t.Parallel()
	l := run(t, skeleton)
	l.exec(AddMap(paths, "a", "1"))
	l.kill(l.process.PID())
	l.within(5*time.Second, "the worker follows its master", func() bool { return len(leftovers(l.dir)) == 0 })
	if err := l.client.Exec(l.ctx(time.Second), SetMap(paths, "a", "2")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}

func (l *lab) exec(commands ...Command) {
	l.Helper()
	if err := l.client.Exec(l.Context(), commands...); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) mapIs(file string, want map[string]string) {
	l.Helper()
	shown, err := l.client.ShowMap(l.Context(), file)
	if err != nil {
		l.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range shown {
		got[e.Key] = e.Value
	}
	if len(shown) != len(want) {
		l.Errorf("%s has %d entries, want %d", file, len(shown), len(want))
	}
	for key, value := range want {
		if got[key] != value {
			l.Errorf("%s: %.60q is %.60q, want %.60q", file, key, got[key], value)
		}
	}
}

func entries(of map[string]string) func(func(MapEntry) bool) {
	return func(yield func(MapEntry) bool) {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if !yield(MapEntry{key, of[key]}) {
				return
			}
		}
	}
}

func (l *lab) worker() int {
	l.Helper()
	found, err := showProc(l.Context(), masterSocket(l.dir))
	if err != nil || len(found.workers) == 0 {
		l.Fatal(err, found)
	}
	return found.workers[0]
}

// pause stops the worker until resume or the test's end.
func (l *lab) pause() {
	l.Helper()
	haproxytest.Pause(l, l.worker())
}

func (l *lab) resume() {
	for _, pid := range leftovers(l.dir) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func (l *lab) kill(pid int) {
	l.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		l.Fatal(err)
	}
}
