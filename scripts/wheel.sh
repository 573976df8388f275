#!/usr/bin/env bash
# Makes a wheel of the Python package with the command inside: scripts/wheel.sh BINARY FOLDER. Prints where it is.
# It runs on this platform, with the libraries that the command needs: SQLite and librdkafka.
set -euo pipefail

if (($# != 2)); then
    echo "usage: scripts/wheel.sh BINARY FOLDER" >&2
    exit 64
fi
binary=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=$(scripts/test-venv.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git ls-files -z --cached --others --exclude-standard python | xargs -0 cp --parents -t "$work"
cp LICENSE "$work/python"
install -D -m 0755 "$binary" "$work/python/martlet/_bin/martlet"
strip --strip-debug "$work/python/martlet/_bin/martlet"
mkdir "$work/wheel"
"$venv/bin/pip" --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --no-index \
    --wheel-dir "$work/wheel" "$work/python"
cp "$work"/wheel/*.whl "$folder"
for wheel in "$work"/wheel/*.whl; do echo "$folder/$(basename "$wheel")"; done
