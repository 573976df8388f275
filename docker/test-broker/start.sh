#!/bin/sh
# Listens under the name that it has in the compose files, and tells clients that name.
set -eu
exec noida-db start --only kafka --kafka-port 9092 --host kafka --data-dir /var/lib/kafka/data
