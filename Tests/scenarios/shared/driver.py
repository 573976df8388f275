"""What a scenario can do to nodes and to the broker, however they are run."""

import abc
import contextlib
import dataclasses
import json
import shutil
import sqlite3
import uuid

from shared.waiting import Failure, eventually, expect, expect_equal

#: In every store: rows that prove that what was written before them has arrived (see Driver.settle).
BARRIER_TABLE = "CREATE TABLE IF NOT EXISTS barrier (name TEXT PRIMARY KEY NOT NULL)"


class Node:
    """A store, and the agent that keeps it in step (or does not run at the moment)."""

    def __init__(self, name, store):
        self.name = name
        #: The SQLite file, as this process sees it.
        self.store = store

    @contextlib.contextmanager
    def connection(self):
        """A connection with Python's default settings, like any program's that knows nothing of Martlet."""
        connection = sqlite3.connect(self.store, timeout=60)
        try:
            yield connection
        finally:
            connection.close()

    def write(self, *statements):
        """Runs statements, each a string or (string, parameters), in one transaction."""
        with self.connection() as connection:
            for statement in statements:
                sql, parameters = statement if isinstance(statement, tuple) else (statement, ())
                connection.execute(sql, parameters)
            connection.commit()

    def rows(self, sql, parameters=()):
        """What a query finds, as a list of tuples."""
        with self.connection() as connection:
            return connection.execute(sql, parameters).fetchall()

    def value(self, sql, parameters=()):
        """The first column of the only row that a query finds."""
        rows = self.rows(sql, parameters)
        expect(len(rows) == 1, f"{self.name}: {len(rows)} rows instead of one: {sql}")
        return rows[0][0]


@dataclasses.dataclass(frozen=True)
class ListenerPlacement:
    """Where fronts are, and the broker behind them."""

    #: The address that a front listens on.
    bind_address: str
    #: The name by which nodes reach it, and that by which the broker calls itself: both have the same length.
    name: str
    broker_name: str
    #: Where this process reaches the broker.
    broker_address: str
    broker_port: int


class Driver(abc.ABC):
    """Makes, starts, stops and kills nodes. One driver runs one scenario."""

    def __init__(self, folder):
        self.folder = folder
        self.topic = f"martlet-{uuid.uuid4().hex[:12]}"
        self.nodes = {}
        self._running = set()
        #: Names of nodes whose agents are frozen.
        self._frozen = set()
        #: Names of nodes whose configuration files say where the broker is.
        self._broker_in_file = set()

    # What a driver provides.

    @abc.abstractmethod
    def open(self, own_broker):
        """Makes the broker and the topic ready. With `own_broker`, a broker that may be killed."""

    @abc.abstractmethod
    def close(self):
        """Ends everything that was started. Idempotent."""

    @property
    @abc.abstractmethod
    def bootstrap(self):
        """Where nodes find the broker."""

    @property
    @abc.abstractmethod
    def listener_placement(self):
        """Where a front before the broker is, a front.ListenerPlacement."""

    @abc.abstractmethod
    def _command(self, *arguments):
        """Runs a martlet command to its end, which may be an error, and returns a subprocess.CompletedProcess with text."""

    @abc.abstractmethod
    def ending(self, node):
        """Waits until an agent ends of itself, and returns its exit code and what it printed."""

    @abc.abstractmethod
    def reload(self, node):
        """Makes the agent read its configuration file again."""

    @abc.abstractmethod
    def process_identifier(self, node): ...

    @abc.abstractmethod
    def log_text(self, node):
        """What the agent has logged so far."""

    @abc.abstractmethod
    def _start(self, node): ...

    @abc.abstractmethod
    def _stop(self, node):
        """SIGTERM; returns the exit code."""

    @abc.abstractmethod
    def _kill(self, node): ...

    @abc.abstractmethod
    def freeze(self, node):
        """Takes the agent off the processor until `thaw`."""

    @abc.abstractmethod
    def thaw(self, node): ...

    @abc.abstractmethod
    def problem(self, node):
        """Why an agent that should run does not, or None."""

    def require_old_requests(self):
        """Raises Skip where the broker does not answer requests as old as those that authorizer.py reads."""

    @abc.abstractmethod
    def kill_broker(self, hard=False):
        """kill -9 of the broker. Where that loses what it has acknowledged, it is made to save first, unless `hard`."""

    @abc.abstractmethod
    def start_broker(self):
        """Starts the killed broker again, on the same data."""

    @abc.abstractmethod
    def wipe_broker(self):
        """Starts the broker again without its data, and makes the topic anew."""

    # What scenarios use.

    def add_node(self, name, schema="", copy_of=None, attach=()):
        """Makes a store from SQL, or from a copy of a file, prepares it, and returns its node, not started."""
        folder = self.folder / "stores" / name
        folder.mkdir(parents=True, exist_ok=True)
        node = Node(name, folder / "store.sqlite")
        if copy_of is not None:
            shutil.copyfile(copy_of, node.store)
        with node.connection() as connection:
            connection.executescript(f"{schema};\n{BARRIER_TABLE};")
        self.nodes[name] = node
        self.martlet("init", self.store_argument(node))
        self.martlet("attach", self.store_argument(node), *attach)
        return node

    def copy_store(self, node, name):
        """A node whose store is a copy of another one's files; its agent must not run meanwhile."""
        folder = self.folder / "stores" / name
        shutil.copytree(node.store.parent, folder)
        self.nodes[name] = Node(name, folder / node.store.name)
        return self.nodes[name]

    def martlet(self, *arguments):
        """Runs a martlet command to its end, and returns what it printed. Raises Failure on an error."""
        done = self._command(*arguments)
        if done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {' '.join(done.args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def attempt(self, *arguments):
        """Runs a martlet command that may fail, and returns its exit code and all that it printed."""
        done = self._command(*arguments)
        return done.returncode, done.stdout + done.stderr

    def store_argument(self, node):
        """The node's store as the martlet command sees it."""
        return node.store

    def configure(self, node, text, names_broker=False):
        """Gives the agent a configuration file, from its next start or `reload` on.

        Flags say what is the scenario's, except for the broker where the file does (`names_broker`).
        """
        self._configuration(node).write_text(text)
        if names_broker:
            self._broker_in_file.add(node.name)

    def broker_arguments(self, node):
        """How to name the broker, the topic and the configuration file to a command, as for the agent."""
        arguments = [] if node.name in self._broker_in_file else ["--bootstrap-servers", self._bootstrap_of(node)]
        arguments += ["--topic", self.topic]
        configuration = self._configuration(node)
        return arguments + (["--config", configuration] if configuration.exists() else [])

    def create_topic(self, name, partitions):
        self.martlet("topic", "create", "--bootstrap-servers", self.bootstrap, "--topic", name,
                     "--partitions", partitions, "--replication", 1)

    def create_unused_topic(self):
        """Makes the broker store something, and returns the name by which it can be found in what it has saved."""
        name = f"unused-{uuid.uuid4().hex}"
        self.create_topic(name, partitions=1)
        return name

    @contextlib.contextmanager
    def frozen(self):
        """Agents that run are off the processor for as long as the context lasts."""
        running = [node for node in self.nodes.values() if self.is_running(node) and node.name not in self._frozen]
        for node in running:
            self.freeze(node)
        try:
            yield
        finally:
            for node in running:
                self.thaw(node)

    def _bootstrap_of(self, node):
        """Where the agent of a node looks for the broker."""
        return self.bootstrap

    def _run_arguments(self, node):
        return ["run", "--store", node.store, "--name", node.name, *self.broker_arguments(node)]

    def _configuration(self, node):
        return self.folder / f"{node.name}.yaml"

    def _log(self, node):
        return self.folder / f"{node.name}.log"

    def start(self, *nodes):
        """Starts the agents of nodes."""
        for node in nodes:
            self._start(node)
            self._running.add(node.name)

    def stop(self, *nodes):
        """Stops agents in good order, and expects them to end well."""
        for node in nodes:
            self._running.discard(node.name)
            expect_equal(self._stop(node), 0, f"exit code of the agent of {node.name} after SIGTERM")

    def kill(self, *nodes):
        """kill -9 of agents."""
        for node in nodes:
            self._running.discard(node.name)
            self._kill(node)

    def is_running(self, node):
        """Whether the agent was started and not ended since."""
        return node.name in self._running

    def command_json(self, node, *command):
        """What `martlet COMMAND STORE --json` prints, decoded."""
        printed = self.martlet(*command, self.store_argument(node), "--json")
        try:
            return json.loads(printed)
        except json.JSONDecodeError:
            return [json.loads(line) for line in printed.splitlines() if line.strip()]

    def status(self, node):
        return self.command_json(node, "status")

    def digest(self, node):
        """The digests of the tables: equal on two nodes that hold the same."""
        report = self.command_json(node, "digest")
        return report.get("entities", report) if isinstance(report, dict) else report

    def history(self, node):
        """All transactions of a node's history, oldest first."""
        report = self.command_json(node, "history", "list")
        return report["transactions"] if isinstance(report, dict) else report

    def settle(self, *nodes, deadline_seconds=120.0):
        """Waits until every node has what every node wrote, and expects them to agree.

        Each node writes a row into the barrier table; an origin's transactions arrive in order, so the row proves that
        everything before it has arrived too. Nobody else may write meanwhile.
        """
        names = set()
        for node in nodes:
            name = f"{node.name}-{uuid.uuid4().hex}"
            node.write(("INSERT INTO barrier VALUES (?)", (name,)))
            names.add(name)
        for node in nodes:
            eventually(
                f"{node.name} has what every node wrote",
                lambda: self._missing_barriers(node, names),
                deadline_seconds,
            )
        eventually("equal digests", lambda: self._equal_digests(nodes), deadline_seconds)

    def expect_each_transaction_once(self, *nodes):
        """Expects that no history holds a remote transaction, known by origin and sequence, more than once."""
        for node in nodes:
            seen = set()
            for transaction in self.history(node):
                origin = transaction.get("origin")
                if origin is None:
                    continue
                key = (origin["node"], origin["sequence"])
                expect(key not in seen, f"{node.name} applied sequence {key[1]} of {key[0]} twice")
                seen.add(key)

    def expect_integrity(self, *nodes):
        """Expects that SQLite finds nothing wrong in the stores."""
        for node in nodes:
            expect_equal(node.rows("PRAGMA integrity_check"), [("ok",)], f"integrity_check of {node.name}")
            expect_equal(node.rows("PRAGMA foreign_key_check"), [], f"foreign_key_check of {node.name}")

    def _missing_barriers(self, node, names):
        self._expect_agents_alive()
        missing = names - {name for (name,) in node.rows("SELECT name FROM barrier")}
        return True if not missing else (False, f"the last writes of {sorted(missing)} are missing")

    def _equal_digests(self, nodes):
        self._expect_agents_alive()
        digests = {node.name: self.digest(node) for node in nodes}
        first, *others = digests.values()
        return True if all(other == first for other in others) else (False, digests)

    def _expect_agents_alive(self):
        for name in self._running:
            problem = self.problem(self.nodes[name])
            if problem:
                raise Failure(f"the agent of {name} does not run: {problem}")
