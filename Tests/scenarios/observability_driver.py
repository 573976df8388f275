"""Nodes for the observability test: as the dashboard's, with settings of their own, and with a clock that may be wrong."""

import subprocess

import yaml

import brokers
from clocks import WrongClocks
from dashboard_driver import READY_LAG_SECONDS, SCHEMA, DashboardDriver
from waiting import Skip


class ObservabilityDriver(DashboardDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary)
        self._clocks = None
        #: Shifts of agents' clocks, in seconds; for their next start.
        self.shifts = {}

    def close(self):
        super().close()
        if self._clocks is not None:
            self._clocks.close()

    def add(self, *names, attach=(), **settings):
        """Nodes with one schema, whose agents run; with settings of the configuration file, by section."""
        nodes = [self.add_node(name, SCHEMA, attach=attach) for name in names]
        for node in nodes:
            self.links[node.name] = self._proxies.link(self._broker.port)
            self._ports[node.name] = brokers.free_port()
            self.set(node, **settings)
        self.start(*nodes)
        return nodes

    def set(self, node, **settings):
        """Writes the configuration file of a node."""
        document = {
            "http": {"listen": self.address(node), "readyLag": f"{READY_LAG_SECONDS}s"}, "snapshot": {"interval": "0s"},
            **settings,
        }
        self.configure(node, yaml.safe_dump(document))

    def address(self, node):
        """The node, as Prometheus calls it: the label `instance`."""
        return f"127.0.0.1:{self._ports[node.name]}"

    def shift_clock(self, node, seconds):
        """Gives a node another clock, from its next start on. Raises Skip where that can't be done."""
        if self._clocks is None:
            self._clocks = WrongClocks()
        if not self._clocks.are_there:
            raise Skip("no libfaketime here: scripts/install-dependencies.sh --torture")
        self.shifts[node.name] = seconds

    def write_shifted(self, node, sql):
        """Another program writes to a node's store, by the node's clock."""
        subprocess.run(["sqlite3", "-cmd", ".timeout 10000", node.store, sql], check=True, stdin=subprocess.DEVNULL,
                       env=self._clocks.environment(self.shifts[node.name]))

    def _start(self, node):
        if not self.shifts.get(node.name):
            super()._start(node)
            return
        command = [self._binary, "run", "--store", node.store, "--name", node.name, *self.broker_arguments(node)]
        with open(self._log(node), "ab") as log:
            self._processes[node.name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self._clocks.environment(self.shifts[node.name]))
