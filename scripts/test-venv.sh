#!/usr/bin/env bash
# Prints the folder of a Python virtual environment with what scripts/test-requirements.txt names, and makes it first
# where it is missing or out of date.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements="$root/scripts/test-requirements.txt"
venv="$root/.build/test-venv"

if ! cmp -s "$requirements" "$venv/installed.txt"; then
    mkdir -p "$root/.build"
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
    cp "$requirements" "$venv/installed.txt"
fi
echo "$venv"
