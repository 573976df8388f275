"""Finds and runs the command."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Sequence

from martlet._errors import CommandMissing, Error, UsageError

#: The exit code for incorrect usage.
USAGE = 64


def packaged() -> pathlib.Path | None:
    """The command that the wheel contains, if any."""
    path = pathlib.Path(__file__).resolve().parent / "_bin" / "martlet"
    return path if path.exists() else None


def find() -> str:
    """The command's path: MARTLET_BINARY, else the package's, else the one on the PATH."""
    named = os.environ.get("MARTLET_BINARY")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise CommandMissing(f"MARTLET_BINARY is {named}, which is not a program.")
        return named
    path = packaged() or shutil.which("martlet")
    if path is None:
        raise CommandMissing("There is no martlet command. Put it on the PATH, or set MARTLET_BINARY to its path.")
    return str(path)


def run(arguments: Sequence[str], *, reports: bool = False) -> str:
    """Runs a command to its end, and returns what it printed. Raises Error if it fails.

    reports: the command also ends with code 1 after it has printed a document that says what it did not do.
    """
    done = subprocess.run([find(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0 and not (reports and done.returncode == 1 and done.stdout):
        raise failure(done.returncode, done.stderr)
    return done.stdout


def failure(code: int, text: str) -> Error:
    """The error for an exit code and what the command printed to standard error."""
    message = text.strip().removeprefix("Error: ") or f"martlet ended with code {code}."
    return (UsageError if code == USAGE else Error)(message, code)


def path(store: str | os.PathLike[str]) -> str:
    """The store as an argument: never an option, whatever its name."""
    name = os.fspath(store)
    return f"./{name}" if name.startswith("-") else name
