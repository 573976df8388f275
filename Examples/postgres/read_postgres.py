#!/usr/bin/env python3
"""Publishes the changes of PostgreSQL's tables to Kafka, in the envelope of Debezium. See README.md."""

import argparse
import contextlib
import select
import time

import psycopg2
import psycopg2.errors
from psycopg2 import sql
from psycopg2.extras import LogicalReplicationConnection

import clients
import pgoutput
from catalog import Catalog
from envelope import Source
from publisher import Publisher

#: How PostgreSQL writes values as text, for the snapshot and for the log alike.
SESSION = ("-c datestyle=ISO -c intervalstyle=iso_8601 -c timezone=UTC -c bytea_output=hex -c extra_float_digits=1 "
           "-c client_encoding=UTF8")
WAIT_FOR_SLOT_SECONDS = 90
#: A fraction of wal_sender_timeout, by default a minute, after which PostgreSQL gives up on a reader that says nothing.
CONFIRM_SECONDS = 10


class Reader:
    def __init__(self, arguments):
        self._arguments = arguments
        connection = self._connect()
        connection.autocommit = True
        self._cursor = connection.cursor()
        self._log = self._connect(connection_factory=LogicalReplicationConnection).cursor()
        self._catalog = Catalog(self._cursor, arguments.prefix, arguments.schemas)
        self._publisher = Publisher(arguments, while_full=self._confirm)
        self._decoder = pgoutput.Decoder()
        #: Topic -> number of partitions.
        self._partitions = {}
        #: OID -> Table, or None for a table that was dropped.
        self._tables = {}
        #: The transaction that is being read: pgoutput.Begin.
        self._transaction = None
        self._is_skipped = False
        self._is_following = False
        self._confirmed = time.monotonic()

    def _connect(self, **options):
        return psycopg2.connect(
            self._arguments.postgres, options=SESSION, fallback_application_name="read_postgres", **options)

    def run(self):
        self._take_snapshot(self._catalog.tables(self._arguments.publication))
        self._follow()

    # The rows that are there

    def _take_snapshot(self, tables):
        """Publishes all rows, unless this was done before: then the slot exists.

        Until it is done, another slot keeps the place where it first began. If it is interrupted, it begins again, and all changes
        since that place follow. So a row that was published, and deleted before the second attempt, is deleted in the topic too.
        """
        slot, beginning = self._arguments.slot, f"{self._arguments.slot}_snapshot"
        if not self._slot_exists(slot):
            # Before any change that the snapshot does not have.
            self._cursor.execute("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            now, = self._cursor.fetchone()
            if not self._slot_exists(beginning):
                self._cursor.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [beginning])
            reading = sql.Identifier(f"{slot}_{self._log.connection.info.backend_pid}")
            self._log.execute(sql.SQL("CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT").format(reading))
            _, point, snapshot, _ = self._log.fetchone()
            rows = self._publish_rows(tables, snapshot, Source(time=now, lsn=_lsn(point), xid=None, commit_lsn=None))
            self._log.execute(sql.SQL("DROP_REPLICATION_SLOT {}").format(reading))
            self._cursor.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [beginning, slot])
            clients.note(f"snapshot: {rows} rows")
        if self._slot_exists(beginning):
            self._cursor.execute("SELECT pg_drop_replication_slot(%s)", [beginning])

    def _slot_exists(self, name):
        self._cursor.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [name])
        return self._cursor.fetchone() is not None

    def _publish_rows(self, tables, snapshot, source):
        """Publishes the rows of a snapshot, and waits until the broker has them. Returns their number."""
        count = 0
        self._publisher.begin()
        with contextlib.closing(self._connect()) as connection:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            connection.cursor().execute("SET TRANSACTION SNAPSHOT %s", [snapshot])
            for schema, name, columns, condition in tables:
                table = self._catalog.current_table(schema, name, columns)
                self._prepare_topic(table)
                texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns)
                query = sql.SQL("SELECT {} FROM {}").format(texts, sql.Identifier(schema, name))
                rows = connection.cursor("rows")
                rows.execute(query + sql.SQL(f" WHERE {condition}") if condition else query)
                for row in rows:
                    self._send(table, "r", None, row, source)
                    count += 1
                rows.close()
        self._publisher.end(source.lsn)
        self._publisher.flush()
        return count

    # The log

    def _follow(self):
        self._start()
        self._is_following = True
        clients.note(f"following the publication {self._arguments.publication} from the slot {self._arguments.slot}")
        while True:
            message = self._log.read_message()
            if message is not None:
                self._handle(self._decoder.decode(message.payload), message.data_start)
                self._publisher.poll()
                continue
            # Nothing signals acknowledgements: while the broker owes some, look for them often.
            select.select([self._log], [], [], 1.0 if self._publisher.is_idle else 0.02)
            self._publisher.poll()
            self._confirm()

    def _start(self):
        """A reader that was killed has the slot until PostgreSQL notices."""
        deadline = time.monotonic() + WAIT_FOR_SLOT_SECONDS
        while True:
            try:
                return self._log.start_replication(
                    self._arguments.slot, decode=False, status_interval=CONFIRM_SECONDS,
                    options={"proto_version": "1", "publication_names": self._arguments.publication})
            except psycopg2.errors.ObjectInUse:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _confirm(self):
        """Tells PostgreSQL what the broker has, and what it therefore need not keep any longer."""
        if not self._is_following:
            return
        if self._publisher.is_idle and self._transaction is None:
            # What was read up to here, and not published, does not concern the tables.
            self._publisher.acknowledged = max(self._publisher.acknowledged, self._log.wal_end)
        is_due = time.monotonic() - self._confirmed >= CONFIRM_SECONDS
        self._log.send_feedback(flush_lsn=self._publisher.acknowledged, force=is_due)
        if is_due:
            self._confirmed = time.monotonic()

    def _handle(self, message, lsn):
        if isinstance(message, pgoutput.Begin):
            self._transaction, self._is_skipped = message, False
            self._publisher.begin()
        elif isinstance(message, pgoutput.Origin):
            self._is_skipped = message.name == self._arguments.skip_origin
        elif isinstance(message, pgoutput.Commit):
            self._transaction = None
            self._publisher.end(message.end_lsn)
            self._confirm()
        elif isinstance(message, pgoutput.Relation):
            table = self._catalog.table(
                message.schema, message.table, [(column.name, column.type) for column in message.columns])
            self._prepare_topic(table)
            self._tables[message.oid] = table
        elif isinstance(message, pgoutput.Change) and not self._is_skipped:
            self._publish_change(self._tables[message.relation.oid], message, self._source(lsn))
        elif isinstance(message, pgoutput.Truncate) and not self._is_skipped:
            for relation in message.relations:
                self._publish_truncation(self._tables[relation.oid], self._source(lsn))

    def _source(self, lsn):
        transaction = self._transaction
        return Source(time=transaction.time, lsn=lsn, xid=transaction.xid, commit_lsn=transaction.commit_lsn)

    def _publish_change(self, table, change, source):
        if table is None:
            return
        old, new = change.old, change.new
        if change.is_whole and new is not None:
            new = [before if after is pgoutput.UNCHANGED else after for before, after in zip(old, new)]
        if change.kind == pgoutput.INSERT:
            self._send(table, "c", None, new, source)
        elif change.kind == pgoutput.DELETE:
            self._delete(table, old, source)
        elif old is not None and table.key_values(old) != table.key_values(new):
            self._delete(table, old, source)
            self._send(table, "c", None, new, source)
        else:
            self._send(table, "u", old if change.is_whole else None, new, source)

    def _prepare_topic(self, table):
        if table is not None and table.topic not in self._partitions:
            self._partitions[table.topic] = clients.create_topic(self._arguments, table.topic, self._arguments.partitions)

    def _publish_truncation(self, table, source):
        if table is None:
            return
        # It concerns the rows of all partitions. It has no key, but a compacted topic takes no record without one.
        for partition in range(self._partitions[table.topic]):
            self._publisher.send(table.topic, b"null", table.value("t", None, None, source, _now()), partition)

    def _delete(self, table, old, source):
        self._send(table, "d", old, None, source)
        # So that the broker forgets the row.
        self._publisher.send(table.topic, table.key(old), None)

    def _send(self, table, operation, before, after, source):
        self._publisher.send(
            table.topic, table.key(after or before), table.value(operation, before, after, source, _now()))


def _now():
    return time.time_ns() // 1_000_000


def _lsn(text):
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    clients.add_arguments(parser)
    parser.add_argument("--prefix", default="pg", help="topics are PREFIX.SCHEMA.TABLE (default: pg)")
    parser.add_argument("--publication", default="martlet", help="the publication (default: martlet)")
    parser.add_argument("--slot", default="martlet", help="the replication slot (default: martlet)")
    parser.add_argument("--partitions", type=int, default=1, help="of topics that are missing (default: 1)")
    parser.add_argument("--schemas", action="store_true", help="write the schemas of Kafka Connect into each record")
    parser.add_argument("--skip-origin", default="martlet", metavar="NAME",
                        help="leave out what write_postgres.py has written (default: martlet)")
    arguments = parser.parse_args()
    clients.run(lambda: Reader(arguments).run())


if __name__ == "__main__":
    main()
