#!/usr/bin/env bash
# Installs what Martlet needs to build (and with --test, to be tested and linted; with --deb, to be packaged; with --torture, for the torture rig) from Debian's or Ubuntu's packages.
# Does nothing, quickly, when everything is there. Swift itself is not a Debian package: it is checked, not installed.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/install-dependencies.sh [--test] [--deb] [--torture]
  --test     also install what the tests and the linter use
  --deb      also install what makes and tries the Debian package
  --torture  also install what shifts clocks and cuts networks
TEXT
}

with_tests=false
with_deb=false
with_torture=false
for argument in "$@"; do
    case "$argument" in
        --test) with_tests=true ;;
        --deb) with_deb=true ;;
        --torture) with_torture=true ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 64 ;;
    esac
done

if ! command -v swift >/dev/null; then
    cat >&2 <<'TEXT'
error: no `swift` on the PATH. Martlet needs Swift 6.2 or later.
  Install it from https://www.swift.org/install/linux (swiftly installs and updates it), or
  work inside the official image: docker run --rm -it -v "$PWD:/src" -w /src swift:6.3-bookworm bash
TEXT
    exit 1
fi

# One line a package: its name, then a command that succeeds where what we need of it is there, whoever installed it.
required() {
    cat <<'TEXT'
libsqlite3-dev   pkg-config --exists sqlite3
libssl-dev       pkg-config --exists libcrypto
librdkafka-dev   pkg-config --exists rdkafka
pkg-config       command -v pkg-config
sqlite3          command -v sqlite3
python3          command -v python3
python3-venv     python3 -c 'import ensurepip, venv'
git              command -v git
make             command -v make
TEXT
    if $with_tests; then
        echo "shellcheck       command -v shellcheck"
        echo "mandoc           command -v mandoc"
        echo "libcurl4         python3 -c 'import ctypes; ctypes.CDLL(\"libcurl.so.4\")'"
        echo "prometheus       command -v prometheus && command -v promtool"
        echo "chromium         command -v chromium"
        echo "tmux             command -v tmux"
        echo "postgresql       ls /usr/lib/postgresql/*/bin/initdb || command -v initdb"
    fi
    if $with_deb; then
        echo "dpkg-dev         command -v dpkg-shlibdeps"
        echo "mmdebstrap       command -v mmdebstrap"
    fi
    if $with_torture; then
        echo "faketime         command -v faketime"
        echo "iproute2         command -v ip"
    fi
}

missing=()
while read -r package check; do
    bash -c "$check" >/dev/null 2>&1 </dev/null || missing+=("$package")
done < <(required)

if ((${#missing[@]} == 0)); then
    exit 0
fi

if ! command -v apt-get >/dev/null; then
    echo "error: missing: ${missing[*]} (Debian's names), and there is no apt-get here. Install them and try again." >&2
    exit 1
fi

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "error: missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

echo "installing with apt-get: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    # The tests start servers of their own. Debian's package would create one more, and start it as a service.
    install postgresql-common
    "${as_root[@]}" sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
fi
install "${missing[@]}"
