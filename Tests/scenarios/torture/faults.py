"""The faults of the torture rig. Each begins, lasts and ends; several may last at the same time."""

import collections

from shared import fault_proxy
from shared.waiting import pause
from torture import namespaces

#: How often each network fault is chosen.
NETWORK_WEIGHTS = {namespaces.CUT: 4, namespaces.UNPLUGGED: 2, namespaces.LOSSY: 2, namespaces.SLOW: 1}


class Faults:
    """Chooses random faults, and counts them."""

    def __init__(self, driver, nodes, writers, rng, small_disk):
        self.driver = driver
        self.nodes = nodes
        self.writers = writers
        self.rng = rng
        self.small_disk = small_disk
        self.counts = collections.Counter()
        self.skipped = {}
        #: (end, function that ends the fault), for lasting faults.
        self._open = []
        #: Nodes whose agent has an active fault, so that the rig doesn't stop a dead process.
        self._busy = set()
        self._kinds = {self.kill_agent: 22, self.stop_agent: 14, self.kill_writer: 22, self.link: 24,
                       self.restart_broker: 5, self.kill_broker: 4, self.wrong_clock: 8, self.full_disk: 6,
                       self.network: 24}
        if small_disk is None:
            self._skip(self.full_disk, "needs root, for a small disk")
        if not driver.can_shift_clocks:
            self._skip(self.wrong_clock, "needs libfaketime (Debian: faketime)")
        if driver.networks_unavailable is not None:
            self._skip(self.network, driver.networks_unavailable)
        self.skipped.update((f"{mode} network", why) for mode, why in driver.unavailable_network_modes.items())

    def _skip(self, kind, why):
        del self._kinds[kind]
        self.skipped[kind.__name__] = why

    def step(self, now):
        """Ends faults that are over, and begins a new one."""
        self.end_due(now)
        kind = self.rng.choices(list(self._kinds), list(self._kinds.values()))[0]
        kind(now)

    def end_due(self, now):
        for entry in [entry for entry in self._open if entry[0] <= now]:
            self._open.remove(entry)
            entry[1]()

    def end_all(self):
        self.end_due(float("inf"))

    def _lasting(self, now, shortest, longest, end):
        self._open.append((now + self.rng.uniform(shortest, longest), end))

    def _agent_without_fault(self):
        without_fault = [node for node in self.nodes if node.name not in self._busy]
        return self.rng.choice(without_fault) if without_fault else None

    def kill_agent(self, now):
        node = self._agent_without_fault()
        if node is None:
            return
        self.driver.kill(node)
        self.counts["agents killed"] += 1
        self._restart_later(now, node, 0.1, 8)

    def _restart_later(self, now, node, shortest, longest):
        self._busy.add(node.name)

        def start():
            self.driver.start(node)
            self._busy.discard(node.name)

        self._lasting(now, shortest, longest, start)

    def stop_agent(self, now):
        """SIGSTOP, usually for seconds, sometimes for up to a minute."""
        node = self._agent_without_fault()
        if node is None:
            return
        self.driver.freeze(node)
        self.counts["agents stopped"] += 1
        self._busy.add(node.name)

        def thaw():
            self.driver.thaw(node)
            self._busy.discard(node.name)

        self._lasting(now, *((20, 60) if self.rng.random() < 0.2 else (1, 10)), thaw)

    def kill_writer(self, now):
        writer = self.rng.choice(self.writers)
        writer.kill()
        writer.start()
        self.counts["writers killed"] += 1

    def link(self, now):
        link = self.driver.links[self.rng.choice(self.nodes).name]
        if link.mode != fault_proxy.PASS:
            return
        mode = self.rng.choice([fault_proxy.CUT, fault_proxy.STALL, fault_proxy.SWALLOW])
        link.set(mode)
        self.counts[{fault_proxy.CUT: "links cut", fault_proxy.STALL: "links stalled", fault_proxy.SWALLOW: "links swallowing"}[mode]] += 1
        self._lasting(now, *((20, 45) if self.rng.random() < 0.2 else (0.2, 10)), lambda: link.set(fault_proxy.PASS))

    def network(self, now):
        """Begins a network fault between the agent's namespace and the rig's."""
        network = self.driver.networks[self.rng.choice(self.nodes).name]
        if network.mode is not None:
            return
        modes = self.driver.network_modes
        mode = self.rng.choices(modes, [NETWORK_WEIGHTS[mode] for mode in modes])[0]
        network.begin(mode)
        self.counts[f"networks {mode}"] += 1
        self._lasting(now, *((20, 45) if self.rng.random() < 0.2 else (0.2, 10)), network.end)

    def restart_broker(self, now):
        self._restart_broker(hard=False)
        self.counts["brokers restarted"] += 1

    def kill_broker(self, now):
        """The broker may lose messages that it has just acknowledged."""
        self._restart_broker(hard=True)
        self.counts["brokers killed"] += 1

    def _restart_broker(self, hard):
        self.driver.kill_broker(hard)
        pause(self.rng.uniform(0, 4))
        self.driver.start_broker()

    def wrong_clock(self, now):
        """Restarts the agent with a clock that is up to hours ahead; later with the right one.

        The clock is never behind: librdkafka waits with C11's `cnd_timedwait`, which libfaketime does not intercept, and would
        then wait for a time in the past. Writers' clocks are behind instead.
        """
        node = self._agent_without_fault()
        if node is None:
            return
        self.driver.kill(node)
        self.driver.shifts[node.name] = self.rng.randint(600, 20_000)
        self.driver.start(node)
        self.counts["clocks shifted"] += 1
        self._busy.add(node.name)

        def correct_clock():
            self.driver.kill(node)
            self.driver.shifts.pop(node.name)
            self.driver.start(node)
            self._busy.discard(node.name)

        self._lasting(now, 5, 30, correct_clock)

    def full_disk(self, now):
        node = self.small_disk
        self.driver.fill_disk(node)
        self.counts["disks filled"] += 1
        self._lasting(now, 1, 10, lambda: self.driver.free_disk(node))
