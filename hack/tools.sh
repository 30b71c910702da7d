#!/usr/bin/env bash
# Makes sure that a tool is there, installing it where that is possible, and prints its path:
#
#   hack/tools.sh go | gcc | golangci-lint | controller-gen | helm | kind | kubeconform | shellcheck | wrk
#
# What Go can build is pinned here and kept in .cache; the rest comes from Debian's packages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

GOLANGCI_LINT=v2.15.0
CONTROLLER_GEN=v0.23.0
HELM=v4.3.2
KIND=v0.33.0
KUBECONFORM=v0.8.0

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

# built NAME VERSION PACKAGE prints the path of a tool that Go builds, once for this checkout.
built() {
  local folder=$CACHE/$1/$2
  if [ ! -x "$folder/$1" ]; then
    go_ >/dev/null
    say "building $1 $2 (a few minutes, once for this checkout)"
    (cd / && GOBIN=$folder quietly nice go install "$3@$2") || die "building $1 failed: see above"
  fi
  echo "$folder/$1"
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
  golangci-lint) built golangci-lint "$GOLANGCI_LINT" github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
  controller-gen) built controller-gen "$CONTROLLER_GEN" sigs.k8s.io/controller-tools/cmd/controller-gen ;;
  helm) built helm "$HELM" helm.sh/helm/v4/cmd/helm ;;
  kind) built kind "$KIND" sigs.k8s.io/kind ;;
  kubeconform) built kubeconform "$KUBECONFORM" github.com/yannh/kubeconform/cmd/kubeconform ;;
  shellcheck) package shellcheck shellcheck ;;
  wrk) package wrk wrk ;;
  *) die "usage: hack/tools.sh go|gcc|golangci-lint|controller-gen|helm|kind|kubeconform|shellcheck|wrk" ;;
esac
