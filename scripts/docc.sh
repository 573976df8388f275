#!/usr/bin/env bash
# Makes the documentation of each library with DocC, in .build/docs/<Target>, and fails on every warning: a link to a symbol or a
# page that is not there, a parameter that the function has not. Whoever links to another library finds it: they are made
# from the lowest up.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
targets=(
    MartletCore MartletMerge MartletBus MartletWire MartletStore
    MartletReplica MartletEngine MartletBootstrap MartletAntiEntropy MartletSync
    MartletKafka MartletSimulator MartletAgent MartletHTTP MartletData
)
output=$root/.build/docs

usage() {
    cat <<'TEXT'
usage: scripts/docc.sh [--symbols FOLDER] [TARGET...]
  --symbols FOLDER   symbol graphs that are there; without it they are made, which builds the package
TEXT
}

symbols=
chosen=()
while (($# > 0)); do
    case "$1" in
        --symbols) [[ -d "${2:-}" ]] || { usage >&2; exit 64; }; symbols=$2; shift 2 ;;
        --help | -h) usage; exit 0 ;;
        -*) usage >&2; exit 64 ;;
        *) chosen+=("$1"); shift ;;
    esac
done
((${#chosen[@]} > 0)) || chosen=("${targets[@]}")

# A catalog without a place in the list would never be looked at.
found=$(cd "$root/Sources" && printf '%s\n' */*.docc | sed 's|/.*||' | sort)
if [[ "$found" != "$(printf '%s\n' "${targets[@]}" | sort)" ]]; then
    echo "docc: the list in $0 is not that of the catalogs in Sources: $found" >&2
    exit 1
fi

docc=$(command -v docc || true)
if [[ -z "$docc" ]]; then
    docc=$(dirname "$(readlink -f "$(command -v swift)")")/docc
    [[ -x "$docc" ]] || { echo "docc: no docc beside swift" >&2; exit 1; }
fi

# The graphs of a module: its own, and those of what it adds to others. dump-symbol-graph says where it has put them.
if [[ -z "$symbols" ]]; then
    said=$(swift package --package-path "$root" dump-symbol-graph --minimum-access-level public --skip-synthesized-members)
    symbols=$(sed -n 's/^Files written to //p' <<<"$said" | tail -n 1)
    [[ -d "$symbols" ]] || { printf '%s\n' "$said" >&2; echo "docc: where are the symbol graphs?" >&2; exit 1; }
fi

failed=()
for target in "${chosen[@]}"; do
    graphs=$output/symbols/$target
    rm -rf "$graphs" "${output:?}/$target"
    mkdir -p "$graphs"
    for graph in "$symbols/$target".symbols.json "$symbols/$target"@*.symbols.json; do
        [[ ! -e "$graph" ]] || cp "$graph" "$graphs"
    done
    if [[ ! -e "$graphs/$target.symbols.json" ]]; then
        echo "docc: no symbol graph of $target in $symbols" >&2
        failed+=("$target")
        continue
    fi
    dependencies=()
    for other in "${targets[@]}"; do
        [[ "$other" != "$target" ]] || break
        [[ ! -d "$output/$other" ]] || dependencies+=(--dependency "$output/$other")
    done
    echo "docc: $target"
    "$docc" convert "$root/Sources/$target/$target.docc" \
        --additional-symbol-graph-dir "$graphs" --output-path "$output/$target" \
        --fallback-display-name "$target" --fallback-bundle-identifier "$target" --fallback-default-module-kind Library \
        --enable-experimental-external-link-support "${dependencies[@]}" \
        --disable-parameters-and-returns-validation --warnings-as-errors || failed+=("$target")
done

if ((${#failed[@]} > 0)); then
    echo "docc: mistakes in ${failed[*]}" >&2
    exit 1
fi
echo "docc: ${#chosen[@]} libraries in ${output#"$root"/}"
