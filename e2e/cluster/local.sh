#!/usr/bin/env bash
# A real Kubernetes node on a Linux machine that has neither Docker nor an image registry. Everything is built from Go modules
# and Debian packages. It needs root.
#
#   local.sh build           compile etcd, containerd and Kubernetes (some 10 minutes on 2 cores, once for a cache)
#   local.sh apiserver       compile of these etcd and kube-apiserver alone, which tests start without a node; root is not needed
#   local.sh up              start the node, and print the path of its kubeconfig
#   local.sh load FILE…      give it images, from OCI or docker archives
#   local.sh exec CMD…       run a command in the node: addresses of API server, pods and Services are reachable, its daemons seen
#   local.sh kubectl ARG…    kubectl, with that kubeconfig
#   local.sh stop DAEMON     kill etcd, apiserver, controller-manager, scheduler, containerd, kubelet or kube-proxy
#   local.sh start DAEMON    start it again
#   local.sh down            end the node
#
# $CLUSTER names the node (limpet), so that a machine can have several; $CLUSTER_CACHE is the folder with what was compiled
# (.cache/cluster in the checkout).
#
# A node is a process namespace, with a network and mounts of its own: it touches no address and no mount of the machine, all nodes
# can have the same addresses, and when the namespace's first process is killed the kernel ends everything in it, pods too.
# What is left of a node outside is $RUN and its control groups.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/lib.sh"

KUBERNETES=1.37.2
ETCD=v3.7.3
CONTAINERD=v2.2.1

CLUSTER=${CLUSTER:-limpet}
CLUSTER_CACHE=${CLUSTER_CACHE:-$CACHE/cluster}
BIN=$CLUSTER_CACHE/bin
RUN=/var/lib/limpet-cluster/$CLUSTER
CGROUP=limpet-cluster-$CLUSTER

NODE_ADDRESS=10.89.0.1
PODS=10.244.0.0/16
PODS_HERE=10.244.0.0/24
SERVICES=10.96.0.0/16
ETCD_URL=http://127.0.0.1:2379

export KUBECONFIG=$RUN/admin.conf

# --- build ------------------------------------------------------------------------------------------------------------------

build() {
  build_apiserver
  apt_install runc containernetworking-plugins iptables nftables conntrack iproute2 util-linux
  if stale "$CLUSTER_CACHE/built"; then
    say "compiling containerd and Kubernetes (some 10 minutes on 2 cores, once)"
    build_containerd
    build_kubernetes kube-controller-manager kube-scheduler kubelet kube-proxy kubectl kubeadm
    versions >"$CLUSTER_CACHE/built"
  fi
  # Ours, and quickly built: what holds a pod's namespaces, and its image.
  go_build "$ROOT/e2e" -o "$BIN/" ./cluster/pause ./cluster/archive
  "$BIN/archive" -o "$CLUSTER_CACHE/pause.tar" -name localhost/pause:1 "$BIN/pause"
}

# build_apiserver compiles what is enough for an API server without a node.
build_apiserver() {
  mkdir -p "$BIN"
  if stale "$CLUSTER_CACHE/apiserver" && stale "$CLUSTER_CACHE/built"; then
    say "compiling etcd and kube-apiserver (a few minutes, once)"
    build_etcd
    build_kubernetes kube-apiserver
    versions >"$CLUSTER_CACHE/apiserver"
  fi
}

versions() { echo "kubernetes $KUBERNETES etcd $ETCD containerd $CONTAINERD"; }

# stale FILE tells that what it stands for was not made of these versions.
stale() { [ "$(cat "$1" 2>/dev/null)" != "$(versions)" ]; }

# go_build FOLDER ARGUMENT… builds static programs in a folder's module.
go_build() {
  local folder=$1
  shift
  CGO_ENABLED=0 quietly go -C "$folder" build -trimpath -ldflags "-s -w ${LINK:-}" "$@" || die "building failed: see above"
}

build_etcd() {
  of_module etcd "go.etcd.io/etcd/server/v3@$ETCD" go.etcd.io/etcd/server/v3
  go_build "$CLUSTER_CACHE/src/etcd" -o "$BIN/etcd" go.etcd.io/etcd/server/v3
}

build_containerd() {
  local programs=(github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr})
  of_module containerd "github.com/containerd/containerd/v2@$CONTAINERD" "${programs[@]}"
  go_build "$CLUSTER_CACHE/src/containerd" -tags 'no_btrfs no_devmapper no_zfs' -o "$BIN/" "${programs[@]}"
}

# of_module FOLDER MODULE@VERSION PROGRAM… makes a module in which programs of another one can be built.
of_module() {
  local folder=$CLUSTER_CACHE/src/$1 module=$2
  shift 2
  new_module "$folder" "$@"
  quietly go -C "$folder" get "$module" || die "$module cannot be fetched: see above"
  quietly go -C "$folder" mod tidy || die "what $module needs cannot be fetched: see above"
}

# new_module FOLDER PROGRAM… writes a module that needs these programs.
new_module() {
  local folder=$1
  shift
  mkdir -p "$folder"
  printf 'module build\n\ngo %s\n' "${GOTOOLCHAIN#go}" >"$folder/go.mod"
  {
    printf '//go:build programs\n\npackage programs\n\n'
    printf 'import _ "%s"\n' "$@"
  } >"$folder/programs.go"
}

# build_kubernetes PROGRAM… differs: its go.mod names the modules of its own repository as v0.0.0, and replaces them by folders that its
# module does not have. They are published as v0.<minor>.<patch>.
build_kubernetes() {
  local folder=$CLUSTER_CACHE/src/kubernetes published=v0.${KUBERNETES#1.} programs=() name file
  for name in "$@"; do
    programs+=("k8s.io/kubernetes/cmd/$name")
  done
  new_module "$folder" "${programs[@]}"
  file=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
  {
    echo "require k8s.io/kubernetes v$KUBERNETES"
    sed -n "s#^\t\(k8s\.io/[^ ]*\) v0\.0\.0\( //.*\)\{0,1\}\$#replace \1 => \1 $published#p" "$file"
  } >>"$folder/go.mod"
  quietly go -C "$folder" mod tidy || die "what Kubernetes needs cannot be fetched: see above"
  LINK="-X k8s.io/component-base/version.gitVersion=v$KUBERNETES" go_build "$folder" -o "$BIN/" "${programs[@]}"
}

# --- the node ---------------------------------------------------------------------------------------------------------------

up() {
  if alive; then
    echo "$KUBECONFIG"
    return
  fi
  [ "$(id -u)" -eq 0 ] || die "a node needs root: run this as root, or use kind (E2E_CLUSTER=kind)"
  with_lock cluster build
  down
  mkdir -p "$RUN"/{log,pids,cni}
  make_cgroups
  start_node
  network
  certificates
  configure
  control_plane
  pods
  within 60 kubectl wait --for=condition=Ready node/node --timeout=1s
  echo "$KUBECONFIG"
}

# alive tells whether the node's first process is there: a process of that number that has another name is another.
alive() { [ -f "$RUN/node.pid" ] && grep -qszxF "$RUN" "/proc/$(cat "$RUN/node.pid")/cmdline"; }

# start_node makes the namespaces. Its first process waits, and reaps what has lost its parent.
# What Kubernetes keeps outside of its own folders goes to memory that ends with the node.
start_node() {
  mkdir -p /var/lib/cni
  # shellcheck disable=SC2016
  setsid unshare --net --mount --propagation private --pid --fork bash -euc '
    read -r pid _ </proc/self/stat
    mount -t proc proc /proc
    mount --make-rshared /
    for folder in /run /var/log /var/lib/cni; do mount -t tmpfs node "$folder"; done
    echo "$pid" >"$1/node.pid"
    sleep infinity &
    wait' node "$RUN" >"$RUN/log/node.log" 2>&1 </dev/null &
  within 10 alive
}

in_node() { nsenter -t "$(cat "$RUN/node.pid")" --net --mount --pid --wd="$PWD" -- "$@"; }

need_node() { alive || die "there is no node $CLUSTER: start it with '$0 up'"; }

kubectl() { nsenter -t "$(cat "$RUN/node.pid")" --net -- "$BIN/kubectl" "$@"; }

network() {
  in_node ip link set lo up
  # The node's own address; a route that leads nowhere, because Kubernetes looks for a default one.
  in_node ip link add node type bridge
  in_node ip address add "$NODE_ADDRESS/24" dev node
  in_node ip link set node up
  in_node ip route add default dev node
  in_node sysctl -qw net.ipv4.ip_forward=1
  in_node sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true
}

certificates() {
  cat >"$RUN/kubeadm.yaml" <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: $NODE_ADDRESS, bindPort: 6443}
nodeRegistration: {name: node}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$KUBERNETES
certificatesDir: $RUN/pki
controlPlaneEndpoint: $NODE_ADDRESS:6443
networking: {serviceSubnet: $SERVICES, podSubnet: $PODS}
YAML
  quietly in_node "$BIN/kubeadm" init phase certs all --config "$RUN/kubeadm.yaml"
  quietly in_node "$BIN/kubeadm" init phase kubeconfig all --config "$RUN/kubeadm.yaml" --kubeconfig-dir "$RUN"
}

configure() {
  cat >"$RUN/cni/pods.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$PODS_HERE"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  # restrict_oom_score_adj: where root may not lower it (no CAP_SYS_RESOURCE) runc would end without a word.
  cat >"$RUN/containerd.toml" <<TOML
version = 3
root = "$RUN/containerd/root"
state = "$RUN/containerd/state"
[grpc]
address = "$RUN/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "$RUN/containerd/opt"
[plugins."io.containerd.nri.v1.nri"]
disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "$RUN/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
TOML
  # Images and disk are never a reason to evict: what was loaded cannot be fetched again.
  cat >"$RUN/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failSwapOn: false
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
resolvConf: ""
containerRuntimeEndpoint: unix://$RUN/containerd.sock
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
volumePluginDir: $RUN/volumeplugins
YAML
}

control_plane() {
  start etcd
  start apiserver
  within 60 kubectl get --raw /readyz
  kubectl --kubeconfig "$RUN/super-admin.conf" create clusterrolebinding kubeadm:cluster-admins \
    --clusterrole=cluster-admin --group=kubeadm:cluster-admins >/dev/null
  kubectl --kubeconfig "$RUN/super-admin.conf" create clusterrolebinding kube-apiserver-kubelet-client \
    --clusterrole=system:kubelet-api-admin --user=kube-apiserver-kubelet-client >/dev/null
  start controller-manager
  start scheduler
}

pods() {
  start containerd
  within 20 test -S "$RUN/containerd.sock"
  load "$CLUSTER_CACHE/pause.tar"
  start kubelet
  start kube-proxy
}

# command_of DAEMON puts the daemon's command into the array command.
command_of() {
  case $1 in
    etcd)
      command=(etcd --data-dir "$RUN/etcd" --unsafe-no-fsync
        --listen-client-urls "$ETCD_URL" --advertise-client-urls "$ETCD_URL" --listen-peer-urls http://127.0.0.1:2380)
      ;;
    apiserver)
      command=(kube-apiserver --etcd-servers "$ETCD_URL" --advertise-address "$NODE_ADDRESS" --service-cluster-ip-range "$SERVICES"
        --authorization-mode "Node,RBAC" --enable-admission-plugins NodeRestriction --allow-privileged
        --client-ca-file "$RUN/pki/ca.crt" --tls-cert-file "$RUN/pki/apiserver.crt" --tls-private-key-file "$RUN/pki/apiserver.key"
        --kubelet-preferred-address-types InternalIP --kubelet-client-certificate "$RUN/pki/apiserver-kubelet-client.crt"
        --kubelet-client-key "$RUN/pki/apiserver-kubelet-client.key"
        --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$RUN/pki/sa.pub"
        --service-account-signing-key-file "$RUN/pki/sa.key"
        --requestheader-client-ca-file "$RUN/pki/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client
        --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group
        --requestheader-extra-headers-prefix X-Remote-Extra-
        --proxy-client-cert-file "$RUN/pki/front-proxy-client.crt" --proxy-client-key-file "$RUN/pki/front-proxy-client.key")
      ;;
    controller-manager)
      command=(kube-controller-manager --kubeconfig "$RUN/controller-manager.conf" --leader-elect=false
        --cluster-cidr "$PODS" --allocate-node-cidrs --service-cluster-ip-range "$SERVICES"
        --root-ca-file "$RUN/pki/ca.crt" --service-account-private-key-file "$RUN/pki/sa.key" --use-service-account-credentials
        --cluster-signing-cert-file "$RUN/pki/ca.crt" --cluster-signing-key-file "$RUN/pki/ca.key")
      ;;
    scheduler)
      command=(kube-scheduler --kubeconfig "$RUN/scheduler.conf" --leader-elect=false)
      ;;
    containerd)
      command=(containerd -c "$RUN/containerd.toml")
      ;;
    kubelet)
      command=(kubelet --config "$RUN/kubelet.yaml" --kubeconfig "$RUN/kubelet.conf" --node-ip "$NODE_ADDRESS"
        --hostname-override node --root-dir "$RUN/kubelet" --cert-dir "$RUN/kubelet-pki")
      ;;
    kube-proxy)
      command=(kube-proxy --kubeconfig "$RUN/admin.conf" --cluster-cidr "$PODS" --hostname-override node
        --proxy-mode nftables --conntrack-max-per-core 0)
      ;;
    *) die "there is no daemon $1: see '$0' for their names" ;;
  esac
}

# start DAEMON starts it in the node. Its process ID, as the node counts, is in $RUN/pids, and what it says in $RUN/log.
start() {
  local command
  command_of "$1"
  # shellcheck disable=SC2016
  setsid nsenter -t "$(cat "$RUN/node.pid")" --net --mount --pid -- env PATH="$BIN:$PATH" \
    sh -c 'echo $$ >"$0"; exec "$@"' "$RUN/pids/$1" "${command[@]}" >>"$RUN/log/$1.log" 2>&1 </dev/null &
}

# stop DAEMON kills it, and returns when it is gone.
stop() {
  local command pid
  command_of "$1"
  pid=$(cat "$RUN/pids/$1" 2>/dev/null) || return 0
  rm -f "$RUN/pids/$1"
  in_node kill -KILL "$pid" 2>/dev/null || return 0
  within 30 gone_in_node "$pid"
}

gone_in_node() { ! in_node kill -0 "$1"; }
gone() { ! kill -0 "$1"; }

# load FILE… imports images for pods with imagePullPolicy IfNotPresent or Never.
load() {
  local file
  for file in "$@"; do
    quietly "$BIN/ctr" -a "$RUN/containerd.sock" -n k8s.io images import "$file" || die "$file cannot be imported: see above"
  done
}

# within SECONDS COMMAND… tries a command until it succeeds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || die "waited in vain for: $*; the logs are in $RUN/log"
    sleep 0.2
  done
}

# --- what is outside of the namespaces --------------------------------------------------------------------------------------

# hierarchies are the roots of control groups: one of version 2, or one for each controller of version 1.
hierarchies() {
  local root
  for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
    if [ -f "$root/cgroup.procs" ] && mountpoint -q "$root" && [ ! -L "$root" ]; then echo "$root"; fi
  done
}

make_cgroups() { hierarchies | while read -r root; do mkdir -p "$root/$CGROUP"; done; }

remove_cgroups() {
  hierarchies | while read -r root; do
    if [ -d "$root/$CGROUP" ]; then find "$root/$CGROUP" -depth -type d -exec rmdir {} +; fi
  done
}

down() {
  local pid
  if alive; then
    pid=$(cat "$RUN/node.pid")
    # The kernel kills everything in the namespace before its first process is gone.
    kill -KILL "$pid"
    within 30 gone "$pid"
  fi
  within 10 remove_cgroups
  rm -rf --one-file-system "$RUN"
}

case ${1:-} in
  build) with_lock cluster build ;;
  apiserver) with_lock cluster build_apiserver ;;
  up | down) "$@" ;;
  exec)
    need_node
    in_node "${@:2}"
    ;;
  load | kubectl | start | stop)
    need_node
    "$@"
    ;;
  *)
    sed -n '2,/^#$/{/^#$/!s/^# //p}' "$0"
    sed -n '/^#   local.sh/s/^# //p' "$0"
    exit 2
    ;;
esac
