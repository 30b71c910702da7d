#!/usr/bin/env bash
# Installs Limpet's chart on a cluster, as a user does, and runs tests of it there:
#
#   run.sh up              the cluster, images, Gateway API's CustomResourceDefinitions, and Limpet
#   run.sh conformance     Gateway API's conformance suite; with its report in docs/conformance if all tests are run
#   run.sh e2e             our own tests: what clients notice (e2e/suite)
#   run.sh down            the end of what up has made
#
# conformance and e2e do what is missing of up, and end it, unless $KEEP is 1 or the cluster was up before.
#
#   E2E_CLUSTER=local        a node of cluster/local.sh, named $CLUSTER (the default on Linux as root without Docker)
#   E2E_CLUSTER=kind         a cluster that kind makes, named limpet-e2e (the default otherwise)
#   E2E_CLUSTER=kubeconfig   the one of $KUBECONFIG, which must be able to pull $IMAGE; Services must be reachable from here
#   RUN=NAME                 a test of the suite, or a regular expression for tests of ours
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../hack/lib.sh"

IMAGE=${IMAGE:-limpet:dev}
ECHO=registry.k8s.io/gateway-api/conformance/echo-basic
OUT=$ROOT/bin/e2e
E2E=$ROOT/e2e

export LIMPET_NAMESPACE=limpet-system LIMPET_RELEASE=limpet LIMPET_CLASS=limpet
export CHART=$ROOT/charts/limpet ECHO_IMAGE=$ECHO:v0.1.0
# Few processor time is asked for: the suite has some 40 pods, and a small machine two processors.
export HELM_VALUES="--set image.repository=${IMAGE%:*},image.tag=${IMAGE##*:},service.type=ClusterIP\
,haproxy.resources.requests.cpu=10m,controller.resources.requests.cpu=10m"

# --- the cluster: each kind of it has these functions -------------------------------------------------------------------------
#
# is_up, make_up and make_down; load FILE… gives it images; inside COMMAND… runs a command where Services can be reached;
# kube ARGUMENT… is kubectl. $KUBECONFIG leads to it from inside.

local_cluster() {
  export CLUSTER=${CLUSTER:-limpet}
  export KUBECONFIG=/var/lib/limpet-cluster/$CLUSTER/admin.conf NODE_PROCESSES=1
  KUBECTL=${CLUSTER_CACHE:-$CACHE/cluster}/bin/kubectl
  node() { "$E2E/cluster/local.sh" "$@"; }
  is_up() { node exec true 2>/dev/null; }
  make_up() { node up >/dev/null; }
  make_down() { node down; }
  load() { node load "$@"; }
  inside() { node exec "$@"; }
  kube() { node kubectl "$@"; }
}

kind_cluster() {
  local name=limpet-e2e
  NODE=$name-control-plane
  export NODE_PROCESSES=1
  KIND=$("$ROOT/hack/tools.sh" kind)
  KUBECTL=kubectl
  is_up() { docker inspect "$NODE" >/dev/null 2>&1; }
  make_up() { "$KIND" create cluster --name limpet-e2e --wait 2m --kubeconfig "$OUT/kind.conf"; }
  make_down() { "$KIND" delete cluster --name limpet-e2e; }
  load() {
    local file
    for file in "$@"; do "$KIND" load image-archive --name limpet-e2e "$file"; done
  }
  # What is run is copied to where it is here.
  inside() {
    tar -C / -cf - "${OUT#/}" "${CHART#/}" "${HELM#/}" | docker exec -i "$NODE" tar -C / -xf -
    local status=0 variables=(-e KUBECONFIG=/etc/kubernetes/admin.conf -e HELM -e KUBECTL -e CHART -e HELM_VALUES -e ECHO_IMAGE
      -e LIMPET_NAMESPACE -e LIMPET_RELEASE -e LIMPET_CLASS -e NODE_PROCESSES)
    docker exec "${variables[@]}" -w "$OUT" "$NODE" "$@" || status=$?
    docker exec "$NODE" tar -C / -cf - "${OUT#/}/results" 2>/dev/null | tar -C / -xf - || true
    return "$status"
  }
  kube() { docker exec -i -e KUBECONFIG=/etc/kubernetes/admin.conf "$NODE" kubectl "$@"; }
}

users_cluster() {
  [ -n "${KUBECONFIG:-}" ] || die "E2E_CLUSTER=kubeconfig needs \$KUBECONFIG"
  KUBECTL=$(command -v kubectl) || die "kubectl is needed: install it and try again"
  is_up() { false; }
  make_up() { kube version >/dev/null; }
  # The cluster is not ours; the definitions stay, as others may use them.
  make_down() { "$HELM" uninstall "$LIMPET_RELEASE" -n "$LIMPET_NAMESPACE" --ignore-not-found; }
  load() { :; }
  inside() { "$@"; }
  kube() { "$KUBECTL" "$@"; }
}

default_cluster() {
  if [ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ] && ! docker info >/dev/null 2>&1; then echo local; else echo kind; fi
}

# --- up ---------------------------------------------------------------------------------------------------------------------

up() {
  mkdir -p "$OUT/results"
  images
  if is_up; then say "the cluster is up already"; else make_up; fi
  load "$ROOT/bin/image/limpet.tar" "$ROOT/bin/image/echo-basic.tar"
  definitions
  install
}

# images makes archives of Limpet's image, and of the suite's back end, which is known by the two tags that its manifests have.
images() {
  [ "${E2E_CLUSTER}" != kubeconfig ] || return 0
  make --no-print-directory -C "$ROOT" image >/dev/null
  # Pods of an older image of that name are replaced.
  HELM_VALUES+=,podAnnotations.image=$(git hash-object "$ROOT/bin/image/limpet.tar")
  local module
  module=$(cd "$E2E" && go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api-conformance-images)
  CGO_ENABLED=0 GOOS=linux go -C "$module" build -trimpath -o "$ROOT/bin/image/echo-basic" ./echo-basic
  go -C "$E2E" run ./cluster/archive -o "$ROOT/bin/image/echo-basic.tar" -name "$ECHO:v0.1.0,$ECHO:v0.2.0" "$ROOT/bin/image/echo-basic"
}

# definitions installs Gateway API, the channel with what is experimental.
definitions() {
  local folder file
  folder=$(cd "$E2E" && go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/experimental
  for file in "$folder"/gateway*.yaml; do
    echo ---
    cat "$file"
  done | kube apply --server-side -f - >/dev/null
  kube wait --for=condition=Established crd --all --timeout=60s >/dev/null
}

install() {
  # shellcheck disable=SC2086
  inside "$HELM" upgrade --install "$LIMPET_RELEASE" "$CHART" -n "$LIMPET_NAMESPACE" --create-namespace $HELM_VALUES --wait --timeout 3m >"$OUT/helm.log" 2>&1 || {
    cat "$OUT/helm.log" >&2
    evidence
    die "helm could not install Limpet: see above, and $OUT/results"
  }
}

# --- tests ------------------------------------------------------------------------------------------------------------------

# program PACKAGE makes a program of a package's tests.
program() { CGO_ENABLED=0 GOOS=linux go -C "$E2E" test -c -vet=off -trimpath -ldflags '-s -w' -o "$OUT/$1.test" "./$1"; }

conformance() {
  local status=0 version arguments
  version=$(git -C "$ROOT" describe --tags --always --dirty 2>/dev/null || echo unknown)
  program upstream
  # One test after the other: some that may run beside others allow references that those expect to be refused, for as long as it
  # takes a slow machine to delete a namespace.
  # An address that no cluster has, and one of Services' that is free: where nobody asks for one, it is from the upper part of their
  # network.
  arguments=(-test.v -test.count=1 -test.timeout=60m -disable-parallel-tests -timeout-config-overrides=DeleteTimeout:120
    -gateway-class="$LIMPET_CLASS" -cleanup-base-resources="${CLEAN:-true}"
    -unusable-address=192.0.2.1 -usable-address="${USABLE_ADDRESS:-10.96.0.77}"
    -organization=limpet-gateway -project=limpet -url=https://github.com/limpet-gateway/limpet -version="$version"
    -contact=https://github.com/limpet-gateway/limpet/issues)
  if [ -n "${RUN:-}" ]; then
    arguments+=(-run-test="$RUN")
  else
    arguments+=("-conformance-profiles=GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP" -report-output="$OUT/results/report.yaml")
  fi
  inside "$OUT/upstream.test" -test.run='TestConformance$' "${arguments[@]}" >"$OUT/results/conformance.log" 2>&1 || status=$?
  evidence
  verdicts >"$OUT/results/tests.txt"
  grep '^FAIL ' "$OUT/results/tests.txt" || true
  say "$(grep -c '^PASS ' "$OUT/results/tests.txt") tests passed, $(grep -c '^FAIL ' "$OUT/results/tests.txt") failed; all is in $OUT/results"
  if [ -z "${RUN:-}" ] && [ -f "$OUT/results/report.yaml" ]; then document; fi
  return "$status"
}

# verdicts are the results of the suite's tests, one a line.
verdicts() {
  sed -n 's#^ *--- \([A-Z]*\): TestConformance/\([^/ ]*\) (\(.*\))$#\1 \2 \3#p' "$OUT/results/conformance.log" | sort
}

# document writes docs/conformance: what a run of the whole suite has shown.
document() {
  local folder=$ROOT/docs/conformance
  cp "$OUT/results/report.yaml" "$folder/report.yaml"
  cp "$OUT/results/tests.txt" "$folder/tests.txt"
  chmod 644 "$folder/report.yaml" "$folder/tests.txt"
  gzip -9nc "$OUT/results/conformance.log" >"$folder/conformance.log.gz"
  {
    cat <<'MARKDOWN'
# Conformance

<!-- Written by `make conformance`. Do not edit. -->

What Gateway API's conformance suite, v1.7.0, says of Limpet as its chart installs it, on Kubernetes. `make conformance` runs it again
([CONTRIBUTING](../../CONTRIBUTING.md#conformance)). [report.yaml](report.yaml) is the suite's report, [tests.txt](tests.txt) has the result of
each test and how long it took, [conformance.log.gz](conformance.log.gz) all that the suite has said. [files.md](files.md) is the same suite on
`limpet serve`, without a cluster.

MARKDOWN
    go -C "$E2E" run ./upstream/table <"$OUT/results/conformance.log"
  } >"$folder/README.md"
}

e2e() {
  local status=0
  program suite
  inside "$OUT/suite.test" -test.v -test.count=1 -test.timeout=60m -test.run="${RUN:-.}" 2>&1 | tee "$OUT/results/e2e.log" || status=$?
  evidence
  return "$status"
}

# evidence keeps what the containers have said, and how the objects are.
evidence() {
  local folder=$OUT/results pod container
  kube get all,gateways,endpointslices,events -A -o wide >"$folder/objects.txt" 2>&1 || true
  kube get gatewayclasses,gateways,httproutes,grpcroutes,tlsroutes,tcproutes,listenersets,backendtlspolicies -A -o yaml >"$folder/objects.yaml" 2>&1 || true
  kube get pods -n "$LIMPET_NAMESPACE" -o name 2>/dev/null | while read -r pod; do
    for container in controller originator haproxy; do
      kube logs -n "$LIMPET_NAMESPACE" "$pod" -c "$container" >"$folder/${pod#pod/}.$container.log" 2>&1 </dev/null || true
      kube logs -n "$LIMPET_NAMESPACE" "$pod" -c "$container" --previous >"$folder/${pod#pod/}.$container.before.log" 2>/dev/null </dev/null ||
        rm -f "$folder/${pod#pod/}.$container.before.log"
    done
  done
}

# tests VERB runs tests on a cluster that is there, or on one that is made for them.
tests() {
  local status=0
  if ! is_up && [ "${KEEP:-}" != 1 ]; then trap make_down EXIT; fi
  up
  "$1" || status=$?
  return "$status"
}

E2E_CLUSTER=${E2E_CLUSTER:-$(default_cluster)}
HELM=$("$ROOT/hack/tools.sh" helm)
case $E2E_CLUSTER in
  local) local_cluster ;;
  kind) kind_cluster ;;
  kubeconfig) users_cluster ;;
  *) die "E2E_CLUSTER is $E2E_CLUSTER: local, kind or kubeconfig is known" ;;
esac
export HELM KUBECTL

case ${1:-} in
  up) up ;;
  down) make_down ;;
  conformance | e2e) tests "$1" ;;
  *)
    sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"
    exit 2
    ;;
esac
