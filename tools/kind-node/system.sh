# The Debian that a node stands on; read by build.sh. It refuses anything of ours, so that a change of a node does not
# fetch Debian again.
# shellcheck shell=bash disable=SC2154

# Not newer while machines with cgroup v1 are about: later systemd may not start there.
SUITE=bookworm
PACKAGES=(systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod libseccomp2 ca-certificates curl jq
    procps socat iputils-ping)

mirror() {
    local found
    # shellcheck disable=SC2016
    found=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2> /dev/null |
        awk -v suite=$SUITE '$2 == suite && !seen { print $1; seen = 1 }')
    echo "${MIRROR:-${found:-https://deb.debian.org/debian}}"
}

# Debian with a node's packages, and nothing of ours.
make_system() {
    local system=$work/system
    rm -rf --one-file-system "$system"
    debootstrap --variant=minbase --include="$(IFS=, && echo "${PACKAGES[*]}")" $SUITE "$system" "$(mirror)" \
        > "$work/debootstrap.log" || fail "debootstrap failed: $(tail -n 5 "$work/debootstrap.log")"
    rm -rf "$system"/var/cache/apt/archives/*.deb "$system"/var/lib/apt/lists/* "$system"/var/log/* \
        "$system"/usr/share/{doc,man,locale}/* "$system"/etc/{apt/sources.list,resolv.conf,hostname}
}
