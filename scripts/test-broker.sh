#!/usr/bin/env bash
# Gives the tests a Kafka broker. The first of these that can be had:
#   1. the one that MARTLET_TEST_BOOTSTRAP names (it is left alone),
#   2. Apache Kafka 3.3 or later at KAFKA_HOME: one KRaft node in a temporary folder,
#   3. noida-db, a small Kafka-compatible broker, from PyPI.
# Without any, `run` says so and runs the command all the same: the tests that need a broker then skip visibly.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state="$root/.build/test-broker"
ready_deadline_seconds=60

usage() {
    cat <<'TEXT'
usage: scripts/test-broker.sh start            start a broker, print `export MARTLET_TEST_BOOTSTRAP=...`
       scripts/test-broker.sh stop             stop the one that `start` started, remove its data
       scripts/test-broker.sh run -- COMMAND   start, run the command with MARTLET_TEST_BOOTSTRAP set, stop
TEXT
}

note() { echo "test-broker: $*" >&2; }

free_port() {
    (cd "$root/Tests/scenarios" && python3 -c 'from shared.brokers import free_port; print(free_port())')
}

# Starts a command in a process group of its own, so that the whole group can be stopped. Sets `pid`.
launch() {
    setsid "$@" >"$folder/broker.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$folder/pid"
}

launch_apache_kafka() {
    local controller_port
    controller_port=$(free_port)
    cat >"$folder/server.properties" <<TEXT
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller_port
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$folder/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
TEXT
    "$KAFKA_HOME/bin/kafka-storage.sh" format --config "$folder/server.properties" \
        --cluster-id "$("$KAFKA_HOME/bin/kafka-storage.sh" random-uuid)" >"$folder/format.log" 2>&1 || return 1
    LOG_DIR="$folder/logs" launch "$KAFKA_HOME/bin/kafka-server-start.sh" "$folder/server.properties"
}

launch_noida_db() {
    local venv
    venv=$("$root/scripts/test-venv.sh") || return 1
    launch "$venv/bin/noida-db" start --only kafka --kafka-port "$port" --data-dir "$folder/data"
}

wait_until_ready() {
    local deadline=$((SECONDS + ready_deadline_seconds))
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        if ! kill -0 "$pid" 2>/dev/null || ((SECONDS >= deadline)); then
            note "the broker did not start; the end of its log:"
            tail -n 20 "$folder/broker.log" >&2
            return 1
        fi
        sleep 0.1
    done
}

# Starts a broker whose files live in $1. Sets `bootstrap`. Fails where none can be had.
start_in() {
    folder=$1
    bootstrap=${MARTLET_TEST_BOOTSTRAP:-}
    if [[ -n "$bootstrap" ]]; then
        return 0
    fi
    port=$(free_port)
    if [[ -n "${KAFKA_HOME:-}" ]]; then
        note "starting Apache Kafka from $KAFKA_HOME on port $port"
        launch_apache_kafka || { note "could not format its storage, see $folder/format.log"; return 1; }
    else
        launch_noida_db || { note "could not install noida-db from PyPI"; return 1; }
        note "started noida-db on port $port"
    fi
    wait_until_ready || return 1
    bootstrap="127.0.0.1:$port"
}

# Stops the broker whose files live in $1, and waits until it is gone. Removes the folder.
stop_in() {
    local group deadline
    if [[ -f "$1/pid" ]]; then
        group=$(<"$1/pid")
        deadline=$((SECONDS + 10))
        kill -TERM -- "-$group" 2>/dev/null || true
        while kill -0 -- "-$group" 2>/dev/null; do
            if ((SECONDS >= deadline)); then
                kill -KILL -- "-$group" 2>/dev/null || true
            fi
            sleep 0.1
        done
    fi
    rm -rf "$1"
}

start() {
    if [[ -f "$state/pid" ]]; then
        note "already started; stop it first"
        exit 1
    fi
    mkdir -p "$state"
    if ! start_in "$state"; then
        stop_in "$state"
        exit 1
    fi
    echo "export MARTLET_TEST_BOOTSTRAP=$bootstrap"
}

run() {
    local temporary status=0
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/martlet-broker.XXXXXX")
    # shellcheck disable=SC2064  # the folder of now is meant
    trap "stop_in '$temporary'" EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if start_in "$temporary"; then
        export MARTLET_TEST_BOOTSTRAP="$bootstrap"
    else
        note "NO BROKER: what needs a real one is skipped. Set MARTLET_TEST_BOOTSTRAP or KAFKA_HOME."
    fi
    "$@" || status=$?
    exit "$status"
}

case "${1:-}" in
    start) start ;;
    stop) stop_in "$state" ;;
    run)
        shift
        [[ "${1:-}" != -- ]] || shift
        (($# > 0)) || { usage >&2; exit 64; }
        run "$@"
        ;;
    --help | -h) usage ;;
    *) usage >&2; exit 64 ;;
esac
