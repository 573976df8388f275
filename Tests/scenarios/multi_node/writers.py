"""Threads that write to a store as another program would, and record which transactions were acknowledged."""

import sqlite3
import threading

from shared.waiting import Failure


class Writer(threading.Thread):
    """Commits transactions until `work`, which a subclass defines, returns.

    Only this writer touches rows whose names begin with `prefix`.
    """

    def __init__(self, node, name, ledger, progress, rng):
        super().__init__(name=f"{node.name}-{name}", daemon=True)
        self.node = node
        self.prefix = f"mt-{self.name}"
        self.rng = rng
        self.error = None
        self._ledger = ledger
        self._progress = progress
        self._count = 0

    def work(self):
        """The body of the thread. It calls `transact`."""
        raise NotImplementedError

    def run(self):
        try:
            self.connection = sqlite3.connect(self.node.store, timeout=60, isolation_level=None)
            try:
                self.connection.execute("PRAGMA foreign_keys = ON")
                self.work()
            finally:
                self.connection.close()
        except Exception as error:  # `finish` raises it
            self.error = error

    def finish(self):
        """Waits for the end of the thread, and raises what it raised."""
        self.join()
        if self.error is not None:
            raise Failure(f"writer {self.name}: {self.error!r}") from self.error

    def transact(self, fill):
        """Runs `fill` in one transaction. `fill` returns the states that it wrote and its number of changes.

        Returns the states once they are committed. If the database is busy, the transaction is rolled back and retried: it
        was not acknowledged, and must leave nothing behind.
        """
        while True:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                ticket = self._ledger.ticket()
                states, changes = fill()
                self.connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                if not _is_busy(error):
                    raise
                continue
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            self._ledger.acknowledge(ticket, states, changes)
            self._progress.advance()
            return states

    def insert(self, sql, *parameters):
        """Inserts a row, and returns its row id."""
        return self.connection.execute(sql, parameters).lastrowid

    def changed(self, sql, *parameters):
        """Runs an update or a deletion, and returns whether it changed a row."""
        return self.connection.execute(sql, parameters).rowcount == 1

    def marker(self, kind):
        """A text that no other writer uses."""
        self._count += 1
        return f"{self.prefix}-{kind}-{self._count}"


def _is_busy(error):
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
