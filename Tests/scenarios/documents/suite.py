"""Runs every command of README.md, docs and Examples, with the given martlet: each document in order, in a fresh folder.

    python3 Tests/scenarios/documents --binary .build/debug/martlet
    python3 Tests/scenarios/documents --binary .build/debug/martlet docs/tutorials/operator.md

Blocks of `sh` contain commands, each of which has to end with exit code 0. In blocks of `console` commands begin with `$ ` and
continue with `> `; the lines below a command are its expected output, which is empty if there are none. UUIDs, times, digests,
durations and sizes may differ; a line `...` matches any lines, and ` ...` at the end of a line matches its rest. A free port
replaces port 9092, `~` is the fresh folder, and `~/martlet` is this repository. `swift run` starts the program that was built
beside the binary.

Comments, which readers don't see, configure the next block:

    <!-- test: not run: REASON -->              don't run the block; list the reason
    <!-- test: eventually -->                   repeat the command until it prints the expected output, with a deadline
    <!-- test: exit 1 -->                       the expected exit code
    <!-- test: terminal NAME until "TEXT" -->   run it in its own terminal; continue once it has printed the text
    <!-- test: file NAME -->                    save the block under this name, as the reader does
    <!-- test: from PATH -->                    the block quotes this file of the repository, where it is compiled;
                                                an empty line or `...` leaves lines out
    <!-- test: interrupt NAME -->               without a block: Ctrl-C in a terminal
    <!-- test: broker -->                       without a block: start a broker at localhost:9092 for the document
    <!-- test: needs PyPI -->                   without a block: skip the rest, visibly, if PyPI is unreachable

A command in a block of another language is an error, and so is a block of Swift, Python, YAML or SQL without a comment.
Commands of `martlet` and `make` in running text must exist with their options, and so must files and headings that links lead to.
Without a broker, a document that needs one is skipped, visibly.
"""

import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from documents import blocks
from documents.output import differences
from documents.shell import Shell
from shared import command_line
from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually

EVENTUALLY_DEADLINE_SECONDS = 90

SWIFT = """#!/bin/sh
# `swift run NAME ...` runs the program that was built under this name.
[ "$1" = run ] || {{ echo "only swift run is supported here" >&2; exit 64; }}
shift
name=$1
shift
exec "{folder}/$name" "$@"
"""

# This test types faster than a reader: an agent that has just started briefly holds locks.
SQLITE = """#!/bin/sh
exec {sqlite} -cmd ".timeout 10000" "$@"
"""


def main():
    # A shell starts what runs in the background with Ctrl-C ignored, and the commands of the documents inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = parse_arguments()
    documents = [path.resolve() for path in arguments.documents] or all_documents()
    described = describe(arguments.binary)
    failures, not_run, skipped = [], [], 0
    with tempfile.TemporaryDirectory(prefix="martlet-documents-") as temporary:
        temporary = pathlib.Path(temporary)
        tools = make_tools(temporary / "bin", arguments.binary)
        for number, path in enumerate(documents):
            started = time.monotonic()
            name = path.relative_to(ROOT)
            outcome, text, steps, problems = "passed", "", [], []
            try:
                steps = blocks.steps(path)
                problems = [f"{name}:{line}: {text}" for line, text in broken_references(path, described)]
                text = f"{run(name, steps, temporary / str(number), tools)} commands"
            except Skip as reason:
                outcome, text = "skipped", str(reason)
                skipped += 1
            except Failure as failure:
                problems.append(str(failure).replace(f"{ROOT}/", ""))
            not_run += [f"{name}:{step.line}: {step.argument}" for step in steps if step.kind == "not run"]
            failures += problems
            outcome = "failed" if problems else outcome
            print(f"{outcome:8}{name} ({time.monotonic() - started:.1f} s){text and ': ' + text}", flush=True)
            for problem in problems:
                print(problem, flush=True)
    for line in not_run:
        print(f"not run {line}")
    print(f"{len(documents)} documents, {len(failures)} failures, {skipped} skipped, {len(not_run)} blocks not run")
    return 1 if failures else 0


def run(name, steps, folder, tools):
    """Runs the steps of a document. Returns the number of commands."""
    count = 0
    shell = None
    try:
        for step in steps:
            if step.kind == "not run":
                continue
            if step.kind == "quoted":
                at(name, step.line, lambda: check_quotation(step))
                continue
            shell = shell or Shell(folder, tools, ROOT)
            if step.kind == "broker":
                shell.start_broker()
            elif step.kind == "needs PyPI":
                shell.need_pypi()
            elif step.kind == "interrupt":
                at(name, step.line, lambda: shell.interrupt(step.argument))
            elif step.kind == "file":
                shell.save(step.argument, step.lines)
            else:
                for line, command, shown in at(name, step.line, lambda: list(blocks.commands(step))):
                    count += 1
                    at(name, line, lambda: run_command(shell, step, command, shown))
    finally:
        if shell is not None:
            shell.close()
    return count


def at(name, line, work):
    """Calls `work`, and adds document and line to a Failure."""
    try:
        return work()
    except Failure as failure:
        raise Failure(f"{name}:{line}: {failure}") from None


def run_command(shell, step, command, shown):
    if step.kind == "terminal":
        shell.open_terminal(step.argument, command, step.until)
        return
    if step.kind == "eventually":
        eventually(
            command, lambda: (False, f"\n{problem}") if (problem := attempt(shell, step, command, shown)) else True,
            deadline_seconds=EVENTUALLY_DEADLINE_SECONDS)
    elif problem := attempt(shell, step, command, shown):
        raise Failure(f"{command}\n{problem}")


def attempt(shell, step, command, shown):
    """Runs a command once. Returns the differences from the document, or None."""
    code, printed = shell.run(command)
    if code != step.code:
        return "\n".join([f"  exit code {code} instead of {step.code}", *(f"  {line}" for line in printed)])
    return None if shown is None else differences(shown, printed)


def check_quotation(step):
    """Expects that the file contains the quotation, except for indentation and for lines that an empty line or `...` omits."""
    source = [line.strip() for line in (ROOT / step.argument).read_text().splitlines() if line.strip()]
    place = 0
    for passage in re.split(r"\n(?:\n|\.\.\.\n)+", "\n".join(line.strip() for line in step.lines)):
        lines = passage.splitlines()
        places = [i for i in range(place, len(source)) if source[i:i + len(lines)] == lines]
        if not places:
            raise Failure(f"{step.argument} does not contain this, or not in this order:\n{passage}")
        place = places[0] + len(lines)


def broken_references(path, described):
    """Unknown commands and missing link targets in running text: (line, text)."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line, span in blocks.mentions(path):
        try:
            words = shlex.split(span)
        except ValueError:
            continue
        if words[0] == "make":
            unknown = [word for word in words[1:] if word not in targets and "=" not in word]
        else:
            unknown = unknown_words(words[1:], described)
        if unknown:
            yield line, f"`{span}`: there is no {', '.join(unknown)}"
    for line, target, fragment in blocks.links(path):
        file = path.parent / target if target else path
        if not file.exists():
            yield line, f"there is no {target}"
        elif fragment and file.suffix == ".md" and fragment not in blocks.fragments(file):
            yield line, f"{file.name} has no heading #{fragment}"


def unknown_words(words, command):
    """The subcommands and options of a command line that don't exist."""
    by_name = {sub["commandName"]: sub for sub in command.get("subcommands", [])}
    if words and by_name and not words[0].startswith("-"):
        if words[0] in by_name:
            return unknown_words(words[1:], by_name[words[0]])
        default = by_name.get(command.get("defaultSubcommand"))
        return [words[0]] if default is None else unknown_words(words, default)
    options = {("--" if name["kind"] == "long" else "-") + name["name"]
               for argument in command.get("arguments", []) for name in argument.get("names", [])}
    return [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options]


def describe(binary):
    """The command's description of its own subcommands and options."""
    def dump(program):
        printed = subprocess.run([program, "--experimental-dump-help"], capture_output=True, text=True, check=True).stdout
        return json.loads(printed)["command"]

    command = dump(binary)
    # `martlet simulate` passes its options on to a program of its own.
    simulator = dump(binary.resolve().parent / "martlet-simulate")
    simulator["commandName"] = "simulate"
    others = [sub for sub in command["subcommands"] if sub["commandName"] != "simulate"]
    command["subcommands"] = [*others, simulator]
    return command


def make_tools(folder, binary):
    """A folder for the PATH: martlet, a `swift` that runs built programs, and an `sqlite3` that waits for locks."""
    folder.mkdir()
    (folder / "martlet").symlink_to(binary.resolve())
    programs = {
        "swift": SWIFT.format(folder=binary.resolve().parent),
        "sqlite3": SQLITE.format(sqlite=shutil.which("sqlite3")),
    }
    for name, script in programs.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


def all_documents():
    found = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "Examples").glob("*/README.md"))]
    return [ROOT / "README.md", *found]


def parse_arguments():
    parser = command_line.make_parser(__doc__, build="debug")
    parser.add_argument("documents", nargs="*", type=pathlib.Path, metavar="document")
    arguments = parser.parse_args()
    command_line.expect_binary(parser, arguments)
    return arguments
