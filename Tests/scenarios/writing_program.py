#!/usr/bin/env python3
"""A program that knows nothing of Martlet and writes to a database until it is told to stop, or killed.

    writing_program.py STORE PREFIX SEED PAUSE_SECONDS

Before each COMMIT it prints `I` with what the transaction writes, after it `A`; `R` where it was not committed. Whoever
kills it in between finds in the table `done` whether the transaction is there. Ends when its input does.
"""

import json
import random
import select
import sqlite3
import sys

REGISTERS = [f"r{number:02}" for number in range(20)]
#: SQLite's answers after which a program tries again: others write, or the disk is full for the moment.
TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
             sqlite3.SQLITE_CANTOPEN}


class Program:
    def __init__(self, store, prefix, seed):
        self._connection = sqlite3.connect(store, timeout=60, isolation_level=None)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._prefix = prefix
        self._random = random.Random(seed)
        self._count = 0
        # The program's own committed rows: name -> (row id, name of the parent). Only leaves are ever deleted.
        self._roots, self._leaves = {}, {}

    def transact(self):
        """One transaction, or nothing where the database can't take it now."""
        before = dict(self._roots), dict(self._leaves)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            ticket = self._connection.execute("UPDATE ticket SET number = number + 1 RETURNING number").fetchall()[0][0]
            size = self._random.choices([1, self._random.randint(2, 20), 200], weights=[70, 28, 2])[0]
            states = {}
            for _ in range(size):
                self._step(states)
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
            self._roots, self._leaves = before
            say("R", str(error))

    def _step(self, states):
        kind = self._random.choices(["root", "leaf", "change", "delete", "register"], weights=[20, 30, 25, 10, 15])[0]
        if kind == "register":
            name, value = self._random.choice(REGISTERS), self._marker("value")
            self._run("UPDATE register SET value = ? WHERE name = ?", value, name)
            states["register", name] = value
        elif kind == "leaf" and self._roots:
            parent = self._random.choice(list(self._roots))
            self._add(states, self._leaves, parent, self._roots[parent][0])
        elif kind == "change" and self._leaves:
            name, value = self._random.choice(list(self._leaves)), self._marker("value")
            row, parent = self._leaves[name]
            self._run("UPDATE item SET value = ? WHERE id = ? AND name = ?", value, row, name)
            states["item", name] = f"{value}|{parent}"
        elif kind == "delete" and self._leaves:
            name = self._random.choice(list(self._leaves))
            row, _ = self._leaves.pop(name)
            self._run("DELETE FROM item WHERE id = ? AND name = ?", row, name)
            states["item", name] = None
        else:
            self._add(states, self._roots, "", None)

    def _add(self, states, rows, parent, parent_row):
        name, value = self._marker("item"), self._marker("value")
        cursor = self._connection.execute(
            "INSERT INTO item (name, value, parent_id) VALUES (?, ?, ?)", (name, value, parent_row))
        rows[name] = (cursor.lastrowid, parent)
        states["item", name] = f"{value}|{parent}"

    def _run(self, sql, *parameters):
        if self._connection.execute(sql, parameters).rowcount != 1:
            raise RuntimeError(f"its own row is gone, or has another row id: {parameters}")

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
