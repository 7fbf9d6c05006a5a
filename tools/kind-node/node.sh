# What the file system of a node holds, as images/base/Dockerfile of kind has it; read by build.sh. It refuses kindnetd
# and volumes, for which it would need more images: node/ holds what stands in for them.
# shellcheck shell=bash disable=SC2154,SC2164

LABEL=dev.spanwire.made-from

kind_files() { echo "$(source_of "$tools" sigs.k8s.io/kind)/images/base/files"; }

made_from() { cut -d ' ' -f 1 "$stamps/node"; }

make_node() {
    local node=$work/node
    rm -rf --one-file-system "$node"
    cp --archive --reflink=auto "$work/system" "$node"
    add_files "$node"
    add_programs "$node"
    enable_services "$node"
    fill_containerd "$node"
}

add_files() { # NODE
    local node=$1
    # Files of the module cache are read-only.
    cp --recursive --no-target-directory --no-preserve=mode,ownership "$(kind_files)" "$node"
    chmod 755 "$node"/usr/local/bin/* "$node"/kind "$node"/kind/bin "$node"/kind/bin/*
    cp --recursive --no-target-directory --no-preserve=ownership "$here/node" "$node"
    mkdir -p "$node"/etc/kubernetes/manifests "$node"/etc/cni/net.d "$node"/opt/cni/bin
    printf '%s' "$(version_of "$tools" k8s.io/kubernetes)" > "$node/kind/version"
}

add_programs() { # NODE
    local node=$1
    install "$bin"/{kubeadm,kubelet,kubectl} "$node/usr/bin/"
    install "$bin"/{containerd,ctr,containerd-shim-runc-v2,crictl} "$node/usr/local/bin/"
    install "$bin"/{ptp,loopback,host-local,portmap} "$node/opt/cni/bin/"
    # What the machine's root lacks, the node's lacks as well.
    install "$bin/runc" "$node/usr/local/sbin/runc.real"
    install "$here/runc-wrapper.sh" "$node/usr/local/sbin/runc"
    chroot "$node" ctr oci spec |
        jq '.hooks.createContainer = [{path: "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
            > "$node/etc/containerd/cri-base.json"
    # OOM scores below the present one need CAP_SYS_RESOURCE.
    sed --in-place 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$node/etc/containerd/config.toml"
}

enable_services() { # NODE
    local node=$1 units=$1/lib/systemd/system
    rm -f "$units"/multi-user.target.wants/* "$node"/etc/systemd/system/*.wants/* "$units"/local-fs.target.wants/* \
        "$units"/sockets.target.wants/*{udev,initctl}* "$units"/basic.target.wants/* \
        "$units/sysinit.target.wants/systemd-tmpfiles-setup.service"
    # The kernel's messages are the machine's, not the node's.
    echo ReadKMsg=no >> "$node/etc/systemd/journald.conf"
    ln --symbolic --force /usr/lib/systemd/systemd "$node/sbin/init"
    chroot "$node" systemctl --quiet enable kubelet containerd undo-mount-hacks node-network
    # It would register formats of programs with the machine's kernel.
    chroot "$node" systemctl --quiet mask systemd-binfmt.service
}

# A containerd of this machine takes the images in, so that a node has them when it starts.
fill_containerd() { # NODE
    local state=$work/containerd pid
    rm -rf "$state"
    mkdir -p "$state" "$1/var/lib/containerd"
    cat > "$state/config.toml" << END
version = 3
root = "$1/var/lib/containerd"
state = "$state/run"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
  "io.containerd.nri.v1.nri"]
[grpc]
  address = "$state/socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/opt"
END
    "$bin/containerd" --config "$state/config.toml" > "$state/log" 2>&1 9>&- &
    pid=$!
    # shellcheck disable=SC2064
    trap "kill $pid 2> /dev/null || true" EXIT
    for _ in {1..100}; do
        [[ -S $state/socket ]] && break
        sleep 0.1
    done
    tar --create --directory "$work/images" . | "$bin/ctr" --address "$state/socket" --namespace k8s.io images import \
        --label=io.cri-containerd.pinned=pinned --no-unpack --digests - > "$state/imported" ||
        fail "containerd did not take the images in: $(tail -n 5 "$state/log")"
    kill $pid
    wait $pid || true
    trap - EXIT
}

# systemd ends on SIGRTMIN+3; SIGTERM makes it start again.
load_node() { # IMAGE
    local config before images=$work/node-image
    rm -rf "$images"
    mkdir "$images"
    config=$(jq --null-input --arg name "$LABEL" --arg from "$(made_from)" '{
        Env: ["container=docker", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        Entrypoint: ["/usr/local/bin/entrypoint", "/sbin/init"], StopSignal: "SIGRTMIN+3", Labels: {($name): $from}}')
    add_image "$images" "$1" "$work/node" "$config" --numeric-owner
    before=$(docker image inspect --format '{{.Id}}' "$1" 2> /dev/null) || true
    tar --create --directory "$images" . | docker load --quiet
    # What has lost its name to this one, unless a cluster runs on it.
    if [[ -n $before ]]; then docker rmi "$before" > /dev/null 2>&1 || true; fi
    rm -rf "$images"
}
