# shellcheck shell=bash
# Shell functions that the scripts of this folder share. Sourced, never run.
# It must parse with bash 3.2, which macOS has.

# The checkout, and the folder in it that holds everything we fetch or compile.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=$ROOT/.cache

# The toolchain that go.mod names; Go fetches it through its module proxy.
GOTOOLCHAIN=go$(sed -n 's/^go //p' "$ROOT/go.mod")
export GOTOOLCHAIN

# say tells on stderr what takes long: stdout belongs to a script's result.
say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

# die ends the script with one sentence that tells what to do.
die() {
  say "$*"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# as_root runs a command as root, by sudo where needed; it fails where neither can.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    return 1
  fi
}

# quietly runs a command, whose output is shown only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  [ "$status" -eq 0 ] || tail -n 30 "$log" >&2
  rm -f "$log"
  return "$status"
}

apt_root() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@"
}

# apt_refresh fetches the package lists; another apt may hold their lock, so it tries for a while.
apt_refresh() {
  local try
  [ "$(id -u)" -eq 0 ] || have sudo || return 1
  for try in 1 2 3 4 5 6; do
    if quietly apt_root update; then return 0; fi
    say "apt-get update failed (try $try of 6); trying again in 10 s"
    sleep 10
  done
  return 1
}

# apt_install installs those of the named Debian packages that are missing.
apt_install() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f '${Status}\n' "$name" 2>/dev/null | grep -q ' installed$' || missing+=("$name")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ] && ! have sudo; then
    die "install these packages as root and run this again: ${missing[*]}"
  fi
  say "installing the packages ${missing[*]}"
  # The first try fails on a machine whose lists are missing or old.
  if apt_root install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 </dev/null; then return 0; fi
  say "refreshing the package lists"
  apt_refresh || die "apt-get update failed: repair the machine's package sources and run this again"
  quietly apt_root install -y --no-install-recommends "${missing[@]}" ||
    die "installing ${missing[*]} failed: install them by hand and run this again"
}

# is_debian tells whether this is Debian; VERSION_CODENAME is set then.
is_debian() {
  [ -r /etc/os-release ] || return 1
  # shellcheck disable=SC1091
  . /etc/os-release
  [ "${ID:-}" = debian ] && [ -n "${VERSION_CODENAME:-}" ]
}

# with_lock NAME COMMAND… runs a command while no other checkout process holds NAME. Without flock (macOS) it just runs it.
with_lock() {
  local name=$1 status=0
  shift
  if ! have flock; then
    "$@"
    return
  fi
  mkdir -p "$CACHE"
  exec 9>"$CACHE/$name.lock"
  if ! flock -n 9; then
    say "waiting for another run that is already at it"
    flock 9
  fi
  "$@" || status=$?
  exec 9>&-
  return "$status"
}
