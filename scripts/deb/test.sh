#!/usr/bin/env bash
# Installs the Debian package in a clean root that has nothing but Debian's base, uses it, upgrades it, and removes it:
# scripts/deb/test.sh BINARY. As root; asks Debian's mirror for the base.
set -euo pipefail

if (($# != 1)); then
    echo "usage: scripts/deb/test.sh BINARY" >&2
    exit 64
fi
if ((EUID != 0)); then
    echo "error: a clean root takes root: sudo scripts/deb/test.sh $1" >&2
    exit 1
fi
# In namespaces of its own: what is mounted and started here ends with this script, however that ends.
if [[ $$ != 1 ]]; then exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"; fi
binary=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")

work=$(mktemp -d)
root=$work/root
started=()
finish() {
    if ((${#started[@]})); then
        kill -9 "${started[@]}" 2>/dev/null || true
        wait "${started[@]}" 2>/dev/null || true
    fi
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT

step() { printf '== %s\n' "$*"; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
as_martlet() { inside runuser -u martlet -- "$@"; }
# In the background, in the place of the shell that begins it: what is sent to $! reaches the agent.
agent() {
    exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        setpriv --reuid=martlet --regid=martlet --init-groups martlet run --config "/etc/martlet/$1.yaml"
}
fail() { echo "failed: $*" >&2; exit 1; }
# Tries a command until it succeeds, for a minute.
eventually() {
    local deadline=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || fail "never: $*"
        sleep 0.2
    done
}

step "packages of two versions"
old=$(scripts/deb/build.sh "$binary" "$work/old")
MARTLET_DEB_VERSION=$("$binary" --version)+upgrade
export MARTLET_DEB_VERSION
new=$(scripts/deb/build.sh "$binary" "$work/new")
unset MARTLET_DEB_VERSION

step "a clean root of Debian's $release"
mmdebstrap --quiet --variant=minbase "$release" "$root"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
! inside sh -c 'command -v swift' >/dev/null || fail "the root has Swift"

step "install"
cp "$old" "$root/tmp/old.deb"
inside apt-get -qq update
inside apt-get -qq install -y --no-install-recommends /tmp/old.deb sqlite3 >/dev/null 2>"$work/install.log" \
    || fail "$(cat "$work/install.log")"
[[ $(inside martlet --version) == "$("$binary" --version)" ]] || fail "another version"
[[ $(inside stat -c '%U:%G %a' /var/lib/martlet) == "martlet:martlet 2770" ]] || fail "the folder of the store"
[[ $(inside stat -c '%U:%G %a' /etc/martlet/martlet.yaml) == "root:martlet 640" ]] || fail "the configuration"
inside test -s /usr/share/man/man1/martlet-run.1.gz || fail "no manual"
if command -v systemd-analyze >/dev/null; then
    # By this machine's systemd: the root has none.
    sed "s:/usr/bin/martlet:$root/usr/bin/martlet:" "$root/usr/lib/systemd/system/martlet.service" > "$work/martlet.service"
    systemd-analyze verify --man=no "$work/martlet.service" || fail "the unit"
fi

step "what it says where nothing is configured yet"
if as_martlet martlet run --config /etc/martlet/martlet.yaml 2>"$work/unconfigured"; then fail "it ran"; fi
grep -q bootstrapServers "$work/unconfigured" || fail "$(cat "$work/unconfigured")"

step "two nodes"
port=$((20000 + RANDOM % 20000))
sed -i "s/^  bootstrapServers: \[\]/  bootstrapServers: [127.0.0.1:$port]/" "$root/etc/martlet/martlet.yaml"
sed -e 's:/store.sqlite:/other.sqlite:' "$root/etc/martlet/martlet.yaml" > "$root/etc/martlet/other.yaml"
chmod 0644 "$root/etc/martlet/other.yaml"
inside martlet broker --port "$port" >"$work/broker.log" 2>&1 &
started+=($!)
eventually grep -q listening "$work/broker.log"
for store in store other; do
    as_martlet sqlite3 "/var/lib/martlet/$store.sqlite" "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)"
    as_martlet martlet attach "/var/lib/martlet/$store.sqlite" >/dev/null
done
agent martlet >"$work/store.log" 2>&1 &
store_agent=$!
started+=($!)
agent other >"$work/other.log" 2>&1 &
other_agent=$!
started+=($!)
# Waits where an agent writes at the same moment, as programs do.
query() { as_martlet sqlite3 -cmd ".timeout 10000" "/var/lib/martlet/$1.sqlite" "$2"; }
insert() { query "$1" "INSERT INTO note(text) VALUES ('$2')"; }
has() { query "$1" "SELECT text FROM note" | grep -qx "$2"; }
insert store first
eventually has other first

step "upgrade"
# What the unit's restart does where there is systemd: the new program opens the store of the old one.
cp "$new" "$root/tmp/new.deb"
inside dpkg -i /tmp/new.deb >"$work/upgrade.log" 2>&1 || fail "$(cat "$work/upgrade.log")"
grep -q "127.0.0.1:$port" "$root/etc/martlet/martlet.yaml" || fail "the configuration was overwritten"
kill -TERM "$store_agent"
wait "$store_agent" || fail "the agent of before did not stop in good order"
agent martlet >"$work/store.log" 2>&1 &
store_agent=$!
started+=($!)
insert other second
eventually has store second

step "remove, and purge"
for started_agent in "$store_agent" "$other_agent"; do
    kill -TERM "$started_agent"
    wait "$started_agent" || fail "an agent did not stop in good order"
done
inside apt-get -qq purge -y martlet >/dev/null 2>"$work/purge.log" || fail "$(cat "$work/purge.log")"
! inside sh -c 'command -v martlet' >/dev/null || fail "the command is still there"
[[ ! -e $root/etc/martlet/martlet.yaml ]] || fail "the configuration is still there"
inside test -s /var/lib/martlet/store.sqlite || fail "the store is gone"
has store second || fail "the store lost a row"

echo "The package can be installed, used, upgraded and removed."
