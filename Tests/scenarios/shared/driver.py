"""The operations of scenarios on nodes and the broker, whether they run as processes or containers."""

import abc
import contextlib
import dataclasses
import json
import shutil
import sqlite3
import uuid

from shared.waiting import Failure, eventually, expect, expect_equal

#: In every store. Its rows prove that all earlier changes have arrived (see Driver.settle).
BARRIER_TABLE = "CREATE TABLE IF NOT EXISTS barrier (name TEXT PRIMARY KEY NOT NULL)"


class Node:
    """A store and its agent, which may be stopped."""

    def __init__(self, name, store):
        self.name = name
        #: The path of the SQLite file in this process.
        self.store = store

    @contextlib.contextmanager
    def connection(self):
        """A connection with Python's default settings, as a program without Martlet opens it."""
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
        """The rows of a query, as a list of tuples."""
        with self.connection() as connection:
            return connection.execute(sql, parameters).fetchall()

    def value(self, sql, parameters=()):
        """The first column of a query's only row."""
        rows = self.rows(sql, parameters)
        expect(len(rows) == 1, f"{self.name}: {len(rows)} rows instead of one: {sql}")
        return rows[0][0]


@dataclasses.dataclass(frozen=True)
class ListenerPlacement:
    """The addresses of secured listeners, and of the broker behind them."""

    #: The address that listeners bind to.
    bind_address: str
    #: The host name by which nodes reach them, and the host that the broker advertises. Both have the same length.
    name: str
    broker_name: str
    #: The address by which this process reaches the broker.
    broker_address: str
    broker_port: int


class Driver(abc.ABC):
    """Adds, starts, stops and kills nodes. One driver runs one scenario."""

    def __init__(self, folder):
        self.folder = folder
        self.topic = f"martlet-{uuid.uuid4().hex[:12]}"
        self.nodes = {}
        self._running = set()
        #: Names of nodes whose agents are frozen.
        self._frozen = set()
        #: Names of nodes whose configuration files contain the broker's address.
        self._broker_in_file = set()

    @property
    def binary(self):
        """The martlet command, if it runs on this machine."""
        return None

    # Implemented by subclasses.

    @abc.abstractmethod
    def open(self, own_broker):
        """Prepares the broker and the topic. With `own_broker`, a broker that the scenario may kill."""

    @abc.abstractmethod
    def close(self):
        """Ends everything that the driver started. Idempotent."""

    @property
    @abc.abstractmethod
    def bootstrap(self):
        """The bootstrap server for nodes."""

    @property
    @abc.abstractmethod
    def listener_placement(self):
        """The ListenerPlacement of secured listeners in front of the broker."""

    @abc.abstractmethod
    def _command(self, *arguments):
        """Runs a martlet command, which may fail. Returns a subprocess.CompletedProcess with text."""

    @abc.abstractmethod
    def wait_for_exit(self, node):
        """Waits until an agent ends by itself. Returns its exit code and its output."""

    @abc.abstractmethod
    def reload(self, node):
        """Makes the agent read its configuration file again."""

    @abc.abstractmethod
    def process_identifier(self, node): ...

    @abc.abstractmethod
    def log_text(self, node):
        """The agent's log so far."""

    @abc.abstractmethod
    def _start(self, node): ...

    @abc.abstractmethod
    def _stop(self, node):
        """SIGTERM; returns the exit code."""

    @abc.abstractmethod
    def _kill(self, node): ...

    @abc.abstractmethod
    def freeze(self, node):
        """Suspends the agent until `thaw`."""

    @abc.abstractmethod
    def thaw(self, node): ...

    @abc.abstractmethod
    def problem(self, node):
        """Why an agent that should be running isn't, or None."""

    def require_old_requests(self):
        """Raises Skip if the broker doesn't support the old request versions that authorizer.py reads."""

    @abc.abstractmethod
    def kill_broker(self, hard=False):
        """kill -9 of the broker. If that would lose acknowledged messages, waits until it has saved them, unless `hard`."""

    @abc.abstractmethod
    def start_broker(self):
        """Restarts the killed broker, on the same data."""

    @abc.abstractmethod
    def wipe_broker(self):
        """Restarts the broker without its data, and creates the topic again."""

    # Used by scenarios.

    def add_node(self, name, schema="", copy_of=None, attach=()):
        """Creates a store from SQL or from a copy of a file, and attaches it. Returns its node, not started."""
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
        """Adds a node whose store is a copy of the files of another node, whose agent must not be running."""
        folder = self.folder / "stores" / name
        shutil.copytree(node.store.parent, folder)
        self.nodes[name] = Node(name, folder / node.store.name)
        return self.nodes[name]

    def martlet(self, *arguments):
        """Runs a martlet command, and returns its output. Raises Failure on an error."""
        done = self._command(*arguments)
        if done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {' '.join(done.args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def attempt(self, *arguments):
        """Runs a martlet command that may fail. Returns its exit code and its complete output."""
        done = self._command(*arguments)
        return done.returncode, done.stdout + done.stderr

    def store_argument(self, node):
        """The path of the node's store for the martlet command."""
        return node.store

    def configure(self, node, text, names_broker=False):
        """Writes the agent's configuration file, which applies from its next start or `reload`.

        Store, name and topic are flags. So is the broker, unless the file contains it (`names_broker`).
        """
        self._configuration(node).write_text(text)
        if names_broker:
            self._broker_in_file.add(node.name)

    def broker_arguments(self, node):
        """The flags for broker, topic and configuration file, as the agent gets them."""
        arguments = [] if node.name in self._broker_in_file else ["--bootstrap-servers", self._bootstrap_of(node)]
        arguments += ["--topic", self.topic]
        configuration = self._configuration(node)
        return arguments + (["--config", configuration] if configuration.exists() else [])

    def create_topic(self, name, partitions):
        self.martlet("topic", "create", "--bootstrap-servers", self.bootstrap, "--topic", name,
                     "--partitions", partitions, "--replication", 1)

    def create_unused_topic(self):
        """Creates an unused topic, and returns its name, which shows up in the data that the broker saves."""
        name = f"unused-{uuid.uuid4().hex}"
        self.create_topic(name, partitions=1)
        return name

    @contextlib.contextmanager
    def frozen(self):
        """A context manager that suspends all running agents."""
        running = [node for node in self.nodes.values() if self.is_running(node) and node.name not in self._frozen]
        for node in running:
            self.freeze(node)
        try:
            yield
        finally:
            for node in running:
                self.thaw(node)

    def _bootstrap_of(self, node):
        """The bootstrap server for the agent of a node."""
        return self.bootstrap

    def _run_arguments(self, node):
        return ["run", "--store", node.store, "--name", node.name, *self.broker_arguments(node)]

    def _configuration(self, node):
        return self.folder / f"{node.name}.yaml"

    def _log(self, node):
        return self.folder / f"{node.name}.log"

    def start(self, *nodes):
        """Starts agents."""
        for node in nodes:
            self._start(node)
            self._running.add(node.name)

    def stop(self, *nodes):
        """Stops agents with SIGTERM, and expects exit code 0."""
        for node in nodes:
            self._running.discard(node.name)
            expect_equal(self._stop(node), 0, f"exit code of the agent of {node.name} after SIGTERM")

    def kill(self, *nodes):
        """kill -9 of agents."""
        for node in nodes:
            self._running.discard(node.name)
            self._kill(node)

    def is_running(self, node):
        """Whether the agent was started and not ended since then."""
        return node.name in self._running

    def command_json(self, node, *command):
        """The decoded output of `martlet COMMAND STORE --json`."""
        printed = self.martlet(*command, self.store_argument(node), "--json")
        try:
            return json.loads(printed)
        except json.JSONDecodeError:
            return [json.loads(line) for line in printed.splitlines() if line.strip()]

    def status(self, node):
        return self.command_json(node, "status")

    def digest(self, node):
        """The digests of the tables, which are equal on nodes with equal contents."""
        report = self.command_json(node, "digest")
        return report.get("entities", report) if isinstance(report, dict) else report

    def history(self, node):
        """All transactions of a node's history, oldest first."""
        report = self.command_json(node, "history", "list")
        return report["transactions"] if isinstance(report, dict) else report

    def settle(self, *nodes, deadline_seconds=120.0):
        """Waits until the nodes have converged: every node has the changes of all nodes, and their digests are equal.

        Each node writes a row into the barrier table. Transactions of one origin arrive in order, so the row proves that
        all earlier ones have arrived. No other program may write meanwhile.
        """
        names = set()
        for node in nodes:
            name = f"{node.name}-{uuid.uuid4().hex}"
            node.write(("INSERT INTO barrier VALUES (?)", (name,)))
            names.add(name)
        for node in nodes:
            eventually(
                f"{node.name} has the changes of all nodes",
                lambda: self._missing_barriers(node, names),
                deadline_seconds,
            )
        eventually("equal digests", lambda: self._equal_digests(nodes), deadline_seconds)

    def expect_each_transaction_once(self, *nodes):
        """Expects that no history contains a remote transaction, identified by origin and sequence, more than once."""
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
        """Expects that SQLite's checks find no problem in the stores."""
        for node in nodes:
            expect_equal(node.rows("PRAGMA integrity_check"), [("ok",)], f"integrity_check of {node.name}")
            expect_equal(node.rows("PRAGMA foreign_key_check"), [], f"foreign_key_check of {node.name}")

    def _missing_barriers(self, node, names):
        self.expect_agents_alive()
        missing = names - {name for (name,) in node.rows("SELECT name FROM barrier")}
        return True if not missing else (False, f"the last writes of {sorted(missing)} are missing")

    def _equal_digests(self, nodes):
        self.expect_agents_alive()
        digests = {node.name: self.digest(node) for node in nodes}
        first, *others = digests.values()
        return True if all(other == first for other in others) else (False, digests)

    def expect_agents_alive(self):
        for name in self._running:
            problem = self.problem(self.nodes[name])
            if problem:
                raise Failure(f"the agent of {name} is not running: {problem}")
