"""Runs nodes with an HTTP endpoint, individual settings, and a clock that may be wrong."""

import subprocess

import yaml

from shared.faketime import FakeClocks
from shared.http_driver import READY_LAG_SECONDS, HTTPDriver
from shared.waiting import Skip


class ObservabilityDriver(HTTPDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary)
        self._clocks = None
        #: Node name -> shift of the agent's clock in seconds, from its next start.
        self.shifts = {}

    def close(self):
        super().close()
        if self._clocks is not None:
            self._clocks.close()

    def set(self, node, **settings):
        """Writes the configuration file of a node. `settings`: section -> its settings."""
        document = {
            "http": {"listen": self.address(node), "readyLag": f"{READY_LAG_SECONDS}s"}, "snapshot": {"interval": "0s"},
            **settings,
        }
        self.configure(node, yaml.safe_dump(document))

    def shift_clock(self, node, seconds):
        """Shifts a node's clock from its next start. Raises Skip without libfaketime."""
        if self._clocks is None:
            self._clocks = FakeClocks()
        if not self._clocks.available:
            raise Skip("no libfaketime here: scripts/install-dependencies.sh --torture")
        self.shifts[node.name] = seconds

    def write_shifted(self, node, sql):
        """Runs a program that writes to a node's store, with the node's clock."""
        subprocess.run(["sqlite3", "-cmd", ".timeout 10000", node.store, sql], check=True, stdin=subprocess.DEVNULL,
                       env=self._clocks.environment(self.shifts[node.name]))

    def _agent_environment(self, node):
        return self._clocks.environment(self.shifts[node.name]) if node.name in self.shifts else None
