"""Parses the commands of a document: fenced blocks, and the comments that configure them."""

import pathlib
import re

from documents.shell import is_complete
from shared.waiting import Failure

#: Languages of blocks that contain commands.
COMMANDS = {"sh", "console"}
#: Languages of blocks that a reader saves or compiles. Each needs a comment that says where it comes from.
SOURCES = {"swift", "python", "yaml", "sql"}

_FENCE = re.compile(r"^(\s*)(`{3,})\s*(\S*)\s*$")
_COMMENT = re.compile(r"^\s*<!--\s*test:\s*(.+?)\s*-->\s*$")
_COMMAND = re.compile(
    r"^\s*(?:[$#] )?(?:(?:martlet|make|sqlite3|python3|swift|docker|git|apt-get|apt|sudo|systemctl|journalctl|curl|pip|"
    r"cp|mv|kill)\s+[\w./-]|(?:\./)?(?:scripts|Examples|\.build|\.venv)/\S+\s)"
)


class Step:
    """One action of the suite, at a line of a document."""

    def __init__(self, line, kind, argument="", lines=(), until=None, code=0, language=""):
        self.line = line
        #: run, eventually, terminal, interrupt, broker, needs PyPI, file, quoted, not run
        self.kind = kind
        #: The kind's argument: a terminal's name, a file, a reason.
        self.argument = argument
        self.lines = list(lines)
        #: The text that a terminal has to print before the document continues, if any.
        self.until = until
        #: The expected exit code.
        self.code = code
        self.language = language


def steps(path):
    """The steps of a document, in order. Raises Failure if a block or a comment is invalid."""
    found = []
    options = {}
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if comment := _COMMENT.match(line):
            step = _comment(path, number, comment[1], options)
            if step is not None:
                found.append(step)
        elif fence := _FENCE.match(line):
            first = number
            while number < len(lines) and lines[number].strip() != fence[2]:
                number += 1
            content = [text.removeprefix(fence[1]) for text in lines[first:number]]
            number += 1
            step = _block(path, first + 1, fence[3], content, options)
            if step is not None:
                found.append(step)
            options = {}
        elif line.startswith("    ") and _COMMAND.match(line):
            raise Failure(f"{path}:{number}: a command outside a fenced block is not run: {line.strip()}")
        elif line.strip() and options:
            raise Failure(f"{path}:{number}: a test comment belongs right before a fenced block")
    if options:
        raise Failure(f"{path}:{number}: a test comment belongs right before a fenced block")
    return found


def _comment(path, number, text, options):
    """Parses a comment. Returns a step if it needs no block; otherwise stores its option for the next block."""
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    if text in ("broker", "needs PyPI"):
        return Step(number, text)
    if word == "interrupt" and rest:
        return Step(number, "interrupt", rest)
    if not_run := re.fullmatch(r"not run: (.+)", text):
        options["not run"] = not_run[1]
    elif terminal := re.fullmatch(r'terminal (\w+)(?: until "(.+)")?', text):
        options["terminal"], options["until"] = terminal[1], terminal[2]
    elif text == "eventually":
        options["eventually"] = True
    elif code := re.fullmatch(r"exit (\d+)", text):
        options["exit"] = int(code[1])
    elif word in ("file", "from") and rest:
        options[word] = rest
    else:
        raise Failure(f"{path}:{number}: unknown test comment: {text}")
    return None


def _block(path, number, language, content, options):
    if "not run" in options:
        return Step(number, "not run", options["not run"], content, language=language)
    if "file" in options:
        return Step(number, "file", options["file"], content)
    if "from" in options:
        return Step(number, "quoted", options["from"], content)
    if language in SOURCES:
        raise Failure(f"{path}:{number}: a block of {language} is neither saved (file), quoted (from) nor marked: not run")
    if language not in COMMANDS:
        for offset, text in enumerate(content):
            if _COMMAND.match(text):
                kind = language or "no language"
                raise Failure(f"{path}:{number + offset}: a command in a block of {kind}: {text.strip()}")
        return None
    if "terminal" in options:
        return Step(number, "terminal", options["terminal"], content, until=options["until"], language=language)
    kind = "eventually" if "eventually" in options else "run"
    return Step(number, kind, lines=content, code=options.get("exit", 0), language=language)


def commands(step):
    """The commands of a step: (line, text, output). The output is None in a block of sh, which shows no output."""
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
        raise Failure(f"line {line}: an incomplete command: {command[0]}")


def mentions(path):
    """Commands of martlet and make in running text: (line, text between backticks)."""
    for number, line in _prose(path):
        yield from ((number, span) for span in re.findall(r"`((?:martlet|make) [^`]+)`", line))


def links(path):
    """Links within the repository: (line, target, fragment). The target of a link within the document is empty."""
    for number, line in _prose(path):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if not re.match(r"\w+:", target):
                file, _, fragment = target.partition("#")
                yield number, file, fragment


def fragments(path):
    """The fragments that lead to the headings of a document, as GitHub makes them."""
    counts = {}
    for _, line in _prose(path):
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            counts[name] = counts.get(name, 0) + 1
            yield name if counts[name] == 1 else f"{name}-{counts[name] - 1}"


def _prose(path):
    """The lines outside of fenced blocks: (number, line)."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced:
            yield number, line
