#!/usr/bin/env bash
# Makes sure that a tool is there, installing it where that is possible, and prints its path:
#
#   hack/tools.sh go | gcc | golangci-lint | shellcheck | wrk
#
# What Go can build is pinned here and kept in .cache; the rest comes from Debian's packages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

GOLANGCI_LINT=v2.15.0

go_() {
  local found version minor
  found=$(command -v go) ||
    die "Go 1.21 or newer is needed, which then fetches ${GOTOOLCHAIN#go} itself: install Go and try again"
  # A Go that is too old to know GOTOOLCHAIN ignores it.
  version=$(GOTOOLCHAIN=local go env GOVERSION)
  minor=${version#go1.}
  minor=${minor%%[!0-9]*}
  [ "${minor:-0}" -ge 21 ] ||
    die "Go 1.21 or newer is needed, which then fetches ${GOTOOLCHAIN#go} itself; $found is $version: install a newer Go and try again"
  if [ "$version" != "$GOTOOLCHAIN" ] && [ ! -d "$(GOTOOLCHAIN=local go env GOMODCACHE)/golang.org/toolchain@v0.0.1-$GOTOOLCHAIN.$(platform)" ]; then
    say "fetching the toolchain $GOTOOLCHAIN (about 70 MB, once)"
  fi
  (cd "$ROOT" && go version >/dev/null) ||
    die "Go cannot fetch its toolchain $GOTOOLCHAIN: allow it a module proxy (go env GOPROXY GOFLAGS), or install Go ${GOTOOLCHAIN#go}"
  echo "$found"
}

platform() { (cd / && GOTOOLCHAIN=local go env GOOS GOARCH | paste -s -d- -); }

# gcc is what the race detector needs.
gcc_() {
  if ! have gcc && ! have cc; then package gcc gcc libc6-dev; fi
  command -v gcc || command -v cc
}

golangci_lint() {
  local folder=$CACHE/golangci-lint/$GOLANGCI_LINT
  if [ ! -x "$folder/golangci-lint" ]; then
    go_ >/dev/null
    say "building golangci-lint $GOLANGCI_LINT (a few minutes, once for this checkout)"
    (cd / && GOBIN=$folder quietly nice go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI_LINT") ||
      die "building golangci-lint failed: see above"
  fi
  echo "$folder/golangci-lint"
}

# package COMMAND PACKAGE… makes sure of a command that a Debian package brings.
package() {
  local command=$1
  shift
  if ! have "$command"; then
    have apt-get || die "$command is needed: install it (macOS: brew install $command) and try again"
    apt_install "$@"
  fi
  command -v "$command"
}

case ${1:-} in
  go) go_ ;;
  gcc) gcc_ ;;
  golangci-lint) golangci_lint ;;
  shellcheck) package shellcheck shellcheck ;;
  wrk) package wrk wrk ;;
  *) die "usage: hack/tools.sh go|gcc|golangci-lint|shellcheck|wrk" ;;
esac
