"""Commands that run to their end."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping, Optional, Sequence

from martlet import _command
from martlet._errors import Error, UsageError, WaitTimeout

#: The exit code of `martlet wait` when the time is over.
_TIMEOUT = 2


def _document(arguments: Sequence[str], *, reports: bool = False) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_command.run(arguments, reports=reports))
    return document


def attach(
    store: str | os.PathLike[str], *, tables: Iterable[str] = (), identity: Optional[Mapping[str, Sequence[str]]] = None,
    unique_policy: Optional[Mapping[str, str]] = None, seed: Optional[object] = None, keep_old_values: bool = False,
    publish_existing: bool = False,
) -> dict[str, Any]:
    """Tracks tables of an SQLite file: from then on, the history records every change to them.

    Turns a plain database into a store first. Programs that write to the file need no change. Calling it again is
    harmless.

    tables: None given, every table that can be tracked.
    identity: the columns that identify a table's rows on every node.
    unique_policy: `keepNewest` or `keepOldest`, for rows of a table that claim the same unique key.
    seed: a UUID. Copies of one database that are attached with the same seed agree on the IDs of their rows.
    keep_old_values: also record the values before each change.
    publish_existing: also add the existing rows to the history, so that other nodes, and readers of it, get them.

    Returns what `martlet attach --json` prints: `attached` (a list of `table` and `identity`), `alreadyTracked`, `changed`,
    `refused` (a list of `table`, `reason` and `hint`), `warnings`, `existingRows`. Refused are tables that can't be
    tracked, such as full-text indexes. If `tables` names one, that is an Error, and nothing is tracked.
    """
    arguments = ["attach", _command.path(store), "--json"]
    for table in tables:
        arguments.append(f"--table={table}")
    for table, columns in (identity or {}).items():
        if isinstance(columns, str):
            raise UsageError(f"identity: the columns of {table} must be a list")
        arguments.append(f"--identity={table}={','.join(columns)}")
    for table, policy in (unique_policy or {}).items():
        arguments.append(f"--unique-policy={table}={policy}")
    if seed is not None:
        arguments.append(f"--seed={seed}")
    if keep_old_values:
        arguments.append("--keep-old-values")
    if publish_existing:
        arguments.append("--publish-existing")
    return _document(arguments, reports=True)


def status(store: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the state of a node, as `martlet status --json` prints it.

    For instance `unpublished` (the number of transactions that are not published yet), `parked`, `conflicts`, `origins`
    (the other nodes) and `cursors` (the readers of the history). Reads the whole history to measure it.
    """
    return _document(["status", _command.path(store), "--json"])


def wait(
    store: str | os.PathLike[str], *, published: bool = False, on: Iterable[str] = (), on_all: bool = False,
    through: Optional[str] = None, timeout: float = 30.0,
) -> None:
    """Waits until what is committed has reached the broker, or other nodes. An agent must run on the store.

    Give one of these three:

    published: wait until the broker has acknowledged the commits.
    on: wait until these nodes have applied them, by name or ID.
    on_all: wait until all other nodes have applied them.

    through: wait only for commits up to this token, for instance of a Transaction. None: all until now.
    timeout: in seconds. After that, raises WaitTimeout.
    """
    nodes = [on] if isinstance(on, str) else list(on)
    if [published, bool(nodes), on_all].count(True) != 1:
        raise UsageError("Specify what to wait for: published=True, on=[...] or on_all=True.")
    if not 0 <= timeout < float("inf"):
        raise UsageError("timeout: must be a number of seconds, 0 or more.")
    arguments = ["wait", _command.path(store), f"--timeout={round(timeout * 1000)}ms"]
    arguments += ["--published"] if published else ["--on-all"] if on_all else [f"--on={node}" for node in nodes]
    if through is not None:
        arguments.append(f"--through={through}")
    try:
        _command.run(arguments)
    except Error as error:
        if error.code == _TIMEOUT:
            raise WaitTimeout(str(error), error.code) from None
        raise
