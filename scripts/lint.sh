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
check "lines have at most 120 columns; swift-format leaves comments and strings as they are" \
    "$(tracked '*.swift' | grep -v '\.pb\.swift$' | LC_ALL=C.UTF-8 xargs -d '\n' grep -nHP '^.{121,}')"
check "tests wait for an event with a deadline, they never sleep" \
    "$(grep -rnE --include='*.swift' 'Task\.sleep|usleep|(^|[^[:alnum:]_])sleep\(' Tests)"
check "SQL of the sync engine is in the repositories of MartletReplica" \
    "$(grep -rnE --include='*.swift' '(sql:|PreparedStatement\(|cachedStatement|context\.statement\(|_martlet_)' \
        Sources/MartletEngine Sources/MartletBootstrap Sources/MartletAntiEntropy)"
check "folders of MartletReplica are layers: none needs one above it (scripts/graph.py --why FROM TO says where)" \
    "$(scripts/graph.py --circles MartletReplica)"
check "traps are for our own bugs: throw instead" \
    "$(swift_sources -exec grep -nHE 'try!|fatalError\(' {} +)"

check "FileHandle.write(_:) ends the program where it can't write: use ErrorOutput, or write(contentsOf:)" \
    "$(swift_sources -exec grep -nHE '^[^/]*(standardError|standardOutput|[hH]andle|file)\.write\([^c]' {} +)"
check "a wait must not last longer because the wall clock is set back: use WakeSignal, or Monitor in MartletBus" \
    "$(swift_sources -exec grep -nHE '^[^/]*(NSCondition|DispatchSemaphore|wait\(until: Date|wallDeadline)' {} +)"

check "a value in a command that people copy is one word: use ShellWord" \
    "$(swift_sources -exec grep -nHP '(martlet [a-z]+( [a-z]+)?|sqlite3|chmod \S+) \\\((?!ShellWord|word\b|one\b)' {} +)"

check "suites have the same name" \
    "$(grep -rhoP --include='*.swift' '^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:final )?(?:struct|class) \K\w+Tests\b' Tests |
        sort | uniq -d)"

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

# Decision records say whether they hold, and the index lists all of them.
records=docs/decisions
record_files() { find "$records" -name '[0-9]*.md' -printf '%f\n' | sort; }
valid_status='^Status: (Accepted|Superseded by \[[0-9]+\]\([0-9]{4}-[a-z0-9-]+\.md\)), [0-9]{4}(-[0-9]{2}){2}\.$'
check "records in $records need 'Status: Accepted, YYYY-MM-DD.' or 'Status: Superseded by [N](NNNN-name.md), YYYY-MM-DD.'" \
    "$(find "$records" -name '[0-9]*.md' ! -name '0000-*' -exec grep -LE "$valid_status" {} + | sort)"
listed_records() { grep -oP '\]\(\K\d{4}-[\w-]+\.md(?=\))' "$records/README.md" | sort -u; }
check "$records/README.md and the records differ" "$(comm -3 <(record_files) <(listed_records))"

# Documents for contributors name files that exist, by paths from the root or from Sources, and every target.
architecture=docs/architecture.md
missing_files() {
    # shellcheck disable=SC2016  # Backticks of Markdown, not of the shell.
    grep -noHP '`\K[\w.+/-]+\.(swift|py|sh|proto|yaml|md)(?=`)' CONTRIBUTING.md "$architecture" |
        while IFS=: read -r document line path; do
            [[ -e "$path" || -e "Sources/$path" ]] || echo "$document:$line: $path"
        done
}
check "CONTRIBUTING.md or $architecture names files that don't exist, neither at the root nor in Sources" "$(missing_files)"
package_targets() {
    grep -ozP '\.(target|executableTarget|testTarget|macro|systemLibrary)\(\s*name: "\K\w+' Package.swift |
        tr '\0' '\n' | sort -u
}
# shellcheck disable=SC2016  # Backticks of Markdown, not of the shell.
named_targets() { grep -oP '`\K\w+(?=`)' "$architecture" | sort -u; }
check "$architecture doesn't name every target of Package.swift" "$(comm -23 <(package_targets) <(named_targets))"

# The Swift Package Index shows the documentation of every library that has some.
catalogs() { find Sources -name '*.docc' -printf '%f\n' | sed 's/\.docc$//' | sort; }
indexed_targets() { grep -oP '^\s+- \KMartlet\w+' .spi.yml | sort; }
check ".spi.yml and the DocC catalogs in Sources differ" "$(comm -3 <(catalogs) <(indexed_targets))"

# Say republish, stamp and enqueue, unpublished, pending, flush, repair or row identity instead of these.
# A word that is also code counts only beside a word of prose. Names in backticks, flags (--mend), decision records,
# the changelog, and comments in code are exempt.
retired='\b((kept|keeps?|keeping) aside|put(s|ting)? away|(said|says?) (once more|again)|told (of|by)'
retired+="|who (comes? late|is newer)|what (rows come to|names (a |the )?rows?|can't be understood)"
retired+='|the short way|plainly|once more(?! than)|for ever|in vain|(?<!numbers )anew|(passes|passed|passing) over|(is|are|was|were) taken for'
retired+='|nobody was told|look-alikes?|(?<!`)go(es)? on (with|as|when|after)|thr(ow|ows|own|ew) away'
retired+='|(the|an?|is|are|was|were|be|been|not|still|rows?|nodes?|changes?|to) '
retired+='(registrars?|untold|withheld|mend(s|ed|ing)?|restat(e|es|ing)|wish(es|ed)?|refuges?|folded))\b'
check "public text uses the field's terms, not the retired words of scripts/lint.sh" "$(
    tracked README.md CONTRIBUTING.md SECURITY.md 'docs/*.md' 'Sources/*.md' 'Examples/*.md' 'config/*.yaml' docker 'proto/*.proto' |
        grep -vE '^docs/decisions/|\.json$|^docker/test-' | xargs -d '\n' grep -niHP "$retired"
    tracked 'Sources/*.swift' 'Examples/*.swift' | grep -v '\.pb\.swift$' |
        xargs -d '\n' grep -niHP "^(?!\s*//).*$retired"
)"

check "imports that Package.swift does not list, or products that it lists for nothing" "$(scripts/imports.py)"

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
