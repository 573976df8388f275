"""What a part works with: nodes, a PostgreSQL, the programs between them, and writers."""

import collections
import contextlib
import random
import uuid

from postgres import tables
from postgres.programs import Agent, Program
from postgres.server import PostgresServer
from postgres.topics import Ends, newest_rows
from postgres.workload import TICKETS, PostgresWriter, SQLiteWriter, Workload
from shared.process_driver import ProcessDriver
from shared.progress import Progress
from shared.waiting import eventually, expect, pause

DEADLINE_SECONDS = 180


class Rig:
    def __init__(self, folder, options):
        self.folder = folder
        self.kills = options.kills
        self.rng = random.Random(f"{options.seed}-{options.part}")
        self.driver = ProcessDriver(folder, options.binary.resolve(), options.bootstrap)
        self.server = None
        self.progress = Progress()
        self.writers = []
        #: What the storm kills.
        self.victims = []
        self._programs = []
        #: The node that ingests.
        self._ingesting = None
        self._id = uuid.uuid4().hex[:8]
        #: The prefix of exported topics, and of those with PostgreSQL's changes.
        self.export_prefix = f"edge-{self._id}"
        self.source_prefix = f"pg-{self._id}"

    def open(self):
        self.driver.open(own_broker=False)

    def close(self):
        """Ends everything."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.driver.close)
            if self.server is not None:
                stack.callback(self.server.close)
            for program in self._programs:
                stack.callback(program.close)
            for writer in self.writers:
                stack.callback(writer.end)

    # Parts

    def add_node(self, name, configuration="", schema=tables.SQLITE_SCHEMA):
        node = self.driver.add_node(name, schema)
        if configuration:
            self.driver.configure(node, configuration)
        if "ingest:" in configuration:
            self._ingesting = node
        self.victims.append(Agent(self.driver, node))
        return node

    def export_settings(self, more=""):
        return f"export: {{prefix: {self.export_prefix}, leaseTimeout: 3s, partitions: 3{more}}}\n"

    def ingest_settings(self):
        topics = ""
        for table in (*tables.TABLES, tables.BARRIER):
            columns = ", ".join(f"{name}: {name}" for name in table.columns)
            topics += f"    - {{topic: {self.source_prefix}.public.{table.name}, table: {table.name}, columns: {{{columns}}}}}\n"
        return f"ingest:\n  topics:\n{topics}"

    def add_server(self, *statements):
        """Starts a PostgreSQL with the tables of the suite."""
        self.server = PostgresServer(self.folder, self.rng)
        self.server.create(
            tables.POSTGRES_SCHEMA, TICKETS, *statements,
            *(f"ALTER TABLE {table.name} REPLICA IDENTITY FULL; GRANT SELECT, INSERT, UPDATE, DELETE ON {table.name} TO martlet"
              for table in (*tables.TABLES, tables.BARRIER)))
        self.victims.append(self.server)
        return self.server

    def publish(self, *names):
        """Creates PostgreSQL's publication of these tables, or of those of the suite."""
        names = names or [table.name for table in (*tables.TABLES, tables.BARRIER)]
        self.server.execute(f"CREATE PUBLICATION martlet FOR TABLE {', '.join(names)}")

    def add_reader(self, *arguments, name="reader", prefix=None, partitions=3):
        """The program that publishes PostgreSQL's changes, not started."""
        return self.add_program(name, "read_postgres.py", "--prefix", prefix or self.source_prefix, "--slot", name,
                                 "--partitions", partitions, *arguments)

    def add_writer_program(self, *arguments):
        """The program that applies exported topics to PostgreSQL, not started."""
        pairs = [f"--table={self.export_prefix}.{table.name}=public.{table.name}"
                 for table in (*tables.TABLES, tables.BARRIER)]
        program = self.add_program("writer", "write_postgres.py", *pairs, *arguments)
        # A kill between transactions says little.
        program.await_moment = self._await_transaction
        return program

    def add_both_ways(self):
        """Two nodes, a PostgreSQL and the programs for both directions, none of which is started but PostgreSQL."""
        hub = self.add_node("hub", self.export_settings(", ingested: true") + self.ingest_settings())
        phone = self.add_node("phone")
        self.add_server(
            # A column that the nodes don't have.
            "ALTER TABLE product ADD checked timestamptz")
        self.publish()
        return hub, phone, self.add_reader(), self.add_writer_program()

    def start_both_ways(self, reader, writer):
        """Starts the programs for both directions, in the order that the README of Examples/postgres has.

        The reader's first records say what rows there are, and not when each was inserted. Of a row that PostgreSQL has noted as inserted
        before them, the nodes would not know that.
        """
        reader.start()
        eventually("the reader follows", lambda: reader.check() or reader.follows())
        for table in tables.TABLES:
            self.server.execute(f"SELECT martlet.watch('{table.name}', '{{{','.join(table.columns)}}}')")
        writer.start()

    def add_program(self, name, script, *arguments):
        """A program of Examples/postgres, not started."""
        program = Program(name, script, ["--postgres", self.server.dsn(), "--bootstrap-servers", self.driver.bootstrap, *arguments],
                          self.folder)
        self._programs.append(program)
        self.victims.append(program)
        return program

    def add_edge_writer(self, node, shares_rows=False):
        self._add_writer(SQLiteWriter, node.name, shares_rows, node)

    def add_postgres_writer(self, name, shares_rows=False, touches=()):
        self._add_writer(lambda *arguments: PostgresWriter(name, *arguments), name, shares_rows, self.server, touches)

    def _add_writer(self, make, name, shares_rows, where, touches=()):
        workload = Workload(name, random.Random(self.rng.random()), shares_rows, touches)
        self.writers.append(make(where, workload, self.progress))

    # What happens

    def storm(self, weights=None):
        """Kills something at a random moment of each burst of writes, and starts it again at a later one. Returns the numbers."""
        kills = collections.Counter()
        for writer in self.writers:
            writer.start()
        round_ = []
        for _ in range(self.kills):
            if not round_:
                # Shuffled rounds: each comes often enough, in random order.
                round_ = [victim for victim in self.victims for _ in range((weights or {}).get(victim.name, 1))]
                self.rng.shuffle(round_)
            victim = round_.pop()
            burst = self.rng.randint(5, 40)
            start = self.progress.count
            for writer in self.writers:
                writer.allow(burst)
            total = burst * len(self.writers)
            self._wait_for(start + self.rng.randint(0, burst))
            victim.await_moment()
            victim.kill()
            kills[victim.name] += 1
            if victim.stops_writers:
                pause(self.rng.random())
                victim.start()
                self._wait_for(start + total)
            else:
                self._wait_for(start + self.rng.randint(burst, total))
                victim.start()
        for writer in self.writers:
            writer.end()
        for writer in self.writers:
            writer.finish()
        return kills

    def _wait_for(self, count):
        """Waits for the writers, unless one of them has failed."""
        def reached():
            for writer in self.writers:
                if writer.error is not None:
                    writer.finish()
            return self.progress.count >= count

        eventually(f"{count} transactions are written", reached)

    def _await_transaction(self):
        """Waits until the writing program is in a transaction that has changed something, or has nothing to do."""
        query = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'write_postgres' AND backend_xid IS NOT NULL"
        connection = self.server.connect()
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                for _ in range(500):
                    cursor.execute(query)
                    if cursor.fetchone() is not None:
                        return
                    pause(0.002)
        finally:
            connection.close()

    def check_programs(self):
        for program in self._programs:
            program.check()

    # Rows

    def edge_rows(self, node, table):
        return tables.rows_of(table, node.rows(table.select()), tables.from_sqlite)

    def postgres_rows(self, table):
        return tables.rows_of(table, self.server.execute(table.select()), tables.from_postgres)

    def topic_rows(self, topic, table):
        """The rows that the topic alone has."""
        found = newest_rows(self.driver.bootstrap, topic)
        return tables.rows_of(table, ([row[name] for name in table.columns] for row in found), tables.from_record)

    def written_rows(self, table):
        """The rows that the writers have acknowledged, as far as no other writer changes them."""
        rows = tables.Rows()
        for writer in self.writers:
            for key, values in writer.workload.live[table.name].items():
                rows[key] = (*key, *(values[name] for name in table.others))
        return rows

    def wait_until_equal(self, first, second, names, deadline_seconds=DEADLINE_SECONDS):
        """Waits until two sides, functions of a table, have the same rows. Returns the number of rows by table."""
        found = {}

        def is_equal():
            self.check_programs()
            self.driver.expect_agents_alive()
            for table in tables.TABLES:
                here, there = first(table), second(table)
                if here.digest() != there.digest():
                    return False, f"{table.name}: {here.difference(there, names)}"
                found[table.name] = f"{len(here)} {table.name} (digest {here.digest()})"
            return True

        eventually(f"{names[0]} and {names[1]} have the same rows", is_equal, deadline_seconds)
        return ", ".join(found.values())

    def expect_written(self, rows):
        """Expects that a side, a function of a table, has the acknowledged rows of each writer, and no others of theirs."""
        for table in tables.TABLES:
            expected = self.written_rows(table)
            actual = rows(table).of(*(writer.workload.name for writer in self.writers))
            expect(actual == expected, f"{table.name} differs from what was acknowledged: "
                   + actual.difference(expected, ("found", "acknowledged")))

    def summary(self, kills, equal):
        killed = ", ".join(f"{name} {count}" for name, count in sorted(kills.items()))
        transactions = sum(writer.transactions for writer in self.writers)
        changes = sum(writer.changes for writer in self.writers)
        return f"{changes} changes in {transactions} transactions; kills: {killed}; equal: {equal}"

    # Barriers

    def send_barrier_to_postgres(self, node):
        """Waits until a row that is written now has come from the edge to PostgreSQL."""
        name = f"edge-{uuid.uuid4().hex}"
        node.write(("INSERT INTO barrier VALUES (?)", (name,)))
        eventually("a row of the edge is in PostgreSQL", lambda: self._has_barrier(
            self.server.execute("SELECT 1 FROM barrier WHERE name = %s", [name])), DEADLINE_SECONDS)

    def send_barrier_to_edge(self, *nodes):
        """Waits until a row that is written now has come from PostgreSQL to the edge, and all records before it were ingested.

        The row does not prove that: it is in another topic. After it, a node may still go from newer rows to older ones and
        back: a reader that begins again publishes all rows, and then the changes since it first began.
        """
        name = f"pg-{uuid.uuid4().hex}"
        self.server.execute("INSERT INTO barrier VALUES (%s)", [name])
        for node in nodes:
            eventually(f"a row of PostgreSQL is on {node.name}", lambda: self._has_barrier(
                node.rows("SELECT 1 FROM barrier WHERE name = ?", (name,))), DEADLINE_SECONDS)
        ends = {}
        for table in tables.TABLES:
            topic = f"{self.source_prefix}.public.{table.name}"
            with contextlib.closing(Ends(self.driver.bootstrap, topic)) as found:
                ends.update({(topic, partition): end for partition, end in found.offsets().items()})
        eventually("all records were ingested", lambda: self._has_ingested(ends), DEADLINE_SECONDS)

    def _has_barrier(self, found):
        self.check_programs()
        self.driver.expect_agents_alive()
        return bool(found)

    def _has_ingested(self, ends):
        places = {}
        for line in self.driver.martlet("ingest", self.driver.store_argument(self._ingesting)).splitlines():
            topic, partition, offset = line.split()[0].rsplit("/", 2)
            places[topic, int(partition)] = int(offset)
        return all(places.get(place, 0) >= end for place, end in ends.items()) or (False, f"{places} of {ends}")
