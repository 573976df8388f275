"""The records of `martlet export`, as the writer reads them."""

import dataclasses
import json

#: The author of what the nodes got from PostgreSQL. Nothing else may be ingested into tables that are applied here.
INGESTED = "martlet.ingest"


class Unusable(Exception):
    """A record that can't be applied, and what to do about it."""


class Number(str):
    """A number with a fraction, as the record has it: PostgreSQL's types may have more digits than a float."""


def parse(text):
    return json.loads(text, parse_float=Number)


@dataclasses.dataclass(frozen=True)
class Record:
    #: (topic, partition)
    partition: tuple
    offset: int
    #: As it is on the topic.
    raw_key: bytes
    #: By column. None if the record can't be read: `problem` says why.
    key: dict | None = None
    #: The row by column. None if the record deletes it.
    row: dict | None = None
    #: Whether it has no value: it then follows a delete, or stands for one that the broker has forgotten.
    is_null: bool = False
    #: The newest timestamp of the row: 48 bits of milliseconds since 1970, and 16 of a counter. 0 if the record has none.
    hlc: int = 0
    #: A program's insert after this time, in milliseconds since 1970, is newer than the delete. None: none is.
    deleted_at: int | None = None
    #: Columns that have bytes, although their type is another.
    columns_of_bytes: tuple = ()
    problem: str | None = None

    @property
    def name(self):
        topic, partition = self.partition
        return f"{topic}/{partition}/{self.offset}"


def read(message):
    """The record of a message of confluent_kafka."""
    parts = {"partition": (message.topic(), message.partition()), "offset": message.offset(), "raw_key": message.key()}
    try:
        key = _payload(message.key())
        if message.value() is None:
            return Record(**parts, key=key, is_null=True, deleted_at=message.timestamp()[1])
        value = _payload(message.value())
        source = value["source"]
        hlc = source["hlc"] or 0
        if value["op"] == "d":
            return Record(**parts, key=key, hlc=hlc, deleted_at=_time_of_delete(source))
        return Record(**parts, key=key, row=value["after"], hlc=hlc, columns_of_bytes=_columns_of_bytes(message))
    except (ValueError, TypeError, KeyError) as problem:
        return Record(**parts, problem=f"it is no record of an export: {problem!r}")


def _time_of_delete(source):
    if source["hlc"] is None:
        # The nodes have no row to show, although nobody may have deleted it.
        return None
    if source.get("author") == INGESTED:
        # A delete by PostgreSQL's own program: whatever was inserted since then, in the same transaction perhaps, is newer.
        return -1
    return source["hlc"] >> 16


def _payload(text):
    value = parse(text)
    return value["payload"] if value.keys() == {"schema", "payload"} else value


def _columns_of_bytes(message):
    found = dict(message.headers() or []).get("martlet-bytes")
    return tuple(parse(found)) if found else ()
