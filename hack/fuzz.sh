#!/usr/bin/env bash
# Runs every fuzz target of the module, one after another, each for $FUZZTIME (20s).
# Arguments are package patterns; without any, all packages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

FUZZTIME=${FUZZTIME:-20s}

# targets prints "<package> <target>" lines.
targets() {
  go test -list '^Fuzz' "$@" | awk '
    /^Fuzz/ { names[n++] = $1 }
    /^ok/   { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }'
}

list=$(targets "${@:-./...}") || die "the tests do not build: see above"
[ -n "$list" ] || die "no package has a fuzz target"
count=$(wc -l <<<"$list")
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say "$count targets, $FUZZTIME each"
while read -r package target; do
  if go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 3x "$package" >"$log" 2>&1 </dev/null; then
    echo "$target: $(grep '^fuzz: elapsed' "$log" | tail -n 1 | sed 's/^fuzz: elapsed: //')"
    grep '^ok' "$log"
  else
    cat "$log"
    failed+=("$target")
  fi
done <<<"$list"
[ "${#failed[@]}" -eq 0 ] ||
  die "${failed[*]} failed: the inputs are in the packages' testdata/fuzz, commit them with the repair"
