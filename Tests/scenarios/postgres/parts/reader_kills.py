"""Kills the reading and the writing program all the time, also while the reader takes its snapshot.

Programs change rows in PostgreSQL, which the reader publishes, and the edge changes other rows of the same tables, which the writer applies.
The reader leaves out what the writer has written. Nothing is ingested here.
"""

import contextlib

from postgres.tables import TABLES
from postgres.topics import Ends
from shared.waiting import eventually, expect

#: So many that the reader is killed before it has read all.
FIRST_ROWS = 8_000
KILLS_OF_SNAPSHOT = 3


def run(rig):
    hub = rig.add_node("hub", rig.export_settings())
    server = rig.add_server()
    rig.publish()
    server.execute(f"INSERT INTO product (code, stock) SELECT 'first-' || n, n FROM generate_series(1, {FIRST_ROWS}) n")
    server.execute("INSERT INTO place SELECT n % 7, 'first-' || n, 'row ' || n FROM generate_series(1, 100) n")
    reader, writer = rig.add_reader(), rig.add_writer_program()
    rig.driver.start(hub)
    writer.start()
    interrupted = _interrupt_snapshot(rig, server, reader)

    rig.victims = [reader, writer]
    rig.add_edge_writer(hub)
    rig.add_postgres_writer("till", shares_rows=True)
    kills = rig.storm()
    rig.send_barrier_to_postgres(hub)
    equal = rig.wait_until_equal(
        lambda table: rig.topic_rows(f"{rig.source_prefix}.public.{table.name}", table).without("hub"),
        lambda table: rig.postgres_rows(table).without("hub"), ("the reader's topic", "PostgreSQL"))
    applied = rig.wait_until_equal(
        lambda table: rig.postgres_rows(table).of("hub"), lambda table: rig.edge_rows(hub, table), ("PostgreSQL", "the edge"))
    for table in TABLES:
        published = rig.topic_rows(f"{rig.source_prefix}.public.{table.name}", table)
        expect(not published.of("hub"), "the reader has published what the writer wrote")
    rig.expect_written(rig.postgres_rows)
    return rig.summary(kills, f"{equal}; of the edge: {applied}; kills during the snapshot: {interrupted}")


def _interrupt_snapshot(rig, server, reader):
    """Kills the reader while it reads the first rows, which change between the attempts. Returns how often."""
    topic = f"{rig.source_prefix}.public.product"
    rig.driver.create_topic(topic, partitions=3)
    interrupted = 0
    with contextlib.closing(Ends(rig.driver.bootstrap, topic)) as ends:
        for attempt in range(1, KILLS_OF_SNAPSHOT + 1):
            enough = ends.total() + rig.rng.randrange(1, FIRST_ROWS // 20)
            reader.start()
            eventually("the reader has published rows", lambda: reader.check() or ends.total() >= enough, interval_seconds=0.01)
            reader.kill()
            if reader.follows():
                break  # It was too late: there is only one first time.
            interrupted += 1
            server.execute("DELETE FROM product WHERE mod(stock, 50) = %s", [attempt])
            server.execute("UPDATE product SET stock = stock + 50, title = 'changed' WHERE mod(stock, 50) = %s", [attempt + 10])
    expect(interrupted > 0, "the snapshot was never interrupted")
    reader.start()
    # A snapshot has all rows, those of the edge too.
    eventually("the reader follows", lambda: reader.check() or reader.follows())
    return interrupted
