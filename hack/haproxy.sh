#!/usr/bin/env bash
# Prints the path of an HAProxy that Limpet's tests and demo can drive: 3.0 or newer, with
# OpenSSL, Lua, PCRE2 (JIT) and the Prometheus exporter. In this order:
#
#   1. $HAPROXY, if set (it must fit: a wrong one is an error);
#   2. haproxy in PATH, if it fits;
#   3. what an earlier run left in the checkout (.cache/bin/haproxy);
#   4. Debian 13 and newer: the package haproxy, installed;
#   5. Debian 12: compiled from the archive in Debian's own source package of trixie, the same
#      upstream version as in Limpet's image. It is found in the machine's own package sources and its
#      signatures are verified by apt; apt's configuration on the machine stays as it is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

RELEASE=trixie
FEATURES="OPENSSL LUA PCRE2 PCRE2_JIT PROMEX"

# unfit prints why the HAProxy at $1 does not fit, or nothing if it does.
unfit() {
  local about version major minor feature
  if ! about=$("$1" -vv 2>/dev/null); then
    echo "it does not run"
    return
  fi
  version=${about#*HAProxy version }
  version=${version%%[!0-9.]*}
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  if ! [ "$major" -ge 3 ] 2>/dev/null || [ -z "$minor" ]; then
    echo "it is not HAProxy 3.0 or newer (${version:-unknown version})"
    return
  fi
  about=${about#*Feature list :}
  about=" ${about%%$'\n'*} "
  for feature in $FEATURES; do
    case $about in *" +$feature "*) ;; *)
      echo "it is built without $feature"
      return
      ;;
    esac
  done
}

# link makes .cache/bin/haproxy, by which people and later runs find it.
link() {
  mkdir -p "$CACHE/bin"
  ln -sfn "$1" "$CACHE/bin/haproxy.$$"
  mv -f "$CACHE/bin/haproxy.$$" "$CACHE/bin/haproxy"
}

# candidate prints the version of the package haproxy that apt would install here.
candidate() {
  LC_ALL=C apt-cache policy haproxy 2>/dev/null | sed -n 's/^ *Candidate: //p'
}

# install installs the package haproxy if it is new enough; it fails if there is none such.
install() {
  have apt-cache || return 1
  # A new machine has no lists yet. Without rights to fetch them, the next step tells what to do.
  case $(candidate) in "" | "(none)")
    say "refreshing the package lists"
    apt_refresh || return 1
    ;;
  esac
  case $(candidate) in [3-9].* | [1-9][0-9].*) ;; *) return 1 ;; esac
  apt_install haproxy
  if [ -d /run/systemd/system ]; then
    say "Limpet starts HAProxy itself: the package's service is not needed ('systemctl disable --now haproxy')"
  fi
}

# sources prints one-line deb-src entries for $RELEASE, made from the entries for this
# machine's own release: apt-get itself reads its configuration, so it may be in either format.
sources() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg uri suite codename
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(CODENAME)' \
    'Created-By: Packages' 'Component: main' | sort -u |
    while IFS='|' read -r uri suite codename; do
      # An entry may say "stable"; apt knows the codename once it has the archive's lists.
      case $codename in "$VERSION_CODENAME"*) suite=$codename ;; esac
      case $uri in cdrom:*) continue ;; esac
      case $suite in
        "$VERSION_CODENAME") suite=$RELEASE ;;
        "$VERSION_CODENAME-security") suite=$RELEASE-security ;;
        *) continue ;;
      esac
      echo "deb-src [signed-by=$keys] $uri $suite main"
    done
}

# compile builds HAProxy from Debian's source package and links it into .cache/bin.
compile() {
  # Another run may have done it while we waited for the lock.
  [ ! -x "$CACHE/bin/haproxy" ] || [ -n "$(unfit "$CACHE/bin/haproxy")" ] || return 0

  apt_install gcc make libc6-dev libssl-dev liblua5.4-dev libpcre2-dev debian-archive-keyring
  local apt=$CACHE/haproxy/apt
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
  sources >"$apt/sources.list"
  [ -s "$apt/sources.list" ] ||
    die "found no package source for $VERSION_CODENAME main here: install HAProxy 3.0 or newer yourself and put it in PATH"

  # A configuration of its own. Without sandbox user, since _apt may not enter the checkout.
  local options=(
    -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts"
    -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Sandbox::User= -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false
    -o APT::Update::Error-Mode=any -o APT::Update::Post-Invoke-Success= -o Acquire::Languages=none
  )
  say "fetching Debian's list of source packages for $RELEASE (signed; about 10 MB)"
  if ! quietly apt-get "${options[@]}" update; then
    say "that failed; the keyring may be too old to know $RELEASE's key: updating it"
    if apt_refresh; then quietly apt_root install -y debian-archive-keyring || true; fi
    quietly apt-get "${options[@]}" update ||
      die "Debian's source packages of $RELEASE cannot be fetched and verified here: install HAProxy 3.0 or newer yourself and put it in PATH"
  fi

  local build
  build=$(mktemp -d "$CACHE/haproxy/build.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$build'" EXIT
  # Only upstream's archive: apt checks it against the signed list, and Debian's patches are
  # not needed to test (not every mirror keeps them). The image's HAProxy has them.
  say "fetching HAProxy's source"
  (cd "$build" && quietly apt-get "${options[@]}" source --download-only --tar-only haproxy) ||
    die "fetching the source package haproxy of $RELEASE failed: run this again when the package archive answers"

  local archive version
  archive=$(cd "$build" && ls haproxy_*.orig.tar.*)
  version=${archive#haproxy_}
  version=${version%.orig.tar.*}
  mkdir "$build/source"
  tar -C "$build/source" --strip-components=1 -xf "$build/$archive" || die "unpacking $archive failed"

  local jobs
  jobs=$(getconf _NPROCESSORS_ONLN)
  say "compiling HAProxy $version with $jobs jobs: a minute or two, once for this checkout"
  quietly nice make -C "$build/source" -j "$jobs" TARGET=linux-glibc \
    USE_OPENSSL=1 USE_LUA=1 USE_PCRE2=1 USE_PCRE2_JIT=1 USE_PROMEX=1 || die "compiling HAProxy $version failed: see above"

  local why
  why=$(unfit "$build/source/haproxy")
  [ -z "$why" ] || die "the HAProxy $version compiled here does not fit: $why"
  mkdir -p "$CACHE/haproxy/$version"
  mv -f "$build/source/haproxy" "$CACHE/haproxy/$version/haproxy"
  link "../haproxy/$version/haproxy"
  rm -rf "$build" "$apt"
  trap - EXIT
  say "HAProxy $version is ready"
}

main() {
  local found why
  if [ -n "${HAPROXY:-}" ]; then
    found=$(command -v "$HAPROXY") || die "\$HAPROXY is $HAPROXY, which is not there: unset it or correct it"
    why=$(unfit "$found")
    [ -z "$why" ] || die "\$HAPROXY is $found, but $why: unset it or name an HAProxy 3.0 or newer"
    echo "$found"
    return
  fi

  # Debian keeps it in a folder that is not in every user's PATH.
  if found=$(PATH=$PATH:/usr/local/sbin:/usr/sbin command -v haproxy); then
    why=$(unfit "$found")
    if [ -z "$why" ]; then
      echo "$found"
      return
    fi
    [ -x "$CACHE/bin/haproxy" ] || say "not using $found: $why"
  fi

  if [ -x "$CACHE/bin/haproxy" ] && [ -z "$(unfit "$CACHE/bin/haproxy")" ]; then
    echo "$CACHE/bin/haproxy"
    return
  fi

  case $(uname -s) in
    Darwin) die "HAProxy 3.0 or newer with Lua is needed: run 'brew install haproxy' and try again (if brew's is the one that does not fit, work in a Linux machine)" ;;
    Linux) ;;
    *) die "HAProxy 3.0 or newer with Lua is needed: install it, put it in PATH and try again" ;;
  esac
  if with_lock haproxy install; then
    found=$(PATH=$PATH:/usr/local/sbin:/usr/sbin command -v haproxy) || die "the package haproxy brought no haproxy"
    why=$(unfit "$found")
    [ -z "$why" ] || die "the package's $found does not fit: $why"
    echo "$found"
    return
  fi
  is_debian || die "HAProxy 3.0 or newer with Lua is needed: install your distribution's package haproxy in that version, put it in PATH and try again"
  with_lock haproxy compile
  echo "$CACHE/bin/haproxy"
}

main
