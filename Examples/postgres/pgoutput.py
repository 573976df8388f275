"""Decodes the messages of PostgreSQL's output plugin `pgoutput`, version 1 of its protocol.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

import dataclasses
import struct

#: Stands for a large (TOASTed) value that an update did not change: the log doesn't have it.
UNCHANGED = object()

INSERT, UPDATE, DELETE = "I", "U", "D"

#: Microseconds from 1970 to 2000, where PostgreSQL's clock begins.
EPOCH_MICROSECONDS = 946_684_800_000_000


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    #: The type's OID.
    type: int


@dataclasses.dataclass(frozen=True)
class Relation:
    oid: int
    schema: str
    table: str
    columns: tuple


@dataclasses.dataclass(frozen=True)
class Begin:
    #: Where the transaction was committed. Transactions come in this order.
    commit_lsn: int
    #: When, in milliseconds since 1970.
    time: int
    xid: int


@dataclasses.dataclass(frozen=True)
class Commit:
    #: Where the next transaction may begin: what is to be confirmed to the slot.
    end_lsn: int


@dataclasses.dataclass(frozen=True)
class Origin:
    name: str


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a row. Rows are lists of text, None and UNCHANGED."""

    relation: Relation
    #: INSERT, UPDATE or DELETE.
    kind: str
    #: The row before, or its key. None for an insert, and for an update that leaves the key alone.
    old: list | None
    #: Whether `old` is the whole row (REPLICA IDENTITY FULL), and not just its key.
    is_whole: bool
    #: None for a delete.
    new: list | None


@dataclasses.dataclass(frozen=True)
class Truncate:
    relations: list


class Decoder:
    """Keeps the relations that the messages refer to. One decoder reads one connection."""

    def __init__(self):
        self._relations = {}

    def decode(self, payload):
        """Returns the message, or None for one that changes no row. Relations are kept, and also returned."""
        read = _Reader(payload)
        kind = read.char()
        if kind == INSERT:
            relation = self._relations[read.int32()]
            return Change(relation, kind, None, False, self._tuple(read, expected="N"))
        if kind == UPDATE:
            relation, old, mark = self._relations[read.int32()], None, read.char()
            if mark in "KO":
                old, new = read.row(), self._tuple(read, expected="N")
            else:
                new = read.row()
            return Change(relation, kind, old, mark == "O", new)
        if kind == DELETE:
            relation, mark = self._relations[read.int32()], read.char()
            return Change(relation, kind, read.row(), mark == "O", None)
        if kind == "B":
            return Begin(read.int64(), (read.int64() + EPOCH_MICROSECONDS) // 1000, read.int32())
        if kind == "C":
            read.skip(1 + 8)  # flags, LSN of the commit
            return Commit(read.int64())
        if kind == "O":
            read.skip(8)  # the LSN at the origin
            return Origin(read.string())
        if kind == "R":
            return self._relation(read)
        if kind == "T":
            count, _options = read.int32(), read.skip(1)
            return Truncate([self._relations[read.int32()] for _ in range(count)])
        return None  # a type, or a message of pg_logical_emit_message

    def _relation(self, read):
        oid, schema, table = read.int32(), read.string(), read.string()
        read.skip(1)  # the replica identity
        columns = []
        for _ in range(read.int16()):
            read.skip(1)  # whether the column is part of the replica identity
            columns.append(Column(read.string(), read.int32()))
            read.skip(4)  # the modifier of the type
        relation = Relation(oid, schema or "pg_catalog", table, tuple(columns))
        self._relations[oid] = relation
        return relation

    @staticmethod
    def _tuple(read, expected):
        mark = read.char()
        if mark != expected:
            raise ValueError(f"pgoutput: tuple {mark!r} instead of {expected!r}")
        return read.row()


class _Reader:
    def __init__(self, payload):
        self._payload = bytes(payload)
        self._at = 0

    def skip(self, count):
        self._at += count

    def _unpack(self, form):
        value, = struct.unpack_from(form, self._payload, self._at)
        self._at += struct.calcsize(form)
        return value

    def char(self):
        return self._unpack("c").decode("ascii")

    def int16(self):
        return self._unpack(">H")

    def int32(self):
        return self._unpack(">I")

    def int64(self):
        return self._unpack(">q")

    def string(self):
        end = self._payload.index(0, self._at)
        text = self._payload[self._at:end].decode()
        self._at = end + 1
        return text

    def row(self):
        values = []
        for _ in range(self.int16()):
            kind = self.char()
            if kind == "t":
                length = self.int32()
                values.append(self._payload[self._at:self._at + length].decode())
                self._at += length
            elif kind == "n":
                values.append(None)
            elif kind == "u":
                values.append(UNCHANGED)
            else:
                raise ValueError(f"pgoutput: column of the unknown kind {kind!r}")
        return values
