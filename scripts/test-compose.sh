#!/usr/bin/env bash
# Builds the image, and tries the compose files and the scenarios in containers: `make test-compose`. Needs Docker with Compose v2, at DOCKER_HOST or
# where it is by default. Where no image of Apache Kafka can be had, a small broker stands in.
#
#   scripts/test-compose.sh [SCENARIO...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "test-compose: $*"; }

if ! docker compose version >/dev/null 2>&1 || ! docker info >/dev/null 2>&1; then
    say "needs Docker with Compose v2, and the right to use it: https://docs.docker.com/engine/install/debian/" >&2
    exit 1
fi

can_have() { docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >/dev/null 2>&1; }

if [[ -z "${MARTLET_KAFKA_IMAGE:-}" ]] && ! can_have apache/kafka:3.9.0; then
    MARTLET_KAFKA_IMAGE=$(scripts/test-broker-image.sh)
    export MARTLET_KAFKA_IMAGE
    say "apache/kafka:3.9.0 can't be had here; noida-db stands in"
fi

docker build --file docker/Dockerfile --tag martlet .
say "the image has $(($(docker image inspect --format '{{.Size}}' martlet) / 1000000)) MB, of which \
$(docker run --rm --entrypoint stat martlet --format %s /usr/local/bin/martlet | awk '{print int($1 / 1000000)}') MB are the program"
for property in '.Config.User' '.Config.Healthcheck.Test'; do
    say "$property: $(docker image inspect --format "{{$property}}" martlet)"
done

project=(docker compose --project-name "martlet-try-$$" --file docker/compose.yaml)
end() { "${project[@]}" down --volumes --timeout 2 >/dev/null 2>&1 || true; }
trap end EXIT

# Runs a command every second until it prints this, for two minutes.
until_prints() {
    local expected=$1 found=
    shift
    for _ in $(seq 120); do
        found=$("$@" 2>&1 || true)
        [[ "$found" == "$expected" ]] && return
        sleep 1
    done
    say "expected \"$expected\", found \"$found\": $*" >&2
    "${project[@]}" logs --tail 50 >&2
    exit 1
}

sql() { "${project[@]}" exec -T "$1" sqlite3 /data/store.sqlite "$2"; }

say "compose.yaml: three nodes"
"${project[@]}" up --detach --wait phone tablet edge
sql phone "INSERT INTO notebook (title) VALUES ('Trip')"
for node in tablet edge; do until_prints Trip sql "$node" "SELECT title FROM notebook"; done
say "compose.yaml: the broker is killed, and comes back"
"${project[@]}" kill --signal KILL kafka
sql edge "INSERT INTO notebook (title) VALUES ('Without a broker')"
"${project[@]}" up --detach --wait kafka
for node in phone tablet; do until_prints 2 sql "$node" "SELECT count(*) FROM notebook"; done
until_prints 10001 "${project[@]}" exec -T phone id --user
until_prints "sh: 1: cannot create /usr/x: Read-only file system" "${project[@]}" exec -T phone sh -c 'echo >/usr/x'
say "compose.yaml: every node has both rows"
end

export MARTLET_HTTP_TOKEN=0123456789abcdef0123456789abcdef
project=(docker compose --project-name "martlet-try-$$" --file docker/compose.yaml --file docker/compose.observability.yaml)
services=(phone tablet edge prometheus)
if ! can_have prom/prometheus:v2.53.0; then
    say "prom/prometheus:v2.53.0 can't be had here; Debian's Prometheus stands in"
    MARTLET_PROMETHEUS_IMAGE=martlet-test-prometheus
    export MARTLET_PROMETHEUS_IMAGE
    docker build --quiet --tag "$MARTLET_PROMETHEUS_IMAGE" docker/test-prometheus >/dev/null
fi
if can_have grafana/grafana:11.6.0; then
    services+=(grafana)
else
    say "grafana/grafana:11.6.0 can't be had here; without it"
fi
say "compose.observability.yaml: Prometheus asks three nodes"
"${project[@]}" up --detach --wait "${services[@]}"
prometheus() {
    curl --silent --get "localhost:9090/api/v1/$1" --data-urlencode "query=${3:-}" \
        | python3 -c "import json, sys; data = json.load(sys.stdin)['data']; print($2)"
}
until_prints 3 prometheus query "data['result'][0]['value'][1]" "sum(martlet_ready)"
alerts=$(grep -c "alert:" docker/observability/alerts.yaml)
until_prints "$alerts" prometheus rules "sum(rule['health'] == 'ok' for group in data['groups'] for rule in group['rules'])"
say "compose.observability.yaml: Prometheus sees three nodes that are ready, and evaluates $alerts alerts"
end

say "scenarios"
python3 Tests/scenarios/multi_node --driver compose "$@"
