# How a folder becomes an image, and which images a node starts its control plane from; read by build.sh. It refuses
# to take part in any registry: an image is two files and a list, in the format of `docker save`.
# shellcheck shell=bash disable=SC2154,SC2164

# Adds an image to a folder of images. CONFIG is the part of its configuration that says how it is run.
add_image() { # IMAGES NAME FOLDER CONFIG TAR-OPTION...
    local images=$1 name=$2 folder=$3 config=$4 layer sum
    shift 4
    tar --create --directory "$folder" --file "$images/unfinished" --sort=name "$@" .
    layer=$(sha256sum < "$images/unfinished" | cut -d ' ' -f 1)
    mv "$images/unfinished" "$images/$layer.tar"
    jq --null-input --compact-output --arg architecture "$(go env GOARCH)" --arg layer "sha256:$layer" \
        --argjson config "$config" \
        '{architecture: $architecture, os: "linux", config: $config, rootfs: {type: "layers", diff_ids: [$layer]}}' \
        > "$images/unfinished"
    sum=$(sha256sum < "$images/unfinished" | cut -d ' ' -f 1)
    mv "$images/unfinished" "$images/$sum.json"
    [[ -e $images/manifest.json ]] || echo '[]' > "$images/manifest.json"
    jq --arg name "$name" --arg config "$sum.json" --arg layer "$layer.tar" \
        '. + [{Config: $config, RepoTags: [$name], Layers: [$layer]}]' "$images/manifest.json" > "$images/unfinished"
    mv "$images/unfinished" "$images/manifest.json"
}

# Copies programs and libraries of the node's system with the libraries that they need.
copy_with_libraries() { # FOLDER FILE...
    local folder=$1 file
    shift
    for file in "$@"; do
        echo "$file"
        chroot "$work/system" ldd "$file" 2> /dev/null | grep -o '/[^ ]*' || true
    done | sort -u | while read -r file; do
        # /lib is a link to usr/lib.
        file=${file/#\/lib/\/usr\/lib}
        mkdir -p "$folder$(dirname "$file")"
        cp --dereference "$work/system$file" "$folder$file"
    done
}

# kube-proxy runs nft, or iptables, whichever mode it is told.
add_packet_filter() { # FOLDER
    local folder=$1 name extensions
    mkdir -p "$folder/usr/sbin"
    ln -s usr/lib "$folder/lib"
    ln -s usr/lib64 "$folder/lib64"
    mapfile -t extensions < <(cd "$work/system" && find usr/lib/*/xtables -name '*.so' -printf '/%p\n')
    copy_with_libraries "$folder" /usr/sbin/nft /usr/sbin/xtables-nft-multi /usr/sbin/conntrack "${extensions[@]}"
    for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
        ln -s xtables-nft-multi "$folder/usr/sbin/$name"
    done
}

# The names are those that kubeadm and containerd will ask for. The versions inside are those of the go.mod files: etcd
# may be a patch release newer than its name says.
make_images() {
    local names name program folder config
    mapfile -t names < <("$bin/kubeadm" config images list \
        --kubernetes-version "$(version_of "$tools" k8s.io/kubernetes)" | grep -v /pause:)
    names+=("$(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$(kind_files)/etc/containerd/config.toml")")
    rm -rf "$work/images" "$work/folders"
    mkdir -p "$work/images"
    for name in "${names[@]}"; do
        program=${name##*/}
        program=${program%%:*}
        folder=$work/folders/$program
        mkdir -p "$folder"/{etc,tmp}
        chmod 1777 "$folder/tmp"
        case $program in
            pause | coredns)
                cp "$bin/$program" "$folder/"
                config=$(jq --null-input --arg program "/$program" '{Entrypoint: [$program]}')
                ;;
            *)
                install -D "$bin/$program" "$folder/usr/local/bin/$program"
                config='{"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}'
                ;;
        esac
        if [[ $program == kube-proxy ]]; then add_packet_filter "$folder"; fi
        add_image "$work/images" "$name" "$folder" "$config" --owner=0 --group=0
    done
    rm -rf "$work/folders"
}
