"""Random changes of the tables, by threads that write to SQLite or to PostgreSQL as any program would."""

import copy
import queue
import sqlite3
import threading

import psycopg2

from postgres.tables import PLACE, PRODUCT, TABLES, random_value, to_database
from shared.waiting import Failure, eventually

SHARED_ROWS = 12


class Workload:
    """The changes of one writer. It knows the rows whose keys begin with its name: nobody else changes them."""

    def __init__(self, name, rng, shares_rows, touches=()):
        """`shares_rows`: whether it also changes rows that others change. `touches`: updates of products that change nothing."""
        self.name = name
        self._rng = rng
        self._shares_rows = shares_rows
        self._touches = touches
        self._count = 0
        #: Table name -> key -> values by column, of the rows that are there.
        self.live = {table.name: {} for table in TABLES}
        self._deleted = {table.name: [] for table in TABLES}

    def saved(self):
        """What `restore` needs if a transaction is not committed."""
        return copy.deepcopy((self.live, self._deleted))

    def restore(self, saved):
        self.live, self._deleted = copy.deepcopy(saved)

    def transaction(self, execute):
        """Makes the changes of a transaction with `execute(statement, parameters)`. Returns their number."""
        count = self._rng.choices([1, self._rng.randint(2, 8), 60], weights=[70, 28, 2])[0]
        for _ in range(count):
            if self._touches and self._rng.random() < 0.3:
                execute(self._rng.choice(self._touches), [f"shared-{self._rng.randrange(SHARED_ROWS)}"])
            elif self._shares_rows and self._rng.random() < 0.5:
                self._change_shared(execute)
            else:
                self._change_own(execute, self._rng.choice(TABLES))
        return count

    def _change_own(self, execute, table):
        live, deleted = self.live[table.name], self._deleted[table.name]
        kinds = ["insert", "update", "delete", "insert again", "new key"]
        # With two-way sync, a row that PostgreSQL has deleted may come back for a moment, until the export has its delete, too: a
        # plain INSERT would then fail. Rows that are shared are inserted again by upserts.
        kind = self._rng.choices(kinds, weights=[30, 38, 12, 0 if self._shares_rows else 12, 8])[0]
        if kind == "insert again" and deleted:
            self._insert(execute, table, deleted.pop(self._rng.randrange(len(deleted))))
        elif kind in ("insert", "insert again") or not live:
            self._insert(execute, table, self._new_key(table))
        else:
            key = self._rng.choice(list(live))
            if kind == "update":
                values = self._values(self._some(table.others))
                self._run(execute, f"UPDATE {table.name} SET {_set(values)} WHERE {_where(table)}", table, values, key)
                live[key].update(values)
            elif kind == "delete":
                self._run(execute, f"DELETE FROM {table.name} WHERE {_where(table)}", table, {}, key)
                del live[key]
                deleted.append(key)
            else:
                new = self._new_key(table)
                values = dict(zip(table.key, new))
                self._run(execute, f"UPDATE {table.name} SET {_set(values)} WHERE {_where(table)}", table, values, key)
                live[new] = live.pop(key)
                deleted.append(key)

    def _insert(self, execute, table, key):
        values = self._values(table.others)
        columns = {**dict(zip(table.key, key)), **values}
        marks = ", ".join("?" for _ in columns)
        self._run(execute, f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", table, columns, ())
        self.live[table.name][key] = values

    def _change_shared(self, execute):
        """Changes a row that others change too: it may be there or not."""
        table, key = PRODUCT, (f"shared-{self._rng.randrange(SHARED_ROWS)}",)
        kind = self._rng.choices(["upsert", "update", "delete"], weights=[30, 55, 15])[0]
        values = self._values(table.others if kind == "upsert" else self._some(table.others))
        if kind == "upsert":
            columns = {"code": key[0], **values}
            marks = ", ".join("?" for _ in columns)
            replaced = ", ".join(f"{column} = excluded.{column}" for column in values)
            execute(f"INSERT INTO product ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT (code) DO UPDATE SET {replaced}",
                    self._parameters(table, columns, ()))
        elif kind == "update":
            execute(f"UPDATE product SET {_set(values)} WHERE code = ?", self._parameters(table, values, key))
        else:
            execute("DELETE FROM product WHERE code = ?", key)

    def _new_key(self, table):
        self._count += 1
        return (f"{self.name}-{self._count}",) if table is not PLACE else (self._rng.randrange(5), f"{self.name}-{self._count}")

    def _some(self, columns):
        return {name: columns[name] for name in self._rng.sample(list(columns), self._rng.randint(1, min(3, len(columns))))}

    def _values(self, columns):
        return {name: random_value(kind, self._rng) for name, kind in columns.items()}

    def _run(self, execute, statement, table, columns, key):
        if execute(statement, self._parameters(table, columns, key)) != 1:
            raise Failure(f"{self.name}: its own row is missing: {statement.split(' SET ')[0]} {key}")

    @staticmethod
    def _parameters(table, columns, key):
        return [*(to_database(table.columns[name], value) for name, value in columns.items()), *key]


def _set(values):
    return ", ".join(f"{name} = ?" for name in values)


def _where(table):
    return " AND ".join(f"{name} = ?" for name in table.key)


class Writer(threading.Thread):
    """Commits as many transactions as `allow` permits. Subclasses know the database."""

    def __init__(self, name, workload, progress):
        super().__init__(name=name, daemon=True)
        self.workload = workload
        self.transactions = 0
        self.changes = 0
        self.error = None
        self._progress = progress
        self._allowed = queue.Queue()

    def allow(self, count):
        for _ in range(count):
            self._allowed.put(True)

    def end(self):
        """Ends the writer after the permitted transactions."""
        self._allowed.put(False)

    def finish(self):
        """Waits for the end of the thread, and raises what it raised."""
        self.join()
        if self.error is not None:
            raise Failure(f"writer {self.name}: {self.error!r}") from self.error

    def run(self):
        try:
            self.open()
            while self._allowed.get():
                saved = self.workload.saved()
                while (changes := self.commit()) is None:
                    self.workload.restore(saved)
                self.transactions += 1
                self.changes += changes
                self._progress.advance()
            self.close()
        except Exception as error:  # `finish` raises it
            self.error = error

    def open(self):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError

    def commit(self):
        """Runs one transaction. Returns the number of its changes, or None if it was not committed."""
        raise NotImplementedError


class SQLiteWriter(Writer):
    def __init__(self, node, workload, progress):
        super().__init__(f"writer of {node.name}", workload, progress)
        self._store = node.store

    def open(self):
        self._connection = sqlite3.connect(self._store, timeout=60, isolation_level=None)

    def close(self):
        self._connection.close()

    def commit(self):
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            changes = self.workload.transaction(self._execute)
            self._connection.execute("COMMIT")
            return changes
        except sqlite3.OperationalError as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return None
            raise

    def _execute(self, statement, parameters):
        return self._connection.execute(statement, parameters).rowcount


class PostgresWriter(Writer):
    """Connects again after a crash of the server, and learns whether its last commit has happened."""

    def __init__(self, name, server, workload, progress):
        super().__init__(f"writer {name} of PostgreSQL", workload, progress)
        self._server = server
        self._label = name
        self._ticket = 0

    def open(self):
        def connect():
            try:
                return self._server.connect()
            except psycopg2.OperationalError as problem:
                return False, problem

        self._connection = eventually("PostgreSQL accepts connections", connect)

    def close(self):
        self._connection.close()

    def commit(self):
        self._ticket += 1
        try:
            with self._connection.cursor() as cursor:
                def execute(statement, parameters):
                    cursor.execute(statement.replace("?", "%s"), parameters)
                    return cursor.rowcount

                changes = self.workload.transaction(execute)
                cursor.execute("INSERT INTO ticket VALUES (%s, %s)", [self._label, self._ticket])
            self._connection.commit()
            return changes
        except psycopg2.errors.DeadlockDetected:
            self._connection.rollback()
            return None
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            self._connection.close()
            self.open()
            return changes if self._was_committed() else None

    def _was_committed(self):
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM ticket WHERE writer = %s AND number = %s", [self._label, self._ticket])
            return cursor.fetchone() is not None


TICKETS = "CREATE TABLE ticket (writer text, number integer, PRIMARY KEY (writer, number))"
