# Which Go programs are built and how; read by build.sh. It refuses versions that no go.mod file pins.
# shellcheck shell=bash disable=SC2154,SC2164

version_of() { (cd "$1" && go list -m -f '{{.Version}}' "$2"); } # FOLDER MODULE

source_of() { (cd "$1" && go mod download -json "$2" | jq -r .Dir); } # FOLDER MODULE

# Everything is linked statically, so the node may have another C library than this machine. The flags that compilation
# depends on (-trimpath, CGO_ENABLED) are those of crates/testkit/src/control_plane/assets/build.rs: what the tests have
# built is not compiled again, and the other way round.
go_build() { # FOLDER OUTPUT LINK-FLAGS PACKAGE...
    local folder=$1 output=$2 link=$3
    shift 3
    (cd "$folder" && CGO_ENABLED=0 nice go build -trimpath -buildvcs=false -ldflags "-s -w $link" -o "$output" "$@")
}

# Without these Kubernetes calls itself v0.0.0, and kubeadm refuses it.
kubernetes_link() {
    local version minor variable='-X k8s.io/component-base/version.git'
    version=$(version_of "$tools" k8s.io/kubernetes)
    minor=${version#v1.}
    echo "${variable}Version=$version ${variable}Major=1 ${variable}Minor=${minor%%.*} ${variable}TreeState=clean"
}

build_clients() {
    local helm=helm.sh/helm/v4
    go_build "$tools/helm" "$bin/helm" "-X $helm/internal/version.version=$(version_of "$tools/helm" $helm)" \
        $helm/cmd/helm
    go_build "$tools" "$bin/kind" '' sigs.k8s.io/kind
    go_build "$tools" "$bin/kubectl" "$(kubernetes_link)" k8s.io/kubernetes/cmd/kubectl
}

build_kubernetes() {
    go_build "$tools" "$bin/" "$(kubernetes_link)" \
        k8s.io/kubernetes/cmd/{kube-apiserver,kubeadm,kubelet,kube-controller-manager,kube-scheduler,kube-proxy}
    go_build "$tools" "$bin/etcd" '' go.etcd.io/etcd/server/v3
}

# containerd, runc, crictl and the CNI plugins.
build_containers() {
    local containerd=github.com/containerd/containerd/v2 runc=github.com/opencontainers/runc
    local crictl=sigs.k8s.io/cri-tools plugins=github.com/containernetworking/plugins/plugins
    (
        # Snapshotters that a node does not use.
        export GOFLAGS="$GOFLAGS -tags=no_aufs,no_zfs,no_btrfs,no_devmapper"
        go_build "$here" "$bin/" "-X $containerd/version.Version=$(version_of "$here" $containerd)" \
            $containerd/cmd/{containerd,ctr,containerd-shim-runc-v2}
    )
    go_build "$here" "$bin/crictl" "-X $crictl/pkg/version.Version=$(version_of "$here" $crictl)" $crictl/cmd/crictl
    go_build "$here" "$bin/" '' $plugins/main/{ptp,loopback} $plugins/ipam/host-local $plugins/meta/portmap
    # The only one in C as well: kubeadm's static pods ask for the seccomp profile RuntimeDefault.
    (
        cd "$here"
        CGO_ENABLED=1 nice go build -trimpath -tags seccomp,netgo,osusergo -o "$bin/runc" \
            -ldflags "-s -w -extldflags -static -X main.version=$(version_of "$here" $runc)" $runc
    )
}

build_coredns() { go_build "$here/coredns" "$bin/coredns" '' .; }

build_pause() {
    gcc -Os -Wall -static -DVERSION=kind-node -o "$bin/pause" \
        "$(source_of "$tools" k8s.io/kubernetes)/build/pause/linux/pause.c"
    strip "$bin/pause"
}
