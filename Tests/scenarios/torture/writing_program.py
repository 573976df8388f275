"""A program that knows nothing of Martlet and writes to a database until it is told to stop, or killed.

    python3 -m torture.writing_program STORE PREFIX SEED PAUSE_SECONDS

Before each COMMIT it prints `I` with what the transaction writes, after it `A`; `R` where it was not committed. Whoever
kills it in between finds in the table `done` whether the transaction is there. Ends when its input does.
"""

import json
import random
import select
import sqlite3
import sys

from shared.item_workload import ItemWorkload

#: SQLite's answers after which a program tries again: others write, or the disk is full for the moment.
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
        """One transaction, or nothing where the database can't take it now."""
        before = self._rows.saved()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            ticket = self._connection.execute("UPDATE ticket SET number = number + 1 RETURNING number").fetchall()[0][0]
            size = self._rows.size()
            states = self._rows.change(size)
            name = self._marker("done")
            self._connection.execute("INSERT INTO done VALUES (?, ?)", (name, ticket))
            say("I", [name, ticket, size + 1, list(states.items())])
            self._connection.execute("COMMIT")
            say("A", name)
        except sqlite3.OperationalError as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if error.sqlite_errorcode & 0xFF not in TRANSIENT:
                raise
            self._rows.restore(before)
            say("R", str(error))

    def _marker(self, kind):
        self._count += 1
        return f"{self._prefix}-{kind}-{self._count}"


def say(letter, what):
    print(letter, json.dumps(what), flush=True)


def main():
    store, prefix, seed, pause = sys.argv[1:]
    program = Program(store, prefix, seed)
    pauses = random.Random(f"{seed}-pauses")
    while not select.select([sys.stdin], [], [], pauses.uniform(0.2, 1.8) * float(pause))[0]:
        program.transact()


if __name__ == "__main__":
    main()
