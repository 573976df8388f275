#!/usr/bin/env python3
"""Applies the topics of `martlet export` to tables of PostgreSQL. See README.md."""

import argparse
import sys
import time

import psycopg2
import psycopg2.errors
from confluent_kafka import Consumer, KafkaException, TopicPartition
from psycopg2.extensions import TransactionRollbackError

import clients
import target
from target import Target, Unusable

#: Triggers and foreign keys act where a change is made, and their effects come as records of their own: as in PostgreSQL's own
#: logical replication, they do nothing here.
SESSION = "-c session_replication_role=replica -c timezone=UTC -c client_encoding=UTF8"
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
        #: Partitions whose last record deleted a row: its key. The record without a value that follows says nothing new.
        self._deleted = {}
        self._skipped = {tuple(place.rsplit("/", 2)) for place in arguments.skip}

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
            self._apply(messages)

    # The beginning

    def _prepare(self):
        self._cursor.execute("SELECT to_regclass('martlet.place') IS NULL OR to_regclass('martlet.applied') IS NULL")
        if self._cursor.fetchone() == (True,):
            sys.exit("the writer's own tables are missing: run setup.sql")
        self._cursor.execute("SELECT pg_replication_origin_oid(%s)", [self._arguments.origin])
        origin, = self._cursor.fetchone()
        if origin is None:
            self._cursor.execute("SELECT pg_replication_origin_create(%s)", [self._arguments.origin])
            origin, = self._cursor.fetchone()
            self._connection.commit()
        self._take_origin()
        if not self._arguments.sole_writer:
            self._cursor.execute("SELECT current_setting('track_commit_timestamp')::boolean")
            if self._cursor.fetchone() != (True,):
                sys.exit("track_commit_timestamp is off, so nothing tells whether a row of PostgreSQL is newer than a record. Switch "
                         "it on, or use --sole-writer if nobody else changes these tables")
        for pair in self._arguments.table:
            topic, _, name = pair.rpartition("=")
            self._targets[topic] = Target(self._cursor, name, origin, self._arguments.sole_writer)
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
            "SELECT next_offset FROM martlet.place WHERE (topic, partition) = (%s, %s)", [topic, partition])
        found = self._cursor.fetchone()
        self._connection.commit()
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        place = found[0] if found else low
        if place > high:
            clients.note(f"{topic}/{partition} was recreated: reading it from the beginning")
            return low
        return max(place, low)

    # Records

    def _apply(self, messages):
        """Applies records in one transaction; or if that fails, one by one, and holds the partitions that can't go on."""
        try:
            if self._held:
                raise Unusable("some partitions wait")
            self._transact(messages)
        except REFUSALS:
            self._connection.rollback()
            for message in messages:
                self._apply_alone(message)

    def _apply_alone(self, message):
        partition = message.topic(), message.partition()
        if partition in self._held:
            self._held[partition].append(message)
            return
        try:
            self._transact([message])
        except REFUSALS as problem:
            self._connection.rollback()
            self._report(message, str(problem).splitlines()[0])
            self._held[partition] = [message]
            self._consumer.pause([TopicPartition(*partition)])

    def _report(self, message, reason):
        text = (f"{_name(message)} waits, as does what follows it in its partition: {reason}. It is tried again; "
                f"to leave it out, start with --skip {_name(message)}")
        if text not in self._reported:
            clients.note(text)
            self._reported.add(text)

    def _retry(self):
        """Tries held records again. Those of other partitions may have made room for them."""
        if not self._held or time.monotonic() < self._retried + RETRY_SECONDS:
            return
        held, self._held = self._held, {}
        for partition, messages in held.items():
            for message in messages:
                self._apply_alone(message)
            if partition not in self._held:
                self._consumer.resume([TopicPartition(*partition)])
        self._retried = time.monotonic()

    def _transact(self, messages):
        """Applies records and moves the places behind them, in one transaction."""
        while True:
            try:
                return self._try_to_transact(messages)
            except TransactionRollbackError as problem:
                # A deadlock with another program, for example.
                clients.note(f"again: {str(problem).splitlines()[0]}")
                self._connection.rollback()

    def _try_to_transact(self, messages):
        deleted = dict(self._deleted)
        places = {}
        latest = 0
        self._cursor.execute("SELECT pg_replication_origin_xact_setup('0/0', clock_timestamp())")
        for message in messages:
            partition = message.topic(), message.partition()
            places[partition] = message.offset() + 1
            if (message.topic(), str(message.partition()), str(message.offset())) in self._skipped:
                continue
            latest = max(latest, self._apply_record(message, deleted, partition))
        for (topic, partition), offset in places.items():
            self._cursor.execute("""
                INSERT INTO martlet.place (topic, partition, next_offset) VALUES (%s, %s, %s)
                ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset""", [topic, partition, offset])
        self._await_clock(latest)
        self._connection.commit()
        self._deleted = deleted

    def _apply_record(self, message, deleted, partition):
        """Returns the record's timestamp."""
        table, cursor = self._targets[message.topic()], self._cursor
        key = _payload(message.key())
        value = None if message.value() is None else _payload(message.value())
        last = deleted.pop(partition, None)
        if value is None:
            if last != message.key():
                table.delete(cursor, key, 0)
            return 0
        hlc = value["source"]["hlc"] or 0
        if value["op"] == "d":
            table.delete(cursor, key, hlc)
            deleted[partition] = message.key()
        else:
            table.upsert(cursor, key, value["after"], hlc, _columns_of_bytes(message))
        return hlc

    def _await_clock(self, hlc):
        """Waits until PostgreSQL's clock is past a timestamp, before a row that has it can be seen.

        So whoever changes the row after having seen it does so at a later time, even if the device's clock was ahead, and wins.
        """
        if self._arguments.sole_writer:
            return
        while True:
            self._cursor.execute("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            ahead = ((hlc >> 16) - self._cursor.fetchone()[0] + 1) / 1000
            if ahead <= 0:
                return
            if ahead > MAX_CLOCK_SKEW_SECONDS:
                clients.note(f"a record is {ahead:.0f} s ahead of PostgreSQL's clock: it is applied without waiting")
                return
            time.sleep(ahead)


def _payload(text):
    value = target.parse(text)
    return value["payload"] if value.keys() == {"schema", "payload"} else value


def _columns_of_bytes(message):
    found = dict(message.headers() or []).get("martlet-bytes")
    return target.parse(found) if found else []


def _name(message):
    return f"{message.topic()}/{message.partition()}/{message.offset()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    clients.add_arguments(parser)
    parser.add_argument("--table", action="append", required=True, metavar="TOPIC=TABLE",
                        help="a topic and the table it is applied to, for example shop.product=public.product; may be repeated")
    parser.add_argument("--origin", default="martlet",
                        help="the replication origin of what is written, which read_postgres.py leaves out (default: martlet)")
    parser.add_argument("--sole-writer", action="store_true",
                        help="nobody else changes these tables: do not compare times (needs no track_commit_timestamp)")
    parser.add_argument("--skip", action="append", default=[], metavar="TOPIC/PARTITION/OFFSET",
                        help="leave out a record that the table can't take; may be repeated")
    arguments = parser.parse_args()
    clients.run(lambda: Writer(arguments).run())


if __name__ == "__main__":
    main()
