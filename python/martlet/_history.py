"""Transactions of the history, from the JSON that the command prints."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import uuid
from typing import Any, Mapping, Optional, Tuple, Union

#: The author of the transactions that came from other nodes.
SYNC_AUTHOR = "martlet.sync"


class RawText(bytes):
    """A text that is not valid UTF-8, or contains NUL."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A row of another table, by its identity."""

    entity: str
    identity: Identity


#: A value of a column, as sqlite3 has it; and what sqlite3 can't express. A real number without a fraction is an int.
Value = Union[None, int, float, str, bytes, RawText, Reference]
#: What all nodes know a row by: the UUID that Martlet assigned, or the values of the identifying columns. None if unknown.
Identity = Union[None, uuid.UUID, Tuple[Value, ...]]


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a transaction of another node comes from. `node` and `sequence` identify it on all nodes."""

    node: uuid.UUID
    name: Optional[str]
    sequence: int
    author: Optional[str]
    timestamp: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of one row."""

    number: int
    #: The table.
    entity: str
    #: insert, update or delete.
    kind: str
    identity: Identity
    #: The integer primary key in this file, if the table has one.
    row: Optional[int]
    #: All columns of an insert, the changed ones of an update, none of a delete.
    values: Mapping[str, Value]
    #: The values from before an update, if the table was attached with `keep_old_values`.
    old_values: Mapping[str, Value]
    #: Of a delete: the identity, or all values if the table was attached with `keep_old_values`.
    tombstone: Mapping[str, Value]
    timestamp: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Transaction:
    """A transaction of this store's history."""

    number: int
    #: The position after this transaction.
    token: str
    #: None for programs that don't use Martlet. SYNC_AUTHOR for transactions of other nodes.
    author: Optional[str]
    context: Optional[str]
    process: Optional[str]
    timestamp: datetime.datetime
    trace_id: Optional[str]
    #: None for transactions of this node.
    origin: Optional[Origin]
    changes: Tuple[Change, ...]


def transaction(document: Mapping[str, Any]) -> Transaction:
    origin = document.get("origin")
    return Transaction(
        number=document["transaction"], token=document["token"], author=document.get("author"),
        context=document.get("context"), process=document.get("process"), timestamp=_time(document["timestamp"]),
        trace_id=document.get("traceID"), origin=None if origin is None else _origin(origin),
        changes=tuple(map(_change, document["changes"])),
    )


def _origin(document: Mapping[str, Any]) -> Origin:
    return Origin(
        node=uuid.UUID(document["node"]), name=document.get("name"), sequence=document["sequence"],
        author=document.get("author"), timestamp=_time(document["timestamp"]),
    )


def _change(document: Mapping[str, Any]) -> Change:
    return Change(
        number=document["change"], entity=document["entity"], kind=document["kind"],
        identity=_identity(document.get("identity")), row=document.get("row"), values=_values(document.get("values")),
        old_values=_values(document.get("oldValues")), tombstone=_values(document.get("tombstone")),
        timestamp=_time(document["timestamp"]),
    )


def _values(document: Optional[Mapping[str, Any]]) -> Mapping[str, Value]:
    return {name: _value(value) for name, value in (document or {}).items()}


def _value(value: Any) -> Value:
    if value is None or isinstance(value, (int, float, str)):
        return value
    if "blob" in value:
        return base64.b64decode(value["blob"])
    if "rawText" in value:
        return RawText(base64.b64decode(value["rawText"]))
    if "real" in value:
        return float(value["real"])
    return Reference(value["reference"], _identity(value.get("identity")))


def _identity(value: Any) -> Identity:
    if value is None:
        return None
    return uuid.UUID(value) if isinstance(value, str) else tuple(map(_value, value))


def _time(text: str) -> datetime.datetime:
    try:
        # Python 3.9 and 3.10 don't know the Z.
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        # A clock was wrong by thousands of years. Python's years have four digits.
        end = datetime.datetime.min if text.startswith(("-", "0")) else datetime.datetime.max
        return end.replace(tzinfo=datetime.timezone.utc)
