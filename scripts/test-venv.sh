#!/usr/bin/env bash
# Prints the folder of a Python virtual environment with what a list of requirements names, and makes it first where it is
# missing or out of date.
#   scripts/test-venv.sh           what the tests need: scripts/test-requirements.txt
#   scripts/test-venv.sh brokers   another broker, and another librdkafka: scripts/broker-requirements.txt
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
    "") list="test" ;;
    brokers) list="broker" ;;
    *) echo "usage: scripts/test-venv.sh [brokers]" >&2; exit 64 ;;
esac
requirements="$root/scripts/$list-requirements.txt"
venv="$root/.build/$list-venv"

if ! cmp -s "$requirements" "$venv/installed.txt"; then
    mkdir -p "$root/.build"
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
    cp "$requirements" "$venv/installed.txt"
fi
echo "$venv"
