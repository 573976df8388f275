"""Follows the history."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import weakref
from types import TracebackType
from typing import Iterable, Iterator, Optional, Type

from martlet import _command, _history
from martlet._errors import ReloadNeeded, UsageError
from martlet._history import Transaction

#: How long the command may take to end, in seconds.
_END_TIMEOUT = 10.0


def changes(
    store: str | os.PathLike[str], cursor: str, *, after: Optional[str] = None, start: Optional[str] = None,
    author: Optional[str] = None, exclude_author: Optional[str] = None, no_author: bool = False,
    entities: Iterable[str] = (), follow: bool = True,
) -> Changes:
    """Iterates over the transactions of a store, oldest first: those that a reader has not processed yet, and new ones.

    The reader gets each transaction at least once, whenever it ends: the position that the store keeps under `cursor`
    moves past a transaction when the loop asks for the next one, or when `Changes.acknowledge` is called. History after
    the cursor is not deleted; if the reader is gone for good, run `martlet history cursors remove STORE CURSOR`. Give each
    reader a cursor of its own.

    after: begin after this token, and move the cursor there.
    start: `oldest` (the default) or `newest`: where to begin without a cursor of that name.
    author, exclude_author, no_author: only transactions of this author, of any other, or without an author.
    entities: only transactions that change one of these tables.
    follow: wait for new transactions. False: end after those that there are.

    Raises ReloadNeeded, while iterating, if history after the position was deleted. Rows that were in the file before it
    was attached, without `publish_existing`, are not in the history.
    """
    arguments = ["history", "tail", _command.path(store), "--json", f"--cursor={cursor}", "--acknowledge"]
    if isinstance(entities, str):
        raise UsageError("entities: must be a list of tables")
    for name, value in [("after", after), ("start", start), ("author", author), ("exclude-author", exclude_author)]:
        if value is not None:
            arguments.append(f"--{name}={value}")
    if no_author:
        arguments.append("--no-author")
    arguments += [f"--entity={entity}" for entity in entities]
    if not follow:
        arguments.append("--no-follow")
    return Changes(arguments)


#: Those whose command may still run.
_open: weakref.WeakSet[Changes] = weakref.WeakSet()


class Changes(Iterator[Transaction]):
    """The transactions of `changes`. Runs the command until it is closed, or no longer used. Not for several threads.

    An exception while it waits for the next transaction closes it, too, for instance of a signal's handler. A forked
    process, for instance of `multiprocessing`, leaves it to its parent, and gets no more transactions.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._unacknowledged: Optional[Transaction] = None
        self._is_closed = True
        # A file, so that the command never waits for somebody to read its errors.
        self._errors = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [_command.find(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                # Ctrl-C in a terminal is for this program, which may finish what it is doing.
                start_new_session=True)
        except BaseException:
            self._errors.close()
            raise
        self._is_closed = False
        _open.add(self)

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> Transaction:
        if self._is_closed:
            raise StopIteration
        try:
            self.acknowledge()
            self._unacknowledged = self._read()
            if self._unacknowledged is not None:
                return self._unacknowledged
        except BaseException:
            # Somebody who goes on would acknowledge what was not returned: part of a line may be lost already.
            self.close()
            raise
        raise StopIteration

    def _read(self) -> Optional[Transaction]:
        """The next transaction; None at the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self._end()
            return None
        document = json.loads(line)
        if document.get("event") == "reload":
            self.close()
            raise ReloadNeeded(document["message"], document["token"], self._process.returncode)
        return _history.transaction(document)

    def acknowledge(self) -> None:
        """Notes that the last transaction is processed: it won't come again. The loop does so when it asks for the next."""
        if self._unacknowledged is None or self._is_closed:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{self._unacknowledged.token}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # The command has ended; the next line says why.
        self._unacknowledged = None

    def close(self) -> None:
        """Ends the command. The last transaction comes again next time, unless it was acknowledged."""
        if self._is_closed:
            return
        self._is_closed = True
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        try:
            self._process.wait(_END_TIMEOUT)
        except BaseException as error:
            # Not in time, or somebody has pressed Ctrl-C.
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            with self._errors:
                self._errors.seek(0)
                self._text = self._errors.read().decode(errors="replace")

    def _end(self) -> None:
        """Waits for the command, which has closed its output. Raises Error if it failed."""
        self.close()
        code = self._process.returncode
        if code != 0:
            raise _command.failure(code, self._text)

    def __enter__(self) -> Changes:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self.close()


def _leave_to_parent() -> None:
    """Lets go of the pipes in a forked process: the command ends when nobody has them any more."""
    null = os.open(os.devnull, os.O_RDWR)
    for reader in _open:
        for pipe in (reader._process.stdin, reader._process.stdout):
            if pipe is not None and not pipe.closed:
                os.dup2(null, pipe.fileno(), inheritable=False)
    os.close(null)


os.register_at_fork(after_in_child=_leave_to_parent)
