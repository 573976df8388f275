#!/bin/sh
# Prepares the store of a node in compose.yaml on its first start, then runs the agent.
set -eu

store=/data/store.sqlite
if [ ! -e /data/prepared ]; then
    sqlite3 "$store" </etc/martlet/schema.sql
    martlet init "$store"
    martlet attach "$store"
    touch /data/prepared
fi
exec martlet run --store "$store" --bootstrap-servers "$BOOTSTRAP_SERVERS" --topic "$TOPIC" --name "$NODE_NAME" \
    ${HTTP_LISTEN:+--http "$HTTP_LISTEN"}
