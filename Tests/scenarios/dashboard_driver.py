"""Nodes whose agents answer over HTTP and reach the broker through links of their own."""

import json
import urllib.request

import brokers
import produce
from process_driver import ProcessDriver
from proxy import Proxies
from waiting import eventually

TOKEN = "a-token-for-the-tests-of-the-page"
#: An agent says that it is behind when it is by this much.
READY_LAG_SECONDS = 10
SCHEMA = """
    CREATE TABLE note (key TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, text TEXT);
    CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL);
"""
CONFIGURATION = """
http:
  listen: 127.0.0.1:{port}
  readyLag: {lag}s
{token}
sync:
  # So that catching up takes a while.
  applyBatchTransactions: 1
snapshot:
  interval: 0s
"""


class DashboardDriver(ProcessDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary, None)
        self._proxies = None
        self._ports = {}
        self.links = {}

    def open(self, own_broker=True):
        super().open(own_broker)
        self._proxies = Proxies()

    def close(self):
        super().close()
        if self._proxies is not None:
            self._proxies.close()
            self._proxies = None

    def add(self, *names, token=False):
        """Nodes with one schema, whose agents run. With a token where the page may change things."""
        nodes = [self.add_node(name, SCHEMA) for name in names]
        for node in nodes:
            self.links[node.name] = self._proxies.link(self._broker.port)
            self._ports[node.name] = brokers.free_port()
            token_file = self.folder / f"{node.name}.token"
            token_file.write_text(TOKEN + "\n")
            token_file.chmod(0o600)
            self.configure(node, CONFIGURATION.format(
                port=self._ports[node.name], lag=READY_LAG_SECONDS,
                token=f"  tokenFile: {token_file}" if token else ""))
        self.start(*nodes)
        return nodes

    def _bootstrap_of(self, node):
        return f"127.0.0.1:{self.links[node.name].port}"

    def url(self, node):
        return f"http://127.0.0.1:{self._ports[node.name]}/"

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

    def write_garbage(self, *values):
        for value in values:
            produce.produce(self._broker.port, self.topic, 0, value)

    def wait_until_published(self, node):
        eventually(f"the broker has all of {node.name}", lambda: self.status(node)["unpublished"] == 0, 180)
