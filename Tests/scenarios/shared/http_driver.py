"""Nodes whose agents answer over HTTP and reach the broker through links of their own."""

import json
import urllib.request

from shared import brokers
from shared.linked_driver import LinkedDriver
from shared.notes import SCHEMA
from shared.waiting import eventually

TOKEN = "a-token-for-the-tests-of-the-page"
#: An agent says that it is behind when it is by this much.
READY_LAG_SECONDS = 10
CONFIGURATION = """
http:
  listen: {address}
  readyLag: {lag}s
{token}
sync:
  # So that catching up takes a while.
  applyBatchTransactions: 1
snapshot:
  interval: 0s
"""


class HTTPDriver(LinkedDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary)
        self._ports = {}

    def add(self, *names, **settings):
        """Nodes with one schema, whose agents run, with settings that `set` understands."""
        nodes = [self.add_node(name, SCHEMA) for name in names]
        for node in nodes:
            self.add_link(node.name)
            self._ports[node.name] = brokers.free_port()
            self.set(node, **settings)
        self.start(*nodes)
        return nodes

    def set(self, node, token=False):
        """Writes the configuration file of a node. With a token where the page may change things."""
        token_file = self.folder / f"{node.name}.token"
        token_file.write_text(TOKEN + "\n")
        token_file.chmod(0o600)
        self.configure(node, CONFIGURATION.format(
            address=self.address(node), lag=READY_LAG_SECONDS, token=f"  tokenFile: {token_file}" if token else ""))

    def address(self, node):
        """Where the agent answers, and what Prometheus calls the node: the label `instance`."""
        return f"127.0.0.1:{self._ports[node.name]}"

    def url(self, node):
        return f"http://{self.address(node)}/"

    def asked(self, node, path="status"):
        """What the agent answers, decoded."""
        request = urllib.request.Request(self.url(node) + path, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def answers(self, node):
        """Whether the agent answers, and has read the topic."""
        try:
            return self.asked(node)["ready"]
        except OSError as error:
            return False, str(error)

    def wait_until_ready(self, *nodes):
        for node in nodes:
            eventually(f"{node.name} is in step", lambda: self.answers(node))
