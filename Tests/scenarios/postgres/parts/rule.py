"""What the writer does with single records: which are applied, which are too old, and which hold up their partition."""

from postgres.exporter import Exporter, now
from shared.waiting import eventually, expect, expect_equal

SCHEMA = """
    CREATE TABLE stock (item varchar(9) PRIMARY KEY, count integer, price numeric, note text UNIQUE, unit varchar(3));
    CREATE TABLE audit (item text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (new.item); RETURN NULL; END $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE ON stock FOR EACH ROW EXECUTE FUNCTION note();
    GRANT SELECT, INSERT, UPDATE, DELETE ON stock, audit TO martlet;
    SELECT martlet.watch('stock', '{item,count,price}')
"""


def run(rig):
    server = rig.add_server(SCHEMA)
    exporter = Exporter(rig, "stock", ["item"])
    writer = rig.add_program("writer", "write_postgres.py", f"--table={exporter.topic}=public.stock")
    writer.start()

    def rows():
        exporter.wait()
        return server.execute("SELECT item, count, price::text, note FROM stock ORDER BY item")

    for check in (_times, _local_changes, _null_records, _future, _held):
        check(rig, exporter, server, rows)
        server.execute("DELETE FROM stock")
    # Those that were changed here, and none that the writer has changed.
    expect_equal([item for item, in server.execute("SELECT DISTINCT item FROM audit ORDER BY item")], ["future", "local", "moved", "null", "one", "other"],
                 "rows whose trigger ran")


def _times(rig, exporter, server, rows):
    exporter.send("c", "tea", 1000, count=1, price=0.1, note=None)
    exporter.send("u", "tea", 3000, count=3, price=1.10, note="it's")
    exporter.send("u", "tea", 2000, count=2)
    exporter.send("r", "tea", 2000, count=2)
    expect_equal(rows(), [("tea", 3, "1.1", "it's")], "an older record is not applied")
    exporter.send("u", "tea", 3000, count=4)
    expect_equal(rows(), [("tea", 4, "1.1", "it's")], "a record of the same time is, in the columns that it has")
    exporter.send("d", "tea", 500)
    expect_equal(rows(), [], "a delete is applied, however old")
    exporter.send("u", "tea", 2000, count=2)
    expect_equal(rows(), [], "an older record does not bring the row back")
    exporter.send("c", "tea", 4000, count=5, price=None, note=None)
    expect_equal(rows(), [("tea", 5, None, None)], "a newer insert does")
    exporter.send("d", "tea", None)


def _local_changes(rig, exporter, server, rows):
    """PostgreSQL's programs have changed rows, and no record has these changes yet."""
    before = now() - 60_000
    exporter.send("c", "local", before, count=1)
    rows()
    server.execute("UPDATE stock SET count = 2")
    exporter.send("u", "local", before, count=3)
    expect_equal(rows(), [("local", 2, None, None)], "a record that is older than an update here")
    exporter.send("u", "local", now(), count=4)
    expect_equal(rows(), [("local", 4, None, None)], "a newer one")
    exporter.send("d", "local", before)
    expect_equal(rows(), [], "a delete that is older than an update here")

    server.execute("INSERT INTO stock VALUES ('local', 5)")
    server.execute("UPDATE stock SET count = 6")
    exporter.send("d", "local", before)
    expect_equal(rows(), [("local", 6, None, None)], "a delete that is older than an insert here")
    exporter.send("d", "local", now() + 10, author="martlet.ingest")
    expect_equal(rows(), [("local", 6, None, None)], "PostgreSQL's own delete, after which the row was inserted again")
    server.execute("DELETE FROM stock")
    exporter.send("u", "local", before, count=7)
    expect_equal(rows(), [], "a record that is older than a delete here")
    exporter.send("u", "local", now(), count=8)
    expect_equal(rows(), [("local", 8, None, None)], "a newer one")
    server.execute("UPDATE stock SET item = 'moved'")
    exporter.send("u", "local", before, count=9)
    exporter.send("d", "moved", before)
    expect_equal(rows(), [("moved", 8, None, None)], "records that are older than a change of the key here")
    exporter.send("d", "moved", None)
    expect_equal(rows(), [], "a delete without a time")

    exporter.send("c", "other", before, count=1)
    rows()
    server.execute("UPDATE stock SET count = 1")
    server.execute("UPDATE stock SET note = 'of no concern to the nodes'")
    exporter.send("u", "other", before + 1, count=2)
    expect_equal(rows(), [("other", 2, None, "of no concern to the nodes")], "an update that changes nothing for the nodes does not count")
    server.execute("DROP TRIGGER martlet ON stock; SELECT martlet.watch('stock')")
    server.execute("UPDATE stock SET count = count")
    exporter.send("u", "other", before + 2, count=3)
    expect_equal([row[1] for row in rows()], [3], "an update that changes nothing does not count")
    server.execute("UPDATE stock SET note = 'of concern'")
    exporter.send("u", "other", before + 3, count=4)
    expect_equal([row[1] for row in rows()], [3], "a record that is older than an update of any column")


def _null_records(rig, exporter, server, rows):
    """The record that follows a delete says nothing new, after a restart either; by itself, it is a delete."""
    exporter.send("c", "null", 1000, count=1)
    exporter.send("d", "null", 2000, has_null=False)
    expect_equal(rows(), [], "a delete")
    writer, = (program for program in rig.victims if program.name == "writer")
    writer.kill()
    server.execute("INSERT INTO stock VALUES ('null', 2)")
    exporter.send_null("null")
    writer.start()
    expect_equal(rows(), [("null", 2, None, None)], "a null record after a delete that was applied before")
    exporter.send_null("null")
    expect_equal(rows(), [], "another null record")


def _future(rig, exporter, server, rows):
    """Whoever sees a record of a clock that is ahead, and changes the row, has to win."""
    ahead = now() + 1500
    exporter.send("c", "future", ahead, count=1)
    expect_equal(rows(), [("future", 1, None, None)], "a record from the future")
    expect(now() > ahead, f"the record is seen {ahead - now()} ms before its time")
    server.execute("UPDATE stock SET count = 2")
    exporter.send("u", "future", ahead, count=3)
    expect_equal(rows(), [("future", 2, None, None)], "a change that was made after having seen it")


def _held(rig, exporter, server, rows):
    """A record that the table can't take holds up its partition, and no other."""
    exporter.send("c", "one", 1000, note="same")
    exporter.send("c", "two", 1000, note="same")
    exporter.send("c", "three", 1000, count=3)
    exporter.send("c", "four", 1000, partition=1, count=4)
    eventually("the other partition goes on", lambda: _items(server) == ["four", "one"] or (False, _items(server)))
    exporter.send("u", "four", 1001, partition=1, count=5)
    eventually("the other partition still does", lambda: server.execute("SELECT 1 FROM stock WHERE count = 5"))
    expect_equal(_items(server), ["four", "one"], "rows while a record is held")
    server.execute("UPDATE stock SET note = 'other' WHERE item = 'one'")
    expect_equal([row[0] for row in rows()], ["four", "one", "three", "two"], "rows once the key is free")

    writer, = (program for program in rig.victims if program.name == "writer")
    places = []
    for key, row, reason in [
            ({"item": "bad"}, {"count": "many"}, "invalid input syntax"), ({"item": "bad"}, {"size": 1}, "has no column size"),
            ({"item": "bad"}, {"unit": "litres"}, "value too long"), ({"item": "too long to be a key"}, {}, "value too long"),
            ({"item": "x", "more": 1}, {}, "the key of the record is")]:
        offset = exporter.ends.offsets()[0]
        places.append(f"{exporter.topic}/0/{offset}")
        exporter.send("c", key, 2000, **row)
        eventually(f"the writer says why it waits: {reason}",
                   lambda: any(places[-1] in line and reason in line for line in writer.log_text().splitlines()))
        writer.kill()
        writer.append_arguments("--skip", places[-1])
        writer.start()
    exporter.send("c", "five", 2000, count=5)
    expect_equal([row[0] for row in rows()], ["five", "four", "one", "three", "two"], "rows after five records that were skipped")


def _items(server):
    return [item for item, in server.execute("SELECT item FROM stock ORDER BY item")]
