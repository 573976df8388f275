"""A store in a folder of its own, and a deadline for each test."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import unittest

import martlet
from martlet import _command

SECONDS = 60


def command_or_reason():
    """The command's path, and why there is none."""
    try:
        return _command.find(), ""
    except martlet.CommandMissing as error:
        return None, str(error)


COMMAND, REASON = command_or_reason()


@unittest.skipIf(COMMAND is None, REASON)
class StoreCase(unittest.TestCase):
    """A file with a table, which is not attached yet."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="martlet-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "shop.sqlite"
        self.write("CREATE TABLE item (name TEXT PRIMARY KEY NOT NULL, price, photo BLOB)")
        # A test that hangs ends with a stack trace.
        previous = signal.signal(signal.SIGALRM, self.too_late)
        self.addCleanup(signal.signal, signal.SIGALRM, previous)
        self.addCleanup(signal.alarm, 0)
        signal.alarm(SECONDS)

    @staticmethod
    def too_late(*_):
        raise AssertionError(f"not within {SECONDS} s")

    def write(self, *statements):
        """Each statement is a transaction of a program that does not know Martlet."""
        connection = sqlite3.connect(self.store, timeout=20, isolation_level=None)
        try:
            for statement in statements:
                connection.execute(*((statement,) if isinstance(statement, str) else statement))
        finally:
            connection.close()

    def add(self, *names):
        for name in names:
            self.write(("INSERT INTO item (name) VALUES (?)", [name]))

    def run_command(self, *arguments, **options):
        return subprocess.run([COMMAND, *map(os.fspath, arguments)], capture_output=True, text=True, **options)

    def attach_and_add(self, *names):
        """One transaction each: the command closes what was committed before it reads."""
        martlet.attach(self.store)
        for name in names:
            self.add(name)
            self.run_command("history", "list", self.store, check=True)

    def cursor(self, name="reader"):
        """What the store knows about a reader; None if nothing."""
        done = self.run_command("history", "cursors", self.store, "--json", check=True)
        return next((one for one in map(json.loads, done.stdout.splitlines()) if one["cursor"] == name), None)


def names(transactions):
    return [change.values["name"] for transaction in transactions for change in transaction.changes]
