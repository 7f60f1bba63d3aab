# Fresh Debian releases in folders, for scripts that source this. They need root.
# shellcheck shell=sh

say() { printf '▸ %s\n' "$*" >&2; }
die() { printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 3; }

[ "$(id -u)" -eq 0 ] || die "making Debian releases: not root" "run it as root"
command -v debootstrap >/dev/null || die "debootstrap is missing" "apt-get install debootstrap"
project=$(pwd)

# Where this machine's own apt has packages of a label from: Debian, Debian-Security.
mirror() {
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Label: $1" | sort -u | head -n 1
}

# Runs a command in a tree. The mounts are in a namespace of their own, which ends with it.
inside() {
    unshare --mount --propagation private sh -eu -c '
        project=$1 tree=$2
        shift 2
        mount --bind "$tree" "$tree"
        mount -t proc proc "$tree/proc"
        mount --rbind /dev "$tree/dev"
        mount --rbind /sys "$tree/sys"
        mkdir -p "$tree$project"
        mount --bind "$project" "$tree$project"
        exec chroot "$tree" env HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' inside "$project" "$@"
}

# Makes a release as TREE.new: make_release SUITE TREE. The caller installs what it needs and renames it.
make_release() {
    suite=$1 tree=$2
    mkdir -p "$(dirname "$tree")"
    rm -rf "$tree.new"
    debootstrap --variant=minbase "$suite" "$tree.new" "$(mirror Debian)" >"$tree.log" 2>&1 ||
        die "debootstrap failed" "see $tree.log"
    security=$(mirror Debian-Security)
    if [ "$suite" != sid ] && [ -n "$security" ]; then
        echo "deb $security $suite-security main" >"$tree.new/etc/apt/sources.list.d/security.list"
        inside "$tree.new" apt-get -q update >>"$tree.log" 2>&1 || die "apt-get update failed" "see $tree.log"
    fi
    no_services "$tree"
}

# Packages start nothing in TREE.new.
no_services() {
    printf '#!/bin/sh\nexit 101\n' >"$1.new/usr/sbin/policy-rc.d"
    chmod 755 "$1.new/usr/sbin/policy-rc.d"
    mkdir -p "$1.new/etc/postgresql-common"
    echo 'create_main_cluster = false' >"$1.new/etc/postgresql-common/createcluster.conf"
}

# Installs packages into TREE.new: install_in TREE PACKAGE...
install_in() {
    tree=$1
    shift
    inside "$tree.new" env DEBIAN_FRONTEND=noninteractive \
        apt-get -y -q --no-install-recommends -o Dpkg::Options::=--force-confold install "$@" \
        >>"$tree.log" 2>&1 || die "installing $* failed" "see $tree.log"
}
