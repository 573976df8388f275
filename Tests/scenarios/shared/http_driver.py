"""Runs nodes with an HTTP endpoint, each of which reaches the broker through a link."""

import json
import urllib.request

from shared import brokers
from shared.linked_driver import LinkedDriver
from shared.notes import SCHEMA
from shared.waiting import eventually

TOKEN = "a-token-for-the-tests-of-the-page"
#: The lag at which an agent reports that it is behind.
READY_LAG_SECONDS = 10
CONFIGURATION = """
http:
  listen: {address}
  readyLag: {lag}s
{token}
sync:
  # Slows catching up down.
  applyBatchTransactions: 1
snapshot:
  interval: 0s
"""


class HTTPDriver(LinkedDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary)
        self._ports = {}

    def add(self, *names, **settings):
        """Adds nodes with the same schema, and starts their agents. `settings` are those of `set`."""
        nodes = [self.add_node(name, SCHEMA) for name in names]
        for node in nodes:
            self.add_link(node.name)
            self._ports[node.name] = brokers.free_port()
            self.set(node, **settings)
        self.start(*nodes)
        return nodes

    def set(self, node, token=False):
        """Writes the configuration file of a node; with a token, the dashboard may make changes."""
        token_file = self.folder / f"{node.name}.token"
        token_file.write_text(TOKEN + "\n")
        token_file.chmod(0o600)
        self.configure(node, CONFIGURATION.format(
            address=self.address(node), lag=READY_LAG_SECONDS, token=f"  tokenFile: {token_file}" if token else ""))

    def address(self, node):
        """The agent's HTTP address, which is also the label `instance` in Prometheus."""
        return f"127.0.0.1:{self._ports[node.name]}"

    def url(self, node):
        return f"http://{self.address(node)}/"

    def get(self, node, path="status"):
        """The decoded JSON response of the agent."""
        request = urllib.request.Request(self.url(node) + path, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def is_ready(self, node):
        """Whether the agent responds, and has read the topic."""
        try:
            return self.get(node)["ready"]
        except OSError as error:
            return False, str(error)

    def wait_until_ready(self, *nodes):
        for node in nodes:
            eventually(f"{node.name} is in sync", lambda: self.is_ready(node))
