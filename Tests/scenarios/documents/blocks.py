"""Finds the commands of a document: fenced blocks, and comments that say what the test of documents does with them."""

import pathlib
import re

from documents.shell import is_complete
from shared.waiting import Failure

#: Languages of blocks that hold commands.
COMMANDS = {"sh", "console"}
#: Languages of blocks that a reader saves or compiles: each has to say where it comes from.
SOURCES = {"swift", "python", "yaml", "sql"}

_FENCE = re.compile(r"^(\s*)(`{3,})\s*(\S*)\s*$")
_MARK = re.compile(r"^\s*<!--\s*test:\s*(.+?)\s*-->\s*$")
_COMMAND = re.compile(
    r"^\s*(?:[$#] )?(?:(?:martlet|make|sqlite3|python3|swift|docker|git|apt-get|apt|sudo|systemctl|journalctl|curl|pip|"
    r"cp|mv|kill)\s+[\w./-]|(?:\./)?(?:scripts|Examples|\.build|\.venv)/\S+\s)"
)


class Step:
    """Something that the test of documents does at a line of a document."""

    def __init__(self, line, kind, argument="", lines=(), until=None, code=0, language=""):
        self.line = line
        #: run, eventually, terminal, interrupt, broker, needs PyPI, file, quoted, not run
        self.kind = kind
        #: What the kind needs: a terminal's name, a file, a reason.
        self.argument = argument
        self.lines = list(lines)
        #: The text that a terminal has to print before the document goes on, if any.
        self.until = until
        #: The exit code that is expected.
        self.code = code
        self.language = language


def steps(path):
    """What there is to do in a document, in its order. Raises Failure where that can't be said of a block."""
    found = []
    marks = {}
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if mark := _MARK.match(line):
            step = _mark(path, number, mark[1], marks)
            if step is not None:
                found.append(step)
        elif fence := _FENCE.match(line):
            first = number
            while number < len(lines) and lines[number].strip() != fence[2]:
                number += 1
            content = [text.removeprefix(fence[1]) for text in lines[first:number]]
            number += 1
            step = _block(path, first + 1, fence[3], content, marks)
            if step is not None:
                found.append(step)
            marks = {}
        elif line.startswith("    ") and _COMMAND.match(line):
            raise Failure(f"{path}:{number}: a command outside of a fenced block is never run: {line.strip()}")
        elif line.strip() and marks:
            raise Failure(f"{path}:{number}: a test comment belongs right before a fenced block")
    if marks:
        raise Failure(f"{path}:{number}: a test comment belongs right before a fenced block")
    return found


def _mark(path, number, text, marks):
    """Reads a comment. Returns a step where it is one by itself, else notes what it says of the next block."""
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    if text in ("broker", "needs PyPI"):
        return Step(number, text)
    if word == "interrupt" and rest:
        return Step(number, "interrupt", rest)
    if not_run := re.fullmatch(r"not run: (.+)", text):
        marks["not run"] = not_run[1]
    elif terminal := re.fullmatch(r'terminal (\w+)(?: until "(.+)")?', text):
        marks["terminal"], marks["until"] = terminal[1], terminal[2]
    elif text == "eventually":
        marks["eventually"] = True
    elif code := re.fullmatch(r"exit (\d+)", text):
        marks["exit"] = int(code[1])
    elif word in ("file", "from") and rest:
        marks[word] = rest
    else:
        raise Failure(f"{path}:{number}: unknown test comment: {text}")
    return None


def _block(path, number, language, content, marks):
    if "not run" in marks:
        return Step(number, "not run", marks["not run"], content, language=language)
    if "file" in marks:
        return Step(number, "file", marks["file"], content)
    if "from" in marks:
        return Step(number, "quoted", marks["from"], content)
    if language in SOURCES:
        raise Failure(f"{path}:{number}: a block of {language} is neither saved (file), quoted (from) nor marked: not run")
    if language not in COMMANDS:
        for offset, text in enumerate(content):
            if _COMMAND.match(text):
                kind = language or "no language"
                raise Failure(f"{path}:{number + offset}: a command in a block of {kind}: {text.strip()}")
        return None
    if "terminal" in marks:
        return Step(number, "terminal", marks["terminal"], content, until=marks["until"], language=language)
    kind = "eventually" if "eventually" in marks else "run"
    return Step(number, kind, lines=content, code=marks.get("exit", 0), language=language)


def commands(step):
    """The commands of a step: (line, text, output). The output is None in a block of sh, which shows none."""
    if step.language == "sh":
        yield from ((line, text, None) for line, text in _sh_commands(step))
        return
    line, command, output = None, [], []
    for offset, text in enumerate(step.lines):
        if text.startswith("$ "):
            if command:
                yield line, "\n".join(command), output
            line, command, output = step.line + offset, [text[2:]], []
        elif text.startswith("> ") and command and not output:
            command.append(text[2:])
        elif not command:
            raise Failure(f"line {step.line + offset}: output without a command; a command begins with `$ `")
        else:
            output.append(text)
    if command:
        yield line, "\n".join(command), output


def _sh_commands(step):
    line, command = None, []
    for offset, text in enumerate(step.lines):
        if not command and (not text.strip() or text.lstrip().startswith("#")):
            continue
        if not command:
            line = step.line + offset
        command.append(text)
        if is_complete("\n".join(command)):
            yield line, "\n".join(command)
            command = []
    if command:
        raise Failure(f"line {line}: a command without an end: {command[0]}")


def mentions(path):
    """Commands in running text: (line, the text between backticks), for those of martlet and make."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced:
            yield from ((number, span) for span in re.findall(r"`((?:martlet|make) [^`]+)`", line))


def links(path):
    """Links to files of the repository: (line, target), without a fragment."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if not re.match(r"\w+:|#", target):
                yield number, pathlib.PurePosixPath(target.partition("#")[0])
