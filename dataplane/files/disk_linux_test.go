package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/limpet-gateway/limpet/dataplane/placement"
	"github.com/limpet-gateway/limpet/internal/table"
)

func TestOnAFullDiskTheLastGoodGenerationStays(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skipf("mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	store := open(t, dir)
	was := sample()
	number := write(t, store, was)
	if err := store.Switch(number); err != nil {
		t.Fatal(err)
	}

	is := sample()
	big := table.Table[Entry]{}.Edit()
	for i := range 200 {
		big.Set(strings.Repeat("k", i+1), Entry{Value: strings.Repeat("v", 4000)})
	}
	is.Maps["paths.map"] = big.Table()
	if _, _, err := store.Write(is, placement.Placement{}); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("writing to a full disk: %v, want an error that says what to do", err)
	}
	if err := store.Rewrite(number, was, is, placement.Placement{}); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("rewriting on a full disk: %v, want an error that says what to do", err)
	}
	back, _, err := open(t, dir).Load(store.Current())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, was, back)
	if numbers, _ := store.Generations(); len(numbers) != 1 {
		t.Errorf("generations %v, want the good one alone", numbers)
	}
	left, _ := filepath.Glob(filepath.Join(store.Path(number), "*", ".new-*"))
	if _, err := os.Stat(filepath.Join(dir, generationsFolder, ".new")); err == nil || len(left) > 0 {
		t.Errorf("half-written files are left: %v", left)
	}
	if number := write(t, store, was); number != 2 {
		t.Errorf("with room again, generation %d was written, want 2", number)
	}
}
