"""A program without Martlet that writes to a database until its input ends or it is killed.

    python3 -m torture.writing_program STORE PREFIX SEED PAUSE_SECONDS

It prints `I` with the intended writes before each COMMIT, then `A` (acknowledged) after it, or `R` (rejected) if the transaction
was not committed. If it is killed in between, the table `done` says whether the transaction was committed.
"""

import json
import random
import select
import sqlite3
import sys

from shared.item_workload import ItemWorkload

#: SQLite's errors after which the program retries: another program writes, or the disk is full at the moment.
TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
             sqlite3.SQLITE_CANTOPEN}


class Program:
    def __init__(self, store, prefix, seed):
        self._connection = sqlite3.connect(store, timeout=60, isolation_level=None)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._prefix = prefix
        self._count = 0
        self._rows = ItemWorkload(self._connection, self._marker, random.Random(seed))

    def transact(self):
        """Commits one transaction, or nothing if the database can't accept it at the moment."""
        before = self._rows.saved()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            ticket = self._connection.execute("UPDATE ticket SET number = number + 1 RETURNING number").fetchall()[0][0]
            size = self._rows.size()
            states = self._rows.change(size)
            name = self._marker("done")
            self._connection.execute("INSERT INTO done VALUES (?, ?)", (name, ticket))
            report("I", [name, ticket, size + 1, list(states.items())])
            self._connection.execute("COMMIT")
            report("A", name)
        except sqlite3.OperationalError as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if error.sqlite_errorcode & 0xFF not in TRANSIENT:
                raise
            self._rows.restore(before)
            report("R", str(error))

    def _marker(self, kind):
        self._count += 1
        return f"{self._prefix}-{kind}-{self._count}"


def report(letter, value):
    print(letter, json.dumps(value), flush=True)


def main():
    store, prefix, seed, pause = sys.argv[1:]
    program = Program(store, prefix, seed)
    pauses = random.Random(f"{seed}-pauses")
    while not select.select([sys.stdin], [], [], pauses.uniform(0.2, 1.8) * float(pause))[0]:
        program.transact()


if __name__ == "__main__":
    main()
