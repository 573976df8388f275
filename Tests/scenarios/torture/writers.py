"""Writers of the torture rig: processes that the rig kills, each with a thread that reads which transactions committed."""

import json
import pathlib
import random
import signal
import subprocess
import sys
import threading

from shared.waiting import Failure

#: The module of the writing program, and the folder from which Python imports it.
PACKAGES = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = "torture.writing_program"


class TortureWriter:
    """Runs one kind of writing program on a store. `generation` makes the names of its rows unique after each kill."""

    def __init__(self, node, name, ledger, seed, pause_seconds, environment=None):
        self.node = node
        self.name = f"{node.name}-{name}"
        self.kills = 0
        self.refusals = 0
        self.error = None
        self._ledger = ledger
        self._seed = seed
        self._pause_seconds = pause_seconds
        self._environment = environment
        self._generation = 0
        self._lock = threading.Lock()
        self._process = None
        self._thread = None

    def start(self):
        self._generation += 1
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
        self._begin()
        self._thread.start()

    def kill(self):
        """kill -9, at any point of the program."""
        self.kills += 1
        self._kill()
        self._thread.join()

    def stop(self):
        """Ends the program after its transaction. Raises its error, if any."""
        self._end()
        self._thread.join(120)
        if self._thread.is_alive():
            self._kill()
            raise Failure(f"writer {self.name} did not end")
        if self.error is not None:
            raise Failure(f"writer {self.name}: {self.error}")

    def _resolve(self, intent):
        """Enters a transaction in the ledger if it is in the store, after its program died without reporting the outcome."""
        name, _, changes, states = intent
        found = self.node.rows("SELECT ticket FROM done WHERE name = ?", (name,))
        if found:
            self._enter(name, found[0][0], changes, states)

    def _enter(self, name, ticket, changes, states):
        entered = {tuple(key): state for key, state in states}
        entered["done", name] = 1
        self._ledger.acknowledge(ticket, entered, changes)


class PythonWriter(TortureWriter):
    """A program with Python's sqlite3 module, which changes its own rows and the shared registers."""

    def _begin(self):
        prefix = f"mt-{self.name}-{self._generation}"
        seed = f"{self._seed}-{prefix}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, self.node.store, prefix, seed, str(self._pause_seconds)], cwd=PACKAGES,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment)

    def _work(self):
        intent = None
        for line in self._process.stdout:
            try:
                letter, what = line[0], json.loads(line[2:])
            except ValueError:
                break  # a kill cut the line short: its transaction was not committed
            if letter == "I":
                intent = what
            elif letter == "A":
                self._enter(*intent)
                intent = None
            else:
                self.refusals += 1
                intent = None
        code = self._process.wait()
        if intent is not None:
            self._resolve(intent)
        if code not in (0, -signal.SIGKILL):
            self.error = f"exit code {code}: {self._process.stderr.read()[-2000:]}"
        self._process.stderr.close()

    def _kill(self):
        self._process.kill()

    def _end(self):
        self._process.stdin.close()


class ShellWriter(TortureWriter):
    """The sqlite3 shell, with one process per transaction."""

    def _begin(self):
        self._ends = threading.Event()

    def _work(self):
        rng = random.Random(f"{self._seed}-{self.name}-{self._generation}")
        count = 0
        while not self._ends.wait(rng.uniform(0.2, 1.8) * self._pause_seconds):
            count += 1
            self._transact(f"mt-{self.name}-{self._generation}", count, rng)

    def _transact(self, prefix, count, rng):
        name, states = f"{prefix}-done-{count}", []
        lines = ["PRAGMA foreign_keys = ON;", "BEGIN IMMEDIATE;", "UPDATE ticket SET number = number + 1;"]
        for number in range(rng.randint(1, 5)):
            item, value = f"{prefix}-item-{count}-{number}", f"{prefix}-value-{count}-{number}"
            lines.append(f"INSERT INTO item (name, value) VALUES ('{item}', '{value}');")
            states.append([("item", item), f"{value}|"])
        register, value = f"r{rng.randrange(20):02}", f"{prefix}-value-{count}"
        lines.append(f"UPDATE register SET value = '{value}' WHERE name = '{register}';")
        states.append([("register", register), value])
        lines += [f"INSERT INTO done SELECT '{name}', number FROM ticket;", "COMMIT;"]
        with self._lock:
            if self._ends.is_set():
                return
            self._process = subprocess.Popen(
                ["sqlite3", "-batch", "-bail", "-cmd", ".timeout 60000", self.node.store], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment)
        problem = self._process.communicate("\n".join(lines))[1]
        self._resolve((name, None, len(states) + 1, states))
        if self._process.returncode not in (0, -signal.SIGKILL):
            self.refusals += 1
            if not any(word in problem for word in ("locked", "busy", "full", "disk I/O", "unable to open")):
                self.error = problem[-2000:]
                self._ends.set()

    def _kill(self):
        with self._lock:
            self._ends.set()
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _end(self):
        self._ends.set()
