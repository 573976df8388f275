#!/usr/bin/env bash
# What swift-format does not check. Prints every finding, and exits with 1 where there is one.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
max_lines=600
failures=0

# Reports a rule and the lines that break it, where there are any.
check() {
    local rule=$1 findings=$2
    if [[ -n "$findings" ]]; then
        printf 'lint: %s\n%s\n' "$rule" "$findings" >&2
        failures=$((failures + 1))
    fi
}

swift_sources() { find Sources -name '*.swift' ! -name '*.pb.swift' "$@"; }
tracked() { git ls-files --cached --others --exclude-standard -- "$@"; }

check "files over $max_lines lines are split by responsibility" \
    "$(swift_sources -exec wc -l {} + | awk -v max="$max_lines" '$2 != "total" && $1 > max')"
check "tests wait for an event with a deadline, they never sleep" \
    "$(grep -rnE --include='*.swift' 'Task\.sleep|usleep|(^|[^[:alnum:]_])sleep\(' Tests)"
check "traps are for our own bugs: throw instead" \
    "$(swift_sources -exec grep -nHE 'try!|fatalError\(' {} +)"

# The behaviour table names tests that exist.
model_tests() {
    grep -rhoPz --include='*.swift' '@Test(?:(\((?:[^()]|(?1))*\)))?(?:\s*@\w+)*\s*func \K\w+' \
        Tests/MartletDataTests Tests/MartletDataMacrosTests Tests/PublicCodeTests | tr '\0' '\n' | sort -u
}
table=docs/swiftdata-behaviour.md
# shellcheck disable=SC2016  # Backticks of Markdown, not of the shell.
named_tests() { grep -oP '^\|.*\| `\K\w+(?=` \|$)' "$table" | sort -u; }
check "$table names tests that don't exist" "$(comm -13 <(model_tests) <(named_tests))"

# So does the table of pitfalls, and it names all of them.
pitfalls=docs/pitfalls.md
pitfall_tests() { grep -rhoP --include='*.swift' '(@Test.*|^\s*|^\s*\]\) )func \Kp\d+\w+' Tests Examples | sort -u; }
# shellcheck disable=SC2016  # Backticks of Markdown, not of the shell.
named_pitfalls() { grep -oP '`\Kp\d+\w+(?=`)' "$pitfalls" | sort -u; }
check "$pitfalls and the tests differ" "$(comm -3 <(pitfall_tests) <(named_pitfalls))"

mapfile -t scripts < <(tracked '*.sh' .ci/run)
for script in "${scripts[@]}"; do
    check "$script is not valid bash" "$(bash -n "$script" 2>&1)"
done
if command -v shellcheck >/dev/null; then
    check "shellcheck" "$(shellcheck "${scripts[@]}")"
else
    echo "lint: no shellcheck here, skipped (make deps-test installs it)" >&2
fi

mapfile -t python_files < <(tracked '*.py')
for file in "${python_files[@]}"; do
    check "$file is not valid Python" \
        "$(python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" 2>&1 | tail -n 4)"
done

mapfile -t yaml_files < <(tracked '*.yaml' '*.yml')
if ((${#yaml_files[@]} > 0)); then
    if venv=$(scripts/test-venv.sh); then
        for file in "${yaml_files[@]}"; do
            check "$file is not valid YAML" \
                "$("$venv/bin/python" -c 'import sys, yaml; list(yaml.safe_load_all(open(sys.argv[1])))' "$file" 2>&1 |
                    tail -n 3)"
        done
    else
        echo "lint: no PyYAML here, YAML files are not checked" >&2
    fi
fi

if ((failures > 0)); then
    echo "lint: $failures rules broken" >&2
    exit 1
fi
