#!/usr/bin/env bash
# Builds a node image for kind, and kind, kubectl and helm beside it, on a machine that can pull no container image. It
# refuses to install anything, and to repeat a step whose inputs are the same as last time.
#
#   build.sh [IMAGE]   the image, in the docker daemon that DOCKER_HOST names; if not given, spanwire-kind-node with the
#                      version of Kubernetes, such as spanwire-kind-node:1.37.2
#   build.sh clients   kind, kubectl and helm only: needs neither root nor docker
#
# Programs come from the Go module proxy in the versions of tools/go.mod, tools/helm/go.mod and the go.mod files here;
# the rest comes from a Debian mirror. SPANWIRE_KIND_NODE names another folder than ~/.cache/spanwire/kind-node for all
# of it, MIRROR another mirror than the one that apt uses.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tools=$(dirname "$here")
work=${SPANWIRE_KIND_NODE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanwire/kind-node}
bin=$work/bin
stamps=$work/stamps
export GOFLAGS=-mod=readonly
export PATH=$PATH:/usr/sbin:/sbin

fail() {
    echo "build.sh: $*" >&2
    exit 1
}

check() { # PROGRAM...
    local program missing=()
    for program in "$@"; do
        command -v "$program" > /dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) || fail "missing: ${missing[*]}. Go: https://go.dev/dl. The others: apt-get install" \
        "--no-install-recommends docker.io debootstrap gcc binutils libc6-dev libseccomp-dev pkg-config jq"
}

# Runs once for the same contents of its inputs; a stamp is an input of the steps that build on it.
step() { # NAME FUNCTION INPUT...
    local name=$1 function=$2 inputs TIMEFORMAT="== $1: %0R s, %0U s of it computing"
    shift 2
    inputs=$(cat "$@" | sha256sum)
    if [[ $(cat "$stamps/$name" 2> /dev/null) == "$inputs" ]]; then
        echo "== $name: kept"
        return
    fi
    echo "== $name …"
    rm -f "$stamps/$name"
    time "$function" < /dev/null
    echo "$inputs" > "$stamps/$name"
}

# shellcheck source-path=SCRIPTDIR source=programs.sh
source "$here/programs.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
source "$here/system.sh"
# shellcheck source-path=SCRIPTDIR source=images.sh
source "$here/images.sh"
# shellcheck source-path=SCRIPTDIR source=node.sh
source "$here/node.sh"

check go
mkdir -p "$bin" "$stamps"
exec 9> "$work/lock"
flock --nonblock 9 || { echo "another build.sh is at work: waiting for it" && flock 9; }
go env GOVERSION GOARCH > "$work/go"
made_by=("$work/go" "$here/programs.sh")

step clients build_clients "${made_by[@]}" "$tools"/go.{mod,sum} "$tools"/helm/go.{mod,sum}
if [[ ${1:-} == clients ]]; then exit; fi

version=$(version_of "$tools" k8s.io/kubernetes)
image=${1:-spanwire-kind-node:${version#v}}
[[ $image == *:* && $image != *:latest ]] || fail "$image: give it a tag other than latest, else it is pulled when used"
((EUID == 0)) || fail "making a node's system needs root: sudo --preserve-env=HOME,PATH,XDG_CACHE_HOME,DOCKER_HOST …"
check docker debootstrap gcc strip pkg-config jq
pkg-config --exists libseccomp || fail "missing: libseccomp-dev"
docker version > /dev/null || fail "no docker daemon answers: start one, or eval \"\$($here/dockerd.sh start)\""

step kubernetes build_kubernetes "${made_by[@]}" "$tools"/go.{mod,sum}
step containers build_containers "${made_by[@]}" "$here"/go.{mod,sum}
step coredns build_coredns "${made_by[@]}" "$here"/coredns/{main.go,go.mod,go.sum}
step pause build_pause "$stamps/kubernetes"
step system make_system "$here/system.sh"
step images make_images "$here/images.sh" "$stamps"/{kubernetes,coredns,pause,system}
(cd "$here/node" && find . -type f | sort) > "$work/laid-over"
mapfile -t laid_over < <(sed "s|^\.|$here/node|" "$work/laid-over")
step node make_node "$here/"{node,runc-wrapper}.sh "$work/laid-over" "${laid_over[@]}" "$stamps"/{images,containers}

# The image itself says what it was made from, so any daemon can be asked whether it has it.
# shellcheck disable=SC2153
label="{{index .Config.Labels \"$LABEL\"}}"
if [[ $(docker image inspect --format "$label" "$image" 2> /dev/null) == "$(made_from)" ]]; then
    echo "== $image: kept"
else
    TIMEFORMAT="== $image: %0R s"
    time load_node "$image"
fi
echo "image: $image"
echo "programs: $bin/kind, $bin/kubectl, $bin/helm"
