#!/usr/bin/env bash
# Builds the image of the Dockerfile from bin/image/limpet, and writes it to bin/image/limpet.tar, an archive that a cluster can load:
#
#   hack/image.sh NAME[:TAG]
#
# With Docker where its daemon answers, else with buildah, which needs no daemon. buildah is also for machines that reach no image
# registry: the base image is then made by debootstrap from Debian's own packages, once for this checkout. It needs root.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NAME=${1:?usage: hack/image.sh NAME[:TAG]}
ARCHIVE=$ROOT/bin/image/limpet.tar
RELEASE=trixie
BASE=docker.io/library/debian:$RELEASE-slim

cd "$ROOT"
[ -x bin/image/limpet ] || die "bin/image/limpet is missing: run 'make image'"

with_docker() {
  docker build -q -t "$NAME" . >/dev/null
  docker save -o "$ARCHIVE" "$NAME"
}

with_buildah() {
  [ "$(id -u)" -eq 0 ] || die "without Docker an image needs root: run this as root"
  apt_install buildah debootstrap
  our_buildah inspect --type image "$BASE" >/dev/null 2>&1 || base
  # The same time in all of it: the same content gives the same image.
  quietly our_buildah build --isolation chroot --layers --timestamp 0 --pull-never --format oci -t "$(whole "$NAME")" . || die "buildah failed: see above"
  rm -f "$ARCHIVE"
  quietly our_buildah push "$(whole "$NAME")" "oci-archive:$ARCHIVE:$(whole "$NAME")" || die "writing $ARCHIVE failed: see above"
}

# whole is an image's name with its registry: the one that a cluster takes it to be of, where none is said.
whole() {
  case $1 in
    *[.:]*/* | localhost/*) echo "$1" ;;
    */*) echo "docker.io/$1" ;;
    *) echo "docker.io/library/$1" ;;
  esac
}

# our_buildah keeps its images in this checkout.
our_buildah() { buildah --root "$CACHE/images" --runroot "$CACHE/images/run" "$@"; }

# base makes the base image.
base() {
  local folder=$CACHE/$RELEASE mirror container
  mirror=$(mirror)
  say "making the base image from $RELEASE's packages at $mirror (a minute, once for this checkout)"
  rm -rf "$folder"
  quietly debootstrap --variant=minbase "$RELEASE" "$folder" "$mirror" || die "debootstrap failed: see above"
  printf 'deb %s\n' "$mirror $RELEASE main" "$mirror $RELEASE-updates main" \
    "${mirror%/debian*}/debian-security $RELEASE-security main" >"$folder/etc/apt/sources.list"
  rm -rf "$folder"/var/cache/apt/*.bin "$folder"/var/cache/apt/archives/* "$folder"/var/lib/apt/lists/* \
    "$folder"/usr/share/{doc,info,locale,man}/*
  container=$(our_buildah from scratch)
  quietly our_buildah add "$container" "$folder" /
  our_buildah config --cmd bash "$container"
  quietly our_buildah commit --rm --timestamp 0 "$container" "$BASE" || die "writing the base image failed: see above"
  rm -rf "$folder"
}

# mirror is where this machine gets Debian's packages from.
mirror() {
  local found
  # shellcheck disable=SC2016
  found=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 2>/dev/null | grep -m1 '/debian/*$' || true)
  echo "${found:?apt names no source of Debian packages on this machine: add one, or build the image with Docker}"
}

if have docker && docker info >/dev/null 2>&1; then with_docker; else with_lock image with_buildah; fi
echo "$ARCHIVE"
