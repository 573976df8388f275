#!/usr/bin/env bash
# Runs Python with what scripts/test-requirements.txt names. Where that can't be had (no PyPI), the script is skipped, visibly.
set -euo pipefail

if ! venv=$("$(dirname "${BASH_SOURCE[0]}")/test-venv.sh"); then
    echo "skipped $1: scripts/test-requirements.txt can't be installed here"
    exit 0
fi
exec "$venv/bin/python" "$@"
