"""The reader's records, one by one, for statements that nothing interrupts."""

import json

from postgres.topics import UNAVAILABLE, records
from shared.waiting import eventually, expect, expect_equal

#: The columns of `kind`, with PostgreSQL's types.
KINDS = {
    "id": "integer", "flag": "boolean", "small": "smallint", "large": "bigint", "ratio": "real", "size": "double precision",
    "price": "numeric", "bytes": "bytea", "day": "date", "moment": "timestamp", "instant": "timestamptz", "clock": "time",
    "span": "interval", "data": "jsonb", "tag": "uuid", "label": "code", "feeling": "mood", "list": "integer[]"}
SCHEMA = f"""
    CREATE DOMAIN code AS text;
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE TABLE kind ({', '.join(f'{name} {kind}' for name, kind in KINDS.items())}, twice bigint GENERATED ALWAYS AS (id * 2) STORED);
    ALTER TABLE kind ADD PRIMARY KEY (id), REPLICA IDENTITY FULL;
    CREATE TABLE pair (a text, b integer, count integer, body text, PRIMARY KEY (b, a));
    ALTER TABLE pair ALTER body SET STORAGE EXTERNAL;
    GRANT SELECT ON kind, pair TO martlet;
    CREATE PUBLICATION martlet FOR TABLE kind, pair
"""
#: What a column is set to, and what a record has. Numbers with a fraction are compared as text.
FIRST = {
    "id": ("1", 1), "flag": ("true", True), "small": ("-2", -2), "large": ("9007199254740993", 9007199254740993),
    "ratio": ("0.1", "0.1"), "size": ("1e300", "1e+300"), "price": ("12345678901234567890.50", "12345678901234567890.50"),
    "bytes": (r"\x00ff", "AP8="), "day": ("2026-01-31", "2026-01-31Z"),
    "moment": ("2026-01-31 23:59:58.123456", "2026-01-31T23:59:58.123456Z"),
    "instant": ("2026-01-31 23:59:58+02", "2026-01-31T21:59:58Z"), "clock": ("00:00:01", "00:00:01Z"),
    "span": ("1 day 2 hours", "P1DT2H"), "data": ('{"a": "ä\\n"}', '{"a": "ä\\n"}'),
    "tag": ("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "label": ("it's \"x\"", "it's \"x\""), "feeling": ("sad", "sad"), "list": ("{1,2}", "{1,2}")}
SECOND = {
    "id": ("2", 2), "flag": ("false", False), "small": (None, None), "large": ("-9223372036854775808", -2**63),
    "ratio": ("NaN", "NaN"), "size": ("-Infinity", "-Infinity"), "price": ("NaN", "NaN"), "bytes": ("", ""),
    "day": ("infinity", "infinity"), "moment": ("-infinity", "-infinity"),
    "instant": ("0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC"), "clock": ("24:00:00", "24:00:00Z"),
    "span": (None, None), "data": ("[]", "[]"), "tag": (None, None), "label": ("", ""), "feeling": (None, None), "list": ("{}", "{}")}
LONG = "x" * 5000


def run(rig):
    server = rig.add_server(SCHEMA)
    _insert(server, FIRST)
    server.execute("INSERT INTO pair VALUES ('one', 1, 0, %s)", [LONG])
    plain = rig.add_reader(name="plain", partitions=1)
    described = rig.add_reader("--schemas", name="described", prefix=f"{rig.source_prefix}-schemas", partitions=1)
    for reader in (plain, described):
        reader.start()
        eventually(f"{reader.name} follows", lambda: reader.check() or reader.follows())
    _write(rig, server)

    first, second = {name: value for name, (_, value) in FIRST.items()}, {name: value for name, (_, value) in SECOND.items()}
    changed = {**first, "flag": False}
    one = {"a": "one", "b": 1, "count": 0, "body": LONG}
    counted = {**one, "count": 1, "body": UNAVAILABLE}
    key_of_one = {"b": 1, "a": "one"}
    expected_kinds = [
        ("r", {"id": 1}, None, first), ("c", {"id": 2}, None, second), ("u", {"id": 1}, first, changed),
        ("d", {"id": 1}, changed, None), (None, {"id": 1}, None, None)]
    expected_pairs = [
        ("r", key_of_one, None, one), ("u", key_of_one, None, counted),
        # Without REPLICA IDENTITY FULL, nothing but the key is known of the row before.
        ("d", key_of_one, {"a": "one", "b": 1, "count": None, "body": None}, None), (None, key_of_one, None, None),
        ("c", {"b": 2, "a": "one"}, None, {**counted, "b": 2}), ("t", None, None, None),
        ("c", {"b": 9, "a": "end"}, None, {"a": "end", "b": 9, "count": None, "body": None})]
    for reader, prefix in ((plain, rig.source_prefix), (described, f"{rig.source_prefix}-schemas")):
        pairs = eventually("the last record", lambda: _ended(rig, f"{prefix}.public.pair"))
        kinds = _records(rig, f"{prefix}.public.kind")
        for description, found, expected in ((".kind", kinds, expected_kinds), (".pair", pairs, expected_pairs)):
            expect_equal([(record["op"], record["key"], record["before"], record["after"]) for record in found], expected,
                         f"records of {reader.name}{description}")
        _check_sources(rig, server, [record["source"] for record in (*kinds, *pairs) if record["source"]], prefix)
    return f"{2 * len(expected_kinds + expected_pairs)} records as expected"


def _insert(server, row):
    server.execute(f"INSERT INTO kind ({', '.join(row)}) VALUES ({', '.join(f'%s::{KINDS[name]}' for name in row)})",
                   [text for text, _ in row.values()])


def _write(rig, server):
    _insert(server, SECOND)
    server.execute("UPDATE kind SET flag = false WHERE id = 1")
    server.execute("DELETE FROM kind WHERE id = 1")
    server.execute("UPDATE pair SET count = 1")
    server.execute("UPDATE pair SET b = 2")
    # Changes of the writer are not for the reader.
    server.execute("SELECT pg_replication_origin_create('martlet')")
    server.execute("SELECT pg_replication_origin_session_setup('martlet'); INSERT INTO pair VALUES ('of the writer', 3)")
    server.execute("TRUNCATE pair")
    server.execute("INSERT INTO pair VALUES ('end', 9)")


def _ended(rig, topic):
    rig.check_programs()
    found = _records(rig, topic)
    return found if found and found[-1]["key"] == {"b": 9, "a": "end"} else (False, f"{len(found)} records")


def _records(rig, topic):
    found = []
    for message in records(rig.driver.bootstrap, topic):
        value = _payload(message.value()) or {"op": None, "before": None, "after": None, "source": None}
        found.append({"key": _payload(message.key()), **value})
    return found


def _payload(text):
    if text is None:
        return None
    value = json.loads(text, parse_float=str)
    if value is None or "schema" not in value:
        return value
    _check_schema(value["schema"], value["payload"])
    return value["payload"]


def _check_schema(schema, value):
    """Expects that a schema of Kafka Connect describes a value."""
    expect_equal(schema["type"], "struct", "type of the schema")
    expect_equal([field["field"] for field in schema["fields"]], list(value), "fields of the schema")
    kinds = {"boolean": bool, "string": str, "bytes": str, "struct": dict, "int16": int, "int32": int, "int64": int, "float": str,
             "double": str}
    for field in schema["fields"]:
        part = value[field["field"]]
        if part is None:
            expect(field["optional"], f"{field['field']} is null, and not optional")
            continue
        expect(isinstance(part, kinds[field["type"]]), f"{field['field']} is no {field['type']}: {part!r}")
        if field["type"] == "struct":
            _check_schema(field, part)


def _check_sources(rig, server, sources, prefix):
    order = []
    for source in sources:
        expect_equal((source["connector"], source["name"], source["db"], source["schema"]), ("postgresql", prefix, "shop", "public"),
                     "parts of source")
        committed, lsn = json.loads(source["sequence"])
        expect_equal(int(lsn), source["lsn"], "the LSN in the sequence")
        if source["snapshot"] == "true":
            expect_equal((committed, source["txId"]), (None, None), "commit of a row that was read")
            continue
        order.append((source["table"], int(committed), int(lsn)))
        time, = server.execute("SELECT floor(extract(epoch FROM pg_xact_commit_timestamp(%s::text::xid)) * 1000)", [source["txId"]])
        expect_equal(source["ts_ms"], int(time[0]), "the time of a commit")
    expect_equal(order, sorted(order), "order of records by their sequence")
