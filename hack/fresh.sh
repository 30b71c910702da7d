#!/usr/bin/env bash
# Proves that a clean checkout works: clones this one's HEAD into a temporary folder and runs
# the given make targets there (without any: the two that the README promises).
#
#   hack/fresh.sh [TARGET…]          with nothing of this checkout's .cache
#   KEEP_CACHE=1 hack/fresh.sh …     with a copy of it, when only the tree is in question
#   COLD=1 hack/fresh.sh …           with empty Go caches too, as on a new machine
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -gt 0 ] || set -- demo test

[ -z "$(git -C "$ROOT" status --porcelain)" ] || say "uncommitted changes here are not in the clone"
fresh=$(mktemp -d)
say "cloning $(git -C "$ROOT" describe --always) to $fresh"
git clone -q --no-hardlinks "$ROOT" "$fresh/limpet"
# Nothing of the caller's make may decide what happens there.
unset MAKEFLAGS MFLAGS MAKELEVEL HAPROXY
if [ "${KEEP_CACHE:-}" = 1 ] && [ -d "$CACHE" ]; then cp -a "$CACHE" "$fresh/limpet/.cache"; fi
if [ "${COLD:-}" = 1 ]; then
  export GOCACHE=$fresh/gocache GOMODCACHE=$fresh/gomodcache GOFLAGS="${GOFLAGS:-} -modcacherw"
fi

start=$SECONDS
if make -C "$fresh/limpet" "$@"; then
  say "make $* passed in a clean checkout, in $((SECONDS - start)) s"
  rm -rf "$fresh"
else
  die "make $* failed in a clean checkout; it is left in $fresh"
fi
