package keys

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestKeysAreMadeOnceAndStay(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "state", "keys")
	first, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Names) != 32 || len(first.Sign) != 1 || len(first.Sign[0].Secret) != 32 || first.Sign[0].ID != "a" {
		t.Fatalf("%d bytes to name, %v", len(first.Names), first)
	}
	second, err := Load(dir)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Fatalf("the second start has other keys (%v)", err)
	}
	for path, want := range map[string]os.FileMode{".": 0o700, NamesFile: 0o600, SignFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartsAtTheSameTimeAgree(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "keys")
	all := make([]Keys, 16)
	var starts sync.WaitGroup
	for i := range all {
		starts.Go(func() {
			var err error
			if all[i], err = Load(dir); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	for _, keys := range all {
		if !reflect.DeepEqual(keys, all[0]) {
			t.Fatal("two starts have different keys")
		}
	}
}

func TestTheFirstKeySignsAndAllAreAccepted(t *testing.T) {
	t.Parallel()

	dir := filled(t, SignFile, "# rotated\n\nb "+secret(32, 'b')+"\n  a\t"+secret(64, 'a')+"  \r\n")
	keys, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys.Sign) != 2 || keys.Sign[0].ID != "b" || keys.Sign[1].ID != "a" || len(keys.Sign[1].Secret) != 64 {
		t.Fatalf("got %v", keys)
	}
}

func TestMalformedKeysAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ file, content, want string }{
		"no key to name":      {NamesFile, "# nothing\n", "holds 0 lines"},
		"two keys to name":    {NamesFile, secret(32, 'x') + "\n" + secret(32, 'y'), "holds 2 lines"},
		"a short name key":    {NamesFile, "\n" + secret(16, 'x'), "line 2: the key has 16 bytes"},
		"no base64":           {NamesFile, "hunter2hunter2!", "line 1: the key is not base64"},
		"no key to sign":      {SignFile, "", "holds no key"},
		"a long id":           {SignFile, "ab " + secret(32, 'x'), "line 1: is not of the form"},
		"an id in upper case": {SignFile, "A " + secret(32, 'x'), "line 1: is not of the form"},
		"no id":               {SignFile, secret(32, 'x'), "line 1: is not of the form"},
		"the same id twice":   {SignFile, "a " + secret(32, 'x') + "\na " + secret(32, 'y'), "line 2: the id a is that of line 1"},
		"a short sign key":    {SignFile, "a " + secret(31, 'x'), "line 1: the key has 31 bytes"},
		"a long sign key":     {SignFile, "a " + secret(65, 'x'), "line 1: the key has 65 bytes"},
		"a huge file":         {SignFile, strings.Repeat("#\n", 1<<16), "larger than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := filled(t, c.file, c.content)
			_, err := Load(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the key: %v", err)
			}
			if now, _ := os.ReadFile(filepath.Join(dir, c.file)); string(now) != c.content {
				t.Error("the file was changed")
			}
		})
	}
}

func TestKeysThatOthersCanReadAreRefused(t *testing.T) {
	t.Parallel()

	for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
		dir := filled(t, NamesFile, secret(32, 'x'))
		if err := os.Chmod(filepath.Join(dir, NamesFile), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %v: error %v", mode, err)
		}
	}
	dir := filled(t, NamesFile, secret(32, 'x'))
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder for all: error %v", err)
	}
}

func TestNoFormOfPrintingShowsASecret(t *testing.T) {
	t.Parallel()

	names, sign := bytes.Repeat([]byte("NAMES!"), 6)[:32], bytes.Repeat([]byte("SIGN!!"), 6)[:32]
	keys := Keys{Names: names, Sign: []SignKey{{ID: "a", Secret: sign}, {ID: "b", Secret: sign}}}
	printed := ""
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t"} {
		printed += fmt.Sprintf(verb+verb+verb+verb+"\n", keys, &keys, keys.Sign, keys.Sign[0])
	}
	text, err := json.Marshal(map[string]any{"keys": keys, "pointer": &keys, "sign": keys.Sign})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "keys", keys, "sign", keys.Sign, "one", keys.Sign[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "keys", keys, "sign", keys.Sign, "one", keys.Sign[0])
	printed += string(text) + log.String()

	for _, secret := range [][]byte{names, sign} {
		forms := []string{
			string(secret[:4]), fmt.Sprintf("%x", secret)[:8], fmt.Sprintf("%X", secret)[:8],
			base64.StdEncoding.EncodeToString(secret)[:8], strings.Trim(fmt.Sprintf("%d", secret[:4]), "[]"),
		}
		for _, form := range forms {
			if strings.Contains(printed, form) {
				t.Errorf("%q shows in\n%s", form, printed)
			}
		}
	}
	if !strings.Contains(printed, "ab") {
		t.Errorf("the ids do not show in\n%s", printed)
	}
}

// filled is a folder in which one file has the given content.
func filled(t *testing.T, name, content string) string {
	t.Helper()

	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func secret(size int, of byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{of}, size))
}
