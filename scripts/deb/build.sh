#!/usr/bin/env bash
# Makes a Debian package of the release build: scripts/deb/build.sh BINARY FOLDER. Prints where it is.
#
# MARTLET_DEB_VERSION sets the version of the package; without it, it is the command's.
set -euo pipefail

if (($# != 2)); then
    echo "usage: scripts/deb/build.sh BINARY FOLDER" >&2
    exit 64
fi
binary=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=${MARTLET_DEB_VERSION:-$("$binary" --version)}
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

put() { install -D -m "$1" "$2" "$root/$3"; }

put 0755 "$binary" usr/bin/martlet
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/martlet"

put 0644 docker/martlet.service usr/lib/systemd/system/martlet.service
# The package makes the user, and has the command elsewhere.
sed -i -e '1,/^\[Unit\]/{/^#/d}' -e 's:/usr/local/bin/:/usr/bin/:' "$root/usr/lib/systemd/system/martlet.service"

# Others may not read it: it may hold a password.
put 0640 config/martlet.yaml etc/martlet/martlet.yaml
sed -i '0,/^  path: null$/s#^  path: null$#  path: /var/lib/martlet/store.sqlite#' "$root/etc/martlet/martlet.yaml"
grep -q '^  path: /var/lib/martlet/store.sqlite$' "$root/etc/martlet/martlet.yaml"

completions=$work/completions
for shell in bash zsh fish; do "$binary" --generate-completion-script "$shell" > "$completions.$shell"; done
put 0644 "$completions.bash" usr/share/bash-completion/completions/martlet
put 0644 "$completions.zsh" usr/share/zsh/vendor-completions/_martlet
put 0644 "$completions.fish" usr/share/fish/vendor_completions.d/martlet.fish

export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
scripts/manpages.py "$binary" "$root/usr/share/man/man1" >/dev/null
gzip -9n "$root"/usr/share/man/man1/*.1

documents=usr/share/doc/martlet
put 0644 README.md $documents/README.md
put 0644 SECURITY.md $documents/SECURITY.md
for document in $(git ls-files docs proto docker/observability); do put 0644 "$document" "$documents/$document"; done
gzip -9nc CHANGELOG.md > "$work/changelog.gz"
put 0644 "$work/changelog.gz" $documents/changelog.gz
cat > "$work/copyright" <<'TEXT'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: martlet

Files: *
Copyright: the authors of Martlet
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
TEXT
put 0644 "$work/copyright" $documents/copyright

for script in postinst prerm postrm; do install -D -m 0755 "scripts/deb/$script" "$root/DEBIAN/$script"; done
echo /etc/martlet/martlet.yaml > "$root/DEBIAN/conffiles"

# The libraries that the binary asks for, in the versions that have what it asks for.
mkdir "$work/debian"
printf 'Source: martlet\n\nPackage: martlet\nArchitecture: any\n' > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/martlet" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[[ -n "$depends" ]] || { echo "error: dpkg-shlibdeps does not know the binary's libraries" >&2; exit 1; }

cat > "$root/DEBIAN/control" <<TEXT
Package: martlet
Version: $version
Architecture: $architecture
Maintainer: The authors of Martlet <martlet@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends, passwd
Recommends: ca-certificates, libcurl4
Suggests: sqlite3
Section: database
Priority: optional
Description: multi-device sync for SQLite over Kafka
 Each node keeps a SQLite store with a history of its changes, whichever program
 writes them. The agent publishes what is new to a Kafka topic, and applies what
 others have published: the later edit of each column wins, on every node.
 .
 This package has the command, a systemd service for one store, completions,
 manual pages and the documentation.
TEXT

package=$folder/martlet_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
