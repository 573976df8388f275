"""What can go wrong."""

from __future__ import annotations


class Error(Exception):
    """A command of Martlet failed. The text says what happened, and what to do."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        #: The command's exit code. Negative: the signal that ended it. None: it did not run.
        self.code = code


class CommandMissing(Error):
    """There is no `martlet` command."""


class UsageError(Error, ValueError):
    """An argument is invalid."""


class WaitTimeout(Error, TimeoutError):
    """The commits did not arrive in time. They still will."""


class ReloadNeeded(Error):
    """The history after a reader's position is not complete any more, or the reader is new and the history is not.

    Load the rows from their tables, and continue with `changes(..., after=error.token)`. The token is from before you
    load, so no change is lost in between; the first ones may be in the rows already.
    """

    def __init__(self, message: str, token: str, code: int | None = None) -> None:
        super().__init__(message, code)
        self.token = token
