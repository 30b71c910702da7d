#!/usr/bin/env bash
# Fails if "make generate" changes anything: what is generated must be committed as generated.
# It compares the tree before and after, so that unrelated edits in it do no harm.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

git grep -q '^//go:generate ' -- '*.go' || exit 0

# state prints a line for each file that differs from HEAD, with its hash.
state() {
  git diff HEAD --name-only --diff-filter=d -z | xargs -0 -r git hash-object --
  git status --porcelain --untracked-files=all
  git ls-files --others --exclude-standard -z | xargs -0 -r git hash-object --
}

before=$(state)
make --no-print-directory generate
if [ "$before" != "$(state)" ]; then
  git status --short >&2
  die "'make generate' changed files: commit what it made"
fi
