#!/usr/bin/env bash
# Runs the fuzzing targets of Tests/Fuzz, each for so many seconds, on what is in its corpus. What is found anew stays in
# .build-fuzz/found; `scripts/fuzz.sh merge TARGET` adds to the committed corpus what covers more than it does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
usage: scripts/fuzz.sh SECONDS [TARGET]   run one target, or all of them one after the other
       scripts/fuzz.sh merge TARGET       add to the committed corpus what covers more
TEXT
}

program=.build-fuzz/debug/Fuzz
corpus=Tests/Fuzz/Corpus
found=.build-fuzz/found
targets=(transaction messages snapshot check hostile token configuration)
largest_input_bytes=4096
# Of a node to which hostile messages come. An input that takes more is a finding.
hostile_memory_mb=300
# By the clock on the wall: on a busy machine an input that takes a third of a second has taken 47.
patience_seconds=120
# Stores are made by the hundred.
if [[ -d /dev/shm ]]; then export TMPDIR="${TMPDIR:-/dev/shm}"; fi

merge() {
    FUZZ_TARGET="$1" "$program" -set_cover_merge=1 -max_len="$largest_input_bytes" "$corpus/$1" "$found/$1"
}

run() {
    mkdir -p "$found/$1"
    echo "fuzz: $1 for $2 s"
    # A crash is written beside what was found, and ends the run. Swift's own handler would come before that.
    export SWIFT_BACKTRACE=enable=no
    local memory=()
    if [[ "$1" == hostile ]]; then
        memory=(-rss_limit_mb="$hostile_memory_mb")
        # One store sees many inputs. `FUZZ_TARGET=hostile .build-fuzz/debug/Fuzz .build-fuzz/found/hostile-store/*` plays them again.
        export FUZZ_KEPT="$PWD/$found/hostile-store"
    fi
    FUZZ_TARGET="$1" "$program" -max_total_time="$2" -max_len="$largest_input_bytes" -timeout="$patience_seconds" -print_final_stats=1 \
        "${memory[@]}" \
        -artifact_prefix="$found/$1-" "$found/$1" "$corpus/$1"
}

case "${1:-}" in
    merge) merge "${2:?}" ;;
    '' | --help | -h) usage ;;
    *)
        if [[ -n "${2:-}" ]]; then targets=("$2"); fi
        for target in "${targets[@]}"; do run "$target" "$1"; done
        ;;
esac
