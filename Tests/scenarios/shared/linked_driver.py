"""Runs nodes as processes, each of which reaches the broker through a fault-injecting proxy (a link)."""

from shared import kafka_producer
from shared.fault_proxy import LOOPBACK, Proxies
from shared.process_driver import ProcessDriver
from shared.waiting import eventually


class LinkedDriver(ProcessDriver):
    """Always starts its own broker."""

    def __init__(self, folder, binary):
        super().__init__(folder, binary, None)
        self._proxies = None
        #: Node name -> Link.
        self.links = {}

    def open(self, own_broker=True):
        super().open(own_broker)
        self._proxies = Proxies()

    def close(self):
        super().close()
        if self._proxies is not None:
            self._proxies.close()
            self._proxies = None

    def add_link(self, name, address=LOOPBACK):
        """Adds the link of the node with this name, and returns it."""
        self.links[name] = self._proxies.link(self._broker.port, address)
        return self.links[name]

    def _bootstrap_of(self, node):
        return self.links[node.name].bootstrap

    def write_garbage(self, *values):
        """Writes messages to the topic that are not transactions."""
        for value in values:
            kafka_producer.produce(self._broker.port, self.topic, 0, value)

    def wait_until_published(self, node):
        eventually(f"{node.name} has published everything", lambda: self.status(node)["unpublished"] == 0, 180)
