# Shared by the scripts in this folder: sourced, never run.
# shellcheck shell=bash

# The scripts may be called from anywhere; they work at the top of the repository.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say()  { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

# Cargo's target folder.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

# Whether packages can be installed; sets `as_root` to the prefix for it.
can_install() {
    have apt-get || return 1
    if [ "$(id -u)" = 0 ]; then
        as_root=()
    elif have sudo && sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        return 1
    fi
}

# there PATTERN - for install_missing, of what is no command (headers, modules): names a command that is there if a file
# matches, else the pattern, which is none.
there() { if compgen -G "$1" >/dev/null; then echo true; else printf '%s\n' "$1"; fi; }

# install_missing COMMAND:PACKAGE... - installs the packages whose command is not there and says so.
# Fails, naming the packages, when it may not. What is there already is left alone.
install_missing() {
    local pair missing=()
    for pair in "$@"; do
        # /usr/sbin is not in every user's path, yet servers live there.
        PATH="$PATH:/usr/sbin:/sbin" have "${pair%%:*}" || missing+=("${pair#*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    can_install || fail "please install: ${missing[*]} (this needs root, or sudo without a password, and apt-get)"
    say "installing from the distribution: ${missing[*]}"
    # A fresh machine or container has no package lists, an old one has stale lists: both are mended by an update.
    apt_install "${missing[@]}" 2>/dev/null || {
        "${as_root[@]}" apt-get update -qq
        apt_install "${missing[@]}"
    }
}

apt_install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# have_tool NAME - a tool from crates.io that is no part of a toolchain: the one in the path, or else a copy that is
# built below the target folder, once.
# have_tool NAME ARGUMENT... - the same with arguments for `cargo install`, such as a version that is not the newest.
have_tool() {
    PATH="$PATH:$(realpath -m "$(target_dir)")/tools/bin"
    have "$1" && return 0
    say "installing $1 into $(target_dir)/tools"
    cargo install --quiet --locked --root "$(target_dir)/tools" "$@" ||
        fail "cannot install $1, which is needed for this: cargo install $1 --locked"
}

# go_tool NAME PACKAGE@VERSION - a tool that is written in Go, built below the target folder unless it is there already.
# Without it some tests are left out, and say so: that is no failure.
# go_tool NAME PACKAGE FOLDER - the same in the versions that go.mod in the folder names, for a tool that names none.
go_tool() {
    local bin
    bin="$(realpath -m "$(target_dir)")/tools/bin"
    [ -x "$bin/$1" ] && return 0
    if ! have go; then
        can_install || { say "without Go, the tests that need $1 are left out"; return 0; }
        install_missing go:golang-go
    fi
    say "installing $1 into $(target_dir)/tools"
    # One cache for all tools, which share modules; what is in it is of no use later, so setup-tests removes it.
    local cache
    cache="$(realpath -m "$(target_dir)")/go"
    (
        cd "${3:-.}"
        GOBIN="$bin" GOPATH="$cache/path" GOCACHE="$cache/cache" GOFLAGS=-modcacherw go install "$2"
    ) ||
        say "cannot install $1: the tests that need it are left out (go install $2)"
}

# node_packages NAME FOLDER - the packages that the lock file in the folder names, from npm, below the target folder unless
# they are there already. Without them some tests are left out, and say so: that is no failure.
node_packages() {
    local to
    to="$(realpath -m "$(target_dir)")/tools/$1"
    cmp -s "$2/package-lock.json" "$to/package-lock.json" && [ -d "$to/node_modules" ] && return 0
    if ! have node || ! have npm; then
        can_install || { say "without Node.js and npm, the tests that need $1 are left out"; return 0; }
        install_missing node:nodejs npm:npm
    fi
    say "installing $1 into $(target_dir)/tools"
    rm -rf "$to"
    mkdir -p "$to"
    cp "$2/package.json" "$2/package-lock.json" "$to"
    npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || {
        rm -rf "$to"
        say "cannot install $1: the tests that need it are left out (npm ci in $2)"
    }
}

# The version of the workspace.
workspace_version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml; }

# The date of what is packed: that of the last commit, unless SOURCE_DATE_EPOCH says another.
use_source_date() {
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
    [ -n "$SOURCE_DATE_EPOCH" ] || fail "these sources are no git clone: say in SOURCE_DATE_EPOCH when they were changed last, in seconds since 1970"
    export SOURCE_DATE_EPOCH
}

# build_reproducibly - from here on, compilers write neither the folder of the sources nor this user's into what they make.
build_reproducibly() {
    use_source_date
    local pair
    # The last prefix that fits wins.
    for pair in "$PWD=/baton" "$(realpath -m "$(target_dir)")=/baton/target" "${CARGO_HOME:-$HOME/.cargo}=/cargo" \
        "$(rustc --print sysroot)/lib/rustlib/src/rust=/rust"; do
        RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$pair"
        CFLAGS="${CFLAGS:-} -ffile-prefix-map=$pair"
    done
    export RUSTFLAGS CFLAGS CARGO_INCREMENTAL=0
}

# date_files FOLDER - files say when the sources were changed, not when they were packed.
date_files() { find "$1" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0 -r touch --no-dereference --date="@$SOURCE_DATE_EPOCH"; }

# copy_on_write_root FOLDER - mounts a copy-on-write layer of this machine's file system, in memory, and names its root in `root`.
# What is written stands in FOLDER/upper. Needs a mount namespace of its own, and ends with it.
copy_on_write_root() {
    mkdir -p "$1"
    mount -t tmpfs baton-test "$1"
    mkdir "$1/upper" "$1/work" "$1/root"
    mount -t overlay baton-test -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || return
    root=$1/root
}

# A free TCP port of 127.0.0.1, the wished one if possible.
free_port() {
    local port=$1
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    printf '%s\n' "$port"
}
