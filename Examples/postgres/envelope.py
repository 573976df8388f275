"""Writes rows of PostgreSQL in the envelope of Debezium's connector for PostgreSQL, as JSON with or without schemas.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events

Times are text, as with `time.precision.mode=isostring`: numbers would not tell milliseconds from microseconds where there is no schema.
"""

import base64
import dataclasses
import json
from collections.abc import Callable

from pgoutput import UNCHANGED

VERSION = "0.1.0"

#: What Debezium writes for a large value that an update did not change, and that the log does not have.
UNAVAILABLE = "__debezium_unavailable_value"


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def _number(text):
    """JSON has neither NaN nor infinity: they are text."""
    return text if text.lstrip("-")[0].isdigit() else quoted(text)


def _base64(text):
    return quoted(base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode())


def _date(text):
    return quoted(f"{text}Z" if text[-1].isdigit() else text)


def _time(text):
    """`2026-01-31 23:59:58.5` as `2026-01-31T23:59:58.5Z`, and `23:59:58.5` as `23:59:58.5Z`. Infinity, and years BC, stay as they are."""
    return quoted(f"{text.replace(' ', 'T')}Z" if text[-1].isdigit() else text)


def _zoned(text):
    """`2026-01-31 23:59:58.5+00` as `2026-01-31T23:59:58.5Z`: the session's time zone is UTC."""
    return _time(text.removesuffix("+00")) if text.endswith("+00") else quoted(text)


@dataclasses.dataclass(frozen=True)
class Type:
    """A type of Kafka Connect's schemas, and how PostgreSQL's text becomes JSON."""

    type: str
    name: str | None = None
    to_json: Callable = quoted

    def json(self, text):
        if text is None:
            return "null"
        if text is UNCHANGED:
            return _base64(UNAVAILABLE.encode().hex()) if self.type == "bytes" else quoted(UNAVAILABLE)
        return self.to_json(text)


_STRING = Type("string")
_TYPES = {
    "bool": Type("boolean", to_json={"t": "true", "true": "true", "f": "false", "false": "false"}.__getitem__),
    "int2": Type("int16", to_json=str),
    "int4": Type("int32", to_json=str),
    "int8": Type("int64", to_json=str),
    "oid": Type("int64", to_json=str),
    "float4": Type("float", to_json=_number),
    "float8": Type("double", to_json=_number),
    "bytea": Type("bytes", to_json=_base64),
    "json": Type("string", "io.debezium.data.Json"),
    "jsonb": Type("string", "io.debezium.data.Json"),
    "uuid": Type("string", "io.debezium.data.Uuid"),
    "xml": Type("string", "io.debezium.data.Xml"),
    "date": Type("string", "io.debezium.time.IsoDate", _date),
    "time": Type("string", "io.debezium.time.IsoTime", _time),
    "timetz": Type("string", "io.debezium.time.ZonedTime", _zoned),
    "timestamp": Type("string", "io.debezium.time.IsoTimestamp", _time),
    "timestamptz": Type("string", "io.debezium.time.ZonedTimestamp", _zoned),
    "interval": Type("string", "io.debezium.time.Interval"),
}


def type_of(name, schemas):
    """The Type for one of PostgreSQL, by its name in pg_type. Those that are not listed are written as their text."""
    if name == "numeric" and not schemas:
        # All of its digits. With a schema, text has them.
        return Type("string", to_json=_number)
    return _TYPES.get(name, _STRING)


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a record comes from: the parts of `source` that differ from record to record."""

    #: When it was committed, in milliseconds since 1970.
    time: int
    lsn: int
    xid: int | None
    #: Where its transaction was committed. With `lsn` it orders the records. None in a snapshot.
    commit_lsn: int | None


class Table:
    """A table as its topic shows it. Rows are lists of text, as PostgreSQL writes values."""

    def __init__(self, prefix, database, schema, name, columns, key, schemas):
        """`columns`: pairs of name and Type. `key`: the names of the primary key's columns."""
        self.topic = f"{prefix}.{schema}.{name}"
        self._where = {"name": prefix, "db": database, "schema": schema, "table": name}
        self._columns = columns
        names = [column for column, _ in columns]
        self._key = [names.index(column) for column in key]
        self._schemas = schemas

    def key_values(self, row):
        """What identifies a row."""
        return [row[index] for index in self._key]

    def key(self, row):
        """The key of a row's records."""
        columns = [self._columns[index] for index in self._key]
        return self._record(_struct(columns, self.key_values(row)), lambda: {
            "type": "struct", "optional": False, "name": f"{self.topic}.Key",
            "fields": [_field(name, kind, False) for name, kind in columns]})

    def value(self, operation, before, after, source, now):
        """The value of a record. `before` and `after` may be None. `now`: milliseconds since 1970."""
        payload = (f'{{"before":{_struct(self._columns, before)},"after":{_struct(self._columns, after)},'
                   f'"source":{self._source(source)},"transaction":null,"op":"{operation}","ts_ms":{now}}}')
        return self._record(payload, self._envelope_schema)

    def _source(self, source):
        is_snapshot = source.commit_lsn is None
        sequence = [None if is_snapshot else str(source.commit_lsn), str(source.lsn)]
        return json.dumps({
            "version": VERSION, "connector": "postgresql", **self._where, "ts_ms": source.time,
            "snapshot": "true" if is_snapshot else "false", "sequence": json.dumps(sequence, separators=(",", ":")),
            "txId": source.xid, "lsn": source.lsn, "xmin": None}, ensure_ascii=False, separators=(",", ":"))

    def _record(self, payload, schema):
        if self._schemas:
            payload = f'{{"schema":{json.dumps(schema(), separators=(",", ":"))},"payload":{payload}}}'
        return payload.encode()

    def _envelope_schema(self):
        def row(field):
            fields = [_field(name, kind, index not in self._key) for index, (name, kind) in enumerate(self._columns)]
            return {"type": "struct", "fields": fields, "optional": True, "name": f"{self.topic}.Value", "field": field}

        return {
            "type": "struct", "optional": False, "name": f"{self.topic}.Envelope", "version": 1,
            "fields": [row("before"), row("after"), _SOURCE_SCHEMA, _TRANSACTION_SCHEMA,
                       _plain("op", "string", False), _plain("ts_ms", "int64", True)]}


def _struct(columns, row):
    if row is None:
        return "null"
    return "{" + ",".join(f"{quoted(name)}:{kind.json(text)}" for (name, kind), text in zip(columns, row)) + "}"


def _plain(name, kind, is_optional):
    return {"type": kind, "optional": is_optional, "field": name}


def _field(name, kind, is_optional):
    return {"type": kind.type, "optional": is_optional, **({"name": kind.name, "version": 1} if kind.name else {}), "field": name}


_SOURCE_SCHEMA = {
    "type": "struct", "optional": False, "name": "io.debezium.connector.postgresql.Source", "field": "source",
    "fields": [
        _plain("version", "string", False), _plain("connector", "string", False), _plain("name", "string", False),
        _plain("db", "string", False), _plain("schema", "string", False), _plain("table", "string", False),
        _plain("ts_ms", "int64", False), _plain("snapshot", "string", True), _plain("sequence", "string", True),
        _plain("txId", "int64", True), _plain("lsn", "int64", True), _plain("xmin", "int64", True)]}
_TRANSACTION_SCHEMA = {
    "type": "struct", "optional": True, "name": "event.block", "version": 1, "field": "transaction",
    "fields": [_plain("id", "string", False), _plain("total_order", "int64", False),
               _plain("data_collection_order", "int64", False)]}
