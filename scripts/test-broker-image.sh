#!/usr/bin/env bash
# Makes the image of a small broker that stands in for Apache Kafka's in the compose files, and prints its name:
#
#   export MARTLET_KAFKA_IMAGE=$(scripts/test-broker-image.sh)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=martlet-test-broker
venv=$(scripts/test-venv.sh)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp docker/test-broker/* "$context"
cp "$venv"/lib/python3*/site-packages/noida_db/noida-db "$context"
chmod 0755 "$context"/*.sh "$context/noida-db"
docker build --quiet --tag "$name" "$context" >&2
echo "$name"
