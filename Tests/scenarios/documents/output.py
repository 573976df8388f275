"""Compares the output of a command with the expected output in a document."""

import re

#: Values that differ from run to run. Values of the same kind count as equal.
KINDS = [
    ("UUID", re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")),
    ("TIME", re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d{4})?")),
    ("DIGEST", re.compile(r"\b[0-9a-f]{32}\b")),
    ("DURATION", re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds)\b")),
    ("SIZE", re.compile(r"\b\d+(?:\.\d+)? (?:KiB|MiB|GiB)\b")),
    ("CLOCK", re.compile(r"\b1[5-9]\d{11}(?:\.\d+)?\b")),
    # The start of a UUID, by which the history identifies rows.
    ("ID", re.compile(r"(?<= )[0-9a-f]{8}(?=\s|$)")),
]


def differences(shown, printed):
    """None if the output matches the document, or else both outputs as text.

    In a document a line `...` matches any lines, and ` ...` at the end of a line matches its rest.
    """
    shown, printed = _plain(shown), _plain(printed)
    pattern = "".join(map(_pattern, shown))
    if re.fullmatch(pattern, "".join(line + "\n" for line in printed), re.DOTALL):
        return None
    return "\n".join([*(f"  shown:   {line}" for line in shown), *(f"  printed: {line}" for line in printed)])


def _pattern(line):
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*?"
    if line.endswith(" ..."):
        return re.escape(line.removesuffix(" ...")) + r"[^\n]*\n"
    return re.escape(line) + r"\n"


def _plain(lines):
    """Replaces values by their kinds, and removes trailing empty lines."""
    plain = []
    for line in lines:
        for name, pattern in KINDS:
            line = pattern.sub(f"<{name}>", line)
        plain.append(line.rstrip())
    while plain and not plain[-1]:
        plain.pop()
    return plain
