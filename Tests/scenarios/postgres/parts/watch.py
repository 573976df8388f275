"""What PostgreSQL notes of its programs' changes: in every kind of table, for every program, and while the writer works."""

import contextlib
import itertools

import psycopg2

from postgres.exporter import Exporter, now
from shared.waiting import Failure, eventually, expect, expect_equal

#: Columns of one primary key: type, the value in a record, and what a program writes. Some look different in the sessions of programs
#: whose settings are others.
KEY = {
    "code": ("char(4)", "ab", "'ab'"), "amount": ("numeric(10, 2)", 1, "1.00"), "exact": ("numeric", 2.50, "2.500"),
    "ratio": ("double precision", 0.1 + 0.2, "0.30000000000000004"), "at": ("timestamptz", "2026-07-01T12:00:00.5Z", "'2026-07-01 14:00:00.5+02'"),
    "local": ("timestamp", "2026-07-01T12:00:00Z", "'2026-07-01 12:00'"), "day": ("date", 20_636, "DATE '2026-07-02'"),
    "span": ("interval", "P1M2DT3H", "INTERVAL '1 month 2 days 3 hours'"), "flag": ("boolean", True, "true"),
    "raw": ("bytea", "AFz/", r"decode('005cff', 'hex')"), "big": ("bigint", 2**62, str(2**62)),
    "id": ("uuid", "6F2C5C2E-3B1E-4C55-9F0A-0D8F5B1F8A11", "'6f2c5c2e-3b1e-4c55-9f0a-0d8f5b1f8a11'"),
    "during": ("tstzrange", "[2026-07-01 12:00:00+00,2026-07-01 13:00:00+00)", "'[2026-07-01 14:00+02,2026-07-01 15:00+02)'"),
}
SETTINGS = ("SET timezone = 'Asia/Kolkata'; SET datestyle = German; SET intervalstyle = postgres_verbose; SET bytea_output = escape; "
            "SET extra_float_digits = -3")
SCHEMA = f"""
    CREATE TABLE odd (note text, {', '.join(f"{name} {declared}" for name, (declared, _, _) in KEY.items())},
        PRIMARY KEY ({', '.join(reversed(KEY))}));
    CREATE TABLE part (id integer, region text, note text, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
    CREATE TABLE part_north PARTITION OF part FOR VALUES IN ('north');
    CREATE TABLE part_south PARTITION OF part FOR VALUES IN ('south');
    CREATE TABLE plain (id integer PRIMARY KEY, note text, own text);
    CREATE TABLE unwatched (id integer PRIMARY KEY, note text);
    CREATE TABLE keyless (note text);
    SELECT martlet.watch('odd'), martlet.watch('part'), martlet.watch('plain', '{{note}}');
    CREATE ROLE till LOGIN;
    GRANT SELECT, INSERT, UPDATE, DELETE ON odd, part, plain, unwatched TO martlet, till;
"""


def run(rig):
    server = rig.add_server(SCHEMA)
    _refused(server)
    exporters = {name: Exporter(rig, name, key) for name, key in
                 {"odd": list(KEY), "part": ["region", "id"], "plain": ["id"], "unwatched": ["id"]}.items()}
    writer = rig.add_program("writer", "write_postgres.py",
                             *(f"--table={exporter.topic}=public.{name}" for name, exporter in exporters.items()))
    writer.start()
    with contextlib.closing(psycopg2.connect(server.dsn("till"))) as program:
        _odd_keys(server, program, exporters["odd"])
        _partitions(server, program, exporters["part"])
        _changes_of_keys(server, program, exporters["plain"])
        _replicas(server, exporters["plain"])
        _open_transactions(server, program, exporters["plain"], writer)
        _locks(server, program, exporters["plain"], writer)
    _future(server, exporters["unwatched"])


def _run(program, *statements):
    """Runs a transaction of a program, as a user who may change the tables and nothing else."""
    with program, program.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _rows(server, exporter, query):
    exporter.wait()
    return server.execute(query)


def _refused(server):
    for arguments, reason in (("'keyless'", "has no primary key"), ("'plain', '{note,nothing}'", "has no column nothing")):
        try:
            server.execute(f"SELECT martlet.watch({arguments})")
        except psycopg2.errors.RaiseException as problem:
            expect(reason in str(problem), f"the error of watch({arguments}) is {problem}")
        else:
            raise Failure(f"watch({arguments}) succeeds")


def _odd_keys(server, program, exporter):
    """The writer and the trigger write the same key for a row, whatever the settings of the program's session."""
    key, before = {name: value for name, (_, value, _) in KEY.items()}, now() - 60_000
    query = "SELECT note FROM odd"
    exporter.send("c", key, before, note="edge")
    expect_equal(_rows(server, exporter, query), [("edge",)], "a row")
    _run(program, SETTINGS, "UPDATE odd SET note = 'program'")
    exporter.send("u", key, before + 1, note="older")
    expect_equal(_rows(server, exporter, query), [("program",)], "a record that is older than the program's update")
    values = ", ".join(value for _, _, value in KEY.values())
    _run(program, "DELETE FROM odd", f"INSERT INTO odd ({', '.join(KEY)}, note) VALUES ({values}, 'again')")
    exporter.send("d", key, before + 2)
    expect_equal(_rows(server, exporter, query), [("again",)], "a delete that is older than the program's insert")
    exporter.send("d", key, now())
    expect_equal(_rows(server, exporter, query), [], "a newer delete")
    expect_equal(server.execute("SELECT relation::text, changed, inserted FROM martlet.row"), [("odd", None, None)], "what is known of the row")


def _partitions(server, program, exporter):
    before = now() - 60_000
    query = "SELECT tableoid::regclass::text, id, note FROM part"
    exporter.send("c", ("north", 1), before, note="edge")
    expect_equal(_rows(server, exporter, query), [("part_north", 1, "edge")], "a row of a partition")
    _run(program, "UPDATE part SET note = 'program'")
    exporter.send("u", ("north", 1), before + 1, note="older")
    expect_equal(_rows(server, exporter, query), [("part_north", 1, "program")], "a record that is older than the program's update")
    _run(program, "UPDATE part SET region = 'south'")
    exporter.send("u", ("north", 1), before + 2, note="older")
    exporter.send("d", ("south", 1), before + 2)
    expect_equal(_rows(server, exporter, query), [("part_south", 1, "program")], "records that are older than a change of the partition")
    exporter.send("d", ("south", 1), now())
    expect_equal(_rows(server, exporter, query), [], "a newer delete")


def _changes_of_keys(server, program, exporter):
    """They count even if the key is not among the columns that are watched."""
    before = now() - 60_000
    query = "SELECT id, note FROM plain"
    _run(program, "INSERT INTO plain VALUES (1, 'program')", "UPDATE plain SET id = 2")
    exporter.send("u", 1, before, note="older")
    exporter.send("d", 2, before)
    expect_equal(_rows(server, exporter, query), [(2, "program")], "records that are older than the change of the key")
    exporter.send("d", 2, now())
    expect_equal(_rows(server, exporter, query), [], "a newer delete")


def _replicas(server, exporter):
    """What comes by PostgreSQL's own replication, or by the writer, is not noted."""
    server.execute("SET session_replication_role = replica; INSERT INTO plain VALUES (3, 'replica')")
    exporter.send("c", 4, 1000, note="edge")
    expect_equal(_rows(server, exporter, "SELECT * FROM plain ORDER BY id"), [(3, "replica", None), (4, "edge", None)], "rows")
    expect_equal(server.execute("SELECT key, changed FROM martlet.row WHERE key IN ('[3]', '[4]')"), [([4], None)], "what is known of them")
    server.execute("DELETE FROM plain")


def _open_transactions(server, program, exporter, writer):
    """The writer decides after a program's transaction that was there before, by the times of its statements."""
    for description, statements, operation, is_applied in [
            ("an update before a program's", ["UPDATE plain SET note = 'program' WHERE id = %s"], "u", False),
            ("an update after a program's", ["UPDATE plain SET note = 'program' WHERE id = %s"], "u", True),
            ("an update before a program's delete", ["DELETE FROM plain WHERE id = %s"], "u", False),
            ("a delete before a program's insert",
             ["DELETE FROM plain WHERE id = %s", "INSERT INTO plain VALUES (%s, 'program')"], "d", False),
            ("a delete after a program's insert", ["DELETE FROM plain WHERE id = %s", "INSERT INTO plain VALUES (%s, 'program')"], "d", True)]:
        key = next(_keys)
        exporter.send("c", key, now() - 60_000, note="edge")
        exporter.wait()
        with program, program.cursor() as cursor:
            before = now() - 1
            for statement in statements:
                cursor.execute(statement, [key])
            _await_retry(writer, exporter, lambda: exporter.send(operation, key, now() if is_applied else before, note="record"))
        left = [] if is_applied and operation == "d" or not is_applied and len(statements) == 1 and "DELETE" in statements[0] else [
            ("record" if is_applied else "program",)]
        expect_equal(_rows(server, exporter, f"SELECT note FROM plain WHERE id = {key}"), left, description)


def _locks(server, program, exporter, writer):
    """A program that has locked a row, and changes it while the writer waits for it, goes on."""
    key = next(_keys)
    exporter.send("c", key, now() - 60_000, note="edge")
    exporter.wait()
    with program, program.cursor() as cursor:
        cursor.execute("SELECT FROM plain WHERE id = %s FOR UPDATE", [key])
        _await_retry(writer, exporter, lambda: exporter.send("u", key, now(), note="record"))
        cursor.execute("UPDATE plain SET note = 'program' WHERE id = %s", [key])
    expect_equal(_rows(server, exporter, f"SELECT note FROM plain WHERE id = {key}"), [("program",)], "a row that a program had locked")


_keys = itertools.count(100)


def _await_retry(writer, exporter, send):
    """Sends a record, and waits until the writer has tried in vain to apply it."""
    offset = exporter.ends.offsets()[0]
    send()
    text = f"trying {exporter.topic}/0/{offset} "
    eventually("the writer has met the lock", lambda: text in writer.log_text())


def _future(server, exporter):
    """Nobody changes a table that is not watched: a device's clock that is ahead delays nothing there."""
    ahead = now() + 100_000
    exporter.send("c", 1, ahead, note="future")
    expect_equal(_rows(server, exporter, "SELECT note FROM unwatched"), [("future",)], "a record from the future")
    expect(now() < ahead, "a record from the future had to wait")
