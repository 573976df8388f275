"""Nodes whose stores and configuration files are in one folder, with short names, as a person at a terminal has them."""

import produce
from driver import Node
from process_driver import ProcessDriver
from proxy import Proxies
from waiting import eventually

SCHEMA = """
    CREATE TABLE note (key TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, text TEXT);
    CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL);
    CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
"""
CONFIGURATION = """
store:
  path: {name}.sqlite
node:
  name: {name}
kafka:
  bootstrapServers: [{bootstrap}]
  topic: {topic}
  properties:
    # noida-db answers with all that there is, whatever it is asked for: librdkafka has to take that.
    receive.message.max.bytes: 1500000000
sync:
  applyBatchTransactions: {batch}
snapshot:
  interval: 0s
"""


class TerminalDriver(ProcessDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary.resolve(), None)
        self.topic = "notes"
        self._proxies = None
        self.links = {}
        #: Where a shell finds the command under its name.
        self.path = folder / "bin"

    def open(self, own_broker=True):
        self.path.mkdir()
        (self.path / "martlet").symlink_to(self._binary)
        super().open(own_broker)
        self._proxies = Proxies()

    def close(self):
        super().close()
        if self._proxies is not None:
            self._proxies.close()
            self._proxies = None

    def add(self, *names, batch=500, schema=SCHEMA):
        """Nodes with one schema, whose agents don't run yet. Each reaches the broker through a link of its own."""
        return [self._add(name, batch, schema) for name in names]

    def _add(self, name, batch, schema):
        node = self.nodes[name] = Node(name, self.folder / f"{name}.sqlite")
        with node.connection() as connection:
            connection.executescript(schema)
        self.martlet("attach", node.store)
        self.links[name] = self._proxies.link(self._broker.port)
        self.configure(node, CONFIGURATION.format(
            name=name, bootstrap=self.links[name].bootstrap, topic=self.topic, batch=batch), names_broker=True)
        return node

    def wait_until_published(self, node):
        eventually(f"the broker has all of {node.name}", lambda: self.status(node)["unpublished"] == 0, 180)

    def write_garbage(self, *values):
        for value in values:
            produce.produce(self._broker.port, self.topic, 0, value)
