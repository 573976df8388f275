#!/usr/bin/env python3
"""Writes martlet's manual: martlet.1, and a page for each of its commands, from what the command says of itself.

    scripts/manpages.py .build/release/martlet /usr/local/share/man/man1

SOURCE_DATE_EPOCH sets the date of the pages; without it, it is today's.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

#: The only serialization of --experimental-dump-help that this script was written for.
SERIALIZATION = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    description = json.loads(printed(arguments.binary, "--experimental-dump-help"))
    if description["serializationVersion"] != SERIALIZATION:
        sys.exit(f"{arguments.binary} describes itself in version {description['serializationVersion']} of the format; "
                 f"this script reads version {SERIALIZATION}")
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else now
    footer = f'{day:%Y-%m-%d} "Martlet {printed(arguments.binary, "--version").strip()}" "Martlet manual"'
    arguments.folder.mkdir(parents=True, exist_ok=True)
    pages = list(commands(description["command"], []))
    names = [name(path) for path, _ in pages]
    for path, command in pages:
        page = Page(path, command, footer, names)
        (arguments.folder / f"{name(path)}.1").write_text(page.text())
    print(f"{len(pages)} pages in {arguments.folder}")


def printed(binary, option):
    return subprocess.run([binary, option], check=True, capture_output=True, text=True).stdout


def commands(command, above):
    """The command and all below it, with the names that lead there."""
    path = [*above, command["commandName"]]
    yield path, command
    for sub in command.get("subcommands", []):
        if sub["shouldDisplay"] and sub["commandName"] != "help":
            yield from commands(sub, path)


def name(path):
    return "-".join(path)


class Page:
    """One page, in the macros of man(7)."""

    def __init__(self, path, command, footer, names):
        self._path = path
        self._command = command
        self._footer = footer
        self._names = names

    def text(self):
        title = name(self._path)
        lines = [f".TH {title.upper()} 1 {self._footer}", ".SH NAME",
                 rf"{escaped(title)} \- {escaped(self._command['abstract'].rstrip('.'))}",
                 ".SH SYNOPSIS", *self._synopsis(), ".SH DESCRIPTION", escaped(self._command["abstract"])]
        for paragraph in self._command.get("discussion", "").split("\n\n"):
            if paragraph.strip():
                lines += [".PP", *map(escaped, paragraph.strip().splitlines())]
        lines += self._options() + self._subcommands() + self._see_also()
        return "\n".join(lines) + "\n"

    def _arguments(self):
        return [argument for argument in self._command.get("arguments", []) if argument["shouldDisplay"]]

    def _synopsis(self):
        parts = [rf"\fB{escaped(' '.join(self._path))}\fR"]
        for argument in self._arguments():
            text = spelled(argument, argument.get("preferredName"))
            if argument["isOptional"]:
                text = f"[{text}]"
            parts.append(text + (r"\ .\|.\|." if argument["isRepeating"] else ""))
        if self._command.get("subcommands"):
            parts.append(r"\fIcommand\fR")
        return parts

    def _options(self):
        lines = []
        for heading, positional in (("ARGUMENTS", True), ("OPTIONS", False)):
            chosen = [a for a in self._arguments() if (a["kind"] == "positional") == positional]
            if not chosen:
                continue
            lines.append(f".SH {heading}")
            for argument in chosen:
                names = argument.get("names") or [None]
                # Short names first, as everywhere.
                names = sorted(names, key=lambda n: n is not None and n["kind"] == "long")
                text = escaped(argument.get("abstract", ""))
                if "defaultValue" in argument:
                    text += escaped(f" (default: {argument['defaultValue']})")
                lines += [".TP", ", ".join(spelled(argument, one) for one in names), text or r"\&"]
        return lines

    def _subcommands(self):
        lines = []
        for sub in self._command.get("subcommands", []):
            if sub["shouldDisplay"] and sub["commandName"] != "help":
                lines += [".TP", rf"\fB{escaped(name([*self._path, sub['commandName']]))}\fR(1)", escaped(sub["abstract"])]
        return [".SH COMMANDS", *lines] if lines else []

    def _see_also(self):
        own = name(self._path)
        near = [one for one in self._names if one != own and (own.startswith(one + "-") or
                one.rpartition("-")[0] == own.rpartition("-")[0] != "martlet" or one == "martlet")]
        if not near:
            return []
        return [".SH SEE ALSO", ",\n".join(rf"\fB{escaped(one)}\fR(1)" for one in near)]


def spelled(argument, one):
    """How an argument is typed: its name, if it has one, and its value."""
    value = rf"\fI{escaped(argument['valueName'])}\fR"
    if one is None:
        return value
    dashes = r"\-\-" if one["kind"] == "long" else r"\-"
    option = rf"\fB{dashes}{escaped(one['name'])}\fR"
    return option if argument["kind"] == "flag" else f"{option} {value}"


def escaped(text):
    """Text that roff takes as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    main()
