"""Runs nodes whose stores and configuration files are in one folder, with short names, as a user would have them."""

from shared.driver import Node
from shared.linked_driver import LinkedDriver
from shared.notes import SCHEMA

TAG_TABLE = "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"
CONFIGURATION = """
store:
  path: {name}.sqlite
node:
  name: {name}
kafka:
  bootstrapServers: [{bootstrap}]
  topic: {topic}
  properties:
    # noida-db returns all messages, whatever limit a fetch has: librdkafka has to accept that.
    receive.message.max.bytes: 1500000000
sync:
  applyBatchTransactions: {batch}
snapshot:
  interval: 0s
"""


class TerminalDriver(LinkedDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary.resolve())
        self.topic = "notes"
        #: The folder in the PATH with the martlet command.
        self.path = folder / "bin"

    def open(self, own_broker=True):
        self.path.mkdir()
        (self.path / "martlet").symlink_to(self._binary)
        super().open(own_broker)

    def add(self, *names, batch=500):
        """Adds nodes with the same schema, not started."""
        return [self._add(name, batch) for name in names]

    def _add(self, name, batch):
        node = self.nodes[name] = Node(name, self.folder / f"{name}.sqlite")
        with node.connection() as connection:
            connection.executescript(SCHEMA + TAG_TABLE)
        self.martlet("attach", node.store)
        self.configure(node, CONFIGURATION.format(
            name=name, bootstrap=self.add_link(name).bootstrap, topic=self.topic, batch=batch), names_broker=True)
        return node
