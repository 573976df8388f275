#!/usr/bin/env python3
"""Applies the topics of `martlet export` to tables of PostgreSQL. See README.md."""

import argparse
import itertools
import sys
import time

import psycopg2
import psycopg2.errors
from confluent_kafka import Consumer, KafkaException, TopicPartition
from psycopg2.errors import LockNotAvailable
from psycopg2.extensions import TransactionRollbackError

import clients
import records
from records import Unusable
from target import Target

#: Triggers and foreign keys act where a change is made, and their effects come as records of their own: as in PostgreSQL's own
#: logical replication, they do nothing here.
SESSION = (
    "-c session_replication_role=replica -c client_encoding=UTF8 "
    # How keys look: as in setup.sql.
    "-c datestyle=ISO -c intervalstyle=iso_8601 -c timezone=UTC -c bytea_output=hex -c extra_float_digits=1 "
    # Less than deadlock_timeout, by default a second: if a program and this one wait for each other, this one gives way.
    "-c lock_timeout=500ms")
BATCH = 500
WAIT_FOR_ORIGIN_SECONDS = 90
#: A device's clock may be ahead. `sync.maxClockSkew` is 5 minutes by default; nodes apply nothing that is further ahead.
MAX_CLOCK_SKEW_SECONDS = 300
RETRY_SECONDS = 2.0
#: What PostgreSQL, or the table, refuses to take.
REFUSALS = (Unusable, psycopg2.DataError, psycopg2.IntegrityError, psycopg2.ProgrammingError, psycopg2.NotSupportedError)


class Writer:
    def __init__(self, arguments):
        self._arguments = arguments
        self._connection = psycopg2.connect(arguments.postgres, options=SESSION, fallback_application_name="write_postgres")
        # A statement that has waited for a program's transaction goes on with what that has made.
        self._connection.set_session(isolation_level="READ COMMITTED")
        self._cursor = self._connection.cursor()
        self._consumer = Consumer({
            "client.id": "write_postgres", "group.id": "write_postgres", "enable.auto.commit": False,
            "allow.auto.create.topics": False, "auto.offset.reset": "error", **clients.settings(arguments)})
        #: Topic -> Target.
        self._targets = {}
        #: Partitions whose next record the table can't take: (topic, partition) -> that record, and those that came after it.
        self._held = {}
        self._retried = time.monotonic()
        self._reported = set()
        #: (topic, partition) -> the key of the row that its last record deleted.
        self._deleted = {}
        self._skipped = set(arguments.skip)

    def run(self):
        self._prepare()
        self._assign()
        clients.note(f"applying {', '.join(sorted(self._targets))}")
        while True:
            self._retry()
            first = self._consumer.poll(RETRY_SECONDS)
            if first is None:
                continue
            messages = [first, *self._consumer.consume(BATCH - 1, timeout=0)]
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
            batch = [records.read(message) for message in messages]
            self._await_clock(max((record.hlc for record in batch if self._target(record).is_watched), default=0))
            self._apply(batch)

    # The beginning

    def _prepare(self):
        self._cursor.execute("SELECT to_regclass('martlet.place') IS NULL OR to_regclass('martlet.row') IS NULL")
        if self._cursor.fetchone() == (True,):
            sys.exit("the writer's own tables are missing: run setup.sql")
        self._cursor.execute("SELECT pg_replication_origin_oid(%s)", [self._arguments.origin])
        if self._cursor.fetchone() == (None,):
            self._cursor.execute("SELECT pg_replication_origin_create(%s)", [self._arguments.origin])
            self._connection.commit()
        self._take_origin()
        for pair in self._arguments.table:
            topic, _, name = pair.rpartition("=")
            try:
                self._targets[topic] = Target(self._cursor, name)
            except Unusable as problem:
                sys.exit(str(problem))
        self._connection.commit()

    def _take_origin(self):
        """Only one session has the origin. A writer that was killed has it until PostgreSQL notices."""
        deadline = time.monotonic() + WAIT_FOR_ORIGIN_SECONDS
        while True:
            try:
                self._cursor.execute("SELECT pg_replication_origin_session_setup(%s)", [self._arguments.origin])
                return self._connection.commit()
            except psycopg2.errors.ObjectInUse:
                self._connection.rollback()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _assign(self):
        assignment = []
        for topic in self._targets:
            while not (partitions := clients.partitions_of(self._consumer, topic)):
                clients.note(f"{topic} does not exist yet: waiting for an exporter to create it")
                time.sleep(RETRY_SECONDS)
            assignment += [TopicPartition(topic, partition, self._place(topic, partition)) for partition in partitions]
        self._consumer.assign(assignment)

    def _place(self, topic, partition):
        """The offset from which a partition is to be read."""
        self._cursor.execute(
            "SELECT next_offset, deleted FROM martlet.place WHERE (topic, partition) = (%s, %s)", [topic, partition])
        found = self._cursor.fetchone()
        self._connection.commit()
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        place, deleted = found or (low, None)
        if place > high:
            clients.note(f"{topic}/{partition} was recreated: reading it from the beginning")
            return low
        if deleted is not None:
            self._deleted[topic, partition] = bytes(deleted)
        return max(place, low)

    # Records

    def _target(self, record):
        return self._targets[record.partition[0]]

    def _await_clock(self, hlc):
        """Waits until PostgreSQL's clock is past a timestamp, before a row that has it can be seen.

        So whoever changes the row after having seen it does so at a later time, even if the device's clock was ahead, and wins.
        """
        while True:
            self._cursor.execute("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            now, = self._cursor.fetchone()
            self._connection.commit()
            ahead = ((hlc >> 16) - now + 1) / 1000
            if ahead <= 0:
                return
            if ahead > MAX_CLOCK_SKEW_SECONDS:
                clients.note(f"a record is {ahead:.0f} s ahead of PostgreSQL's clock: it is applied without waiting")
                return
            time.sleep(ahead)

    def _apply(self, batch):
        """Applies records in one transaction; or if that fails, one by one, and holds the partitions that can't go on."""
        try:
            if self._held:
                raise Unusable("some partitions wait")
            self._transact(batch)
        except REFUSALS:
            self._connection.rollback()
            for record in batch:
                self._apply_alone(record)

    def _apply_alone(self, record):
        if record.partition in self._held:
            self._held[record.partition].append(record)
            return
        try:
            self._transact([record])
        except REFUSALS as problem:
            self._connection.rollback()
            self._report(record, str(problem).splitlines()[0])
            self._held[record.partition] = [record]
            self._consumer.pause([TopicPartition(*record.partition)])

    def _report(self, record, reason):
        text = (f"{record.name} waits, as does what follows it in its partition: {reason}. It is tried again; "
                f"to leave it out, start with --skip {record.name}")
        if text not in self._reported:
            clients.note(text)
            self._reported.add(text)

    def _retry(self):
        """Tries held records again. Those of other partitions may have made room for them."""
        if not self._held or time.monotonic() < self._retried + RETRY_SECONDS:
            return
        held, self._held = self._held, {}
        for partition, waiting in held.items():
            for record in waiting:
                self._apply_alone(record)
            if partition not in self._held:
                self._consumer.resume([TopicPartition(*partition)])
        self._retried = time.monotonic()

    def _transact(self, batch):
        """Applies records and moves the places behind them, in one transaction."""
        for attempt in itertools.count():
            try:
                return self._try_to_transact(batch)
            except (LockNotAvailable, TransactionRollbackError) as problem:
                # Another program has locked a row.
                self._connection.rollback()
                if attempt == 0:
                    clients.note(f"trying {batch[0].name} and what follows it again: {str(problem).splitlines()[0]}")

    def _try_to_transact(self, batch):
        places, deleted = {}, dict(self._deleted)
        self._cursor.execute("SELECT pg_replication_origin_xact_setup('0/0', clock_timestamp())")
        for record in batch:
            # A record without a value that follows the delete of its row says nothing new.
            is_known = record.is_null and deleted.get(record.partition) == record.raw_key
            if record.name not in self._skipped and not is_known:
                self._target(record).apply(self._cursor, record)
            places[record.partition] = record.offset + 1
            deleted[record.partition] = record.raw_key if record.row is None and not record.is_null else None
        for partition, offset in places.items():
            self._cursor.execute("""
                INSERT INTO martlet.place (topic, partition, next_offset, deleted) VALUES (%s, %s, %s, %s)
                ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset, deleted = excluded.deleted""",
                                 [*partition, offset, deleted[partition]])
        self._connection.commit()
        self._deleted = deleted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    clients.add_arguments(parser)
    parser.add_argument("--table", action="append", required=True, metavar="TOPIC=TABLE",
                        help="a topic and the table it is applied to, for example shop.product=public.product; may be repeated")
    parser.add_argument("--origin", default="martlet",
                        help="the replication origin of what is written, which read_postgres.py leaves out (default: martlet)")
    parser.add_argument("--skip", action="append", default=[], metavar="TOPIC/PARTITION/OFFSET",
                        help="leave out a record that the table can't take; may be repeated")
    arguments = parser.parse_args()
    clients.run(lambda: Writer(arguments).run())


if __name__ == "__main__":
    main()
