"""Nodes whose agents reach the broker from network namespaces of their own, through links of their own, and may run with
a wrong clock or on a small disk."""

import collections
import shutil
import subprocess
import tempfile

from shared.faketime import FakeClocks
from shared.fault_proxy import LOOPBACK
from shared.linked_driver import LinkedDriver
from torture.namespaces import Networks, Unavailable


class TortureDriver(LinkedDriver):
    def __init__(self, folder, binary):
        super().__init__(folder, binary)
        self._namespaces = Networks()
        #: By node; none where namespaces can't be had.
        self.networks = {}
        #: Why namespaces can't be had, or None.
        self.networks_unavailable = None
        #: Shifts of agents' clocks, in seconds; for their next start.
        self.shifts = {}
        #: Agents that ended without being told to: name -> last lines of their logs.
        self.unexpected_exits = collections.defaultdict(list)
        self._disks = []
        self._clocks = None

    def open(self, own_broker=True):
        super().open(own_broker)
        self._clocks = FakeClocks()

    def _make_broker(self):
        # It may be installed first, which needs the machine's network.
        broker = super()._make_broker()
        try:
            self._namespaces.open()
        except Unavailable as problem:
            self.networks_unavailable = str(problem)
        return broker

    @property
    def network_modes(self):
        return self._namespaces.modes()

    @property
    def unavailable_network_modes(self):
        return self._namespaces.unavailable

    @property
    def can_shift_clocks(self):
        return self._clocks.available

    def close(self):
        for name in list(self._frozen):
            self.thaw(self.nodes[name])
        super().close()
        self._namespaces.close()
        if self._clocks is not None:
            self._clocks.close()
        for disk in self._disks:
            subprocess.run(["umount", "--lazy", disk], capture_output=True)

    def add_node(self, name, schema="", copy_of=None, attach=()):
        address = LOOPBACK
        if self.networks_unavailable is None:
            self.networks[name] = self._namespaces.add()
            address = self.networks[name].rig_address
        self.add_link(name, address)
        return super().add_node(name, schema, copy_of, attach)

    # Disks

    def mount_disk(self, name, megabytes):
        """Puts a node's folder on a small disk of its own, before the node is added. False where that can't be done."""
        folder = self.folder / "stores" / name
        folder.mkdir(parents=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
                              capture_output=True)
        if done.returncode == 0:
            self._disks.append(folder)
        else:
            folder.rmdir()
        return done.returncode == 0

    def close_and_keep_disks(self):
        """Ends everything, with what small disks hold copied to the folder that is kept."""
        for node in self.nodes.values():
            self.free_disk(node)
        for disk in self._disks:
            shutil.copytree(disk, f"{disk}-kept")
        self.close()

    def fill_disk(self, node):
        """Leaves no byte free where the node's store is."""
        with open(node.store.parent / "ballast", "ab", buffering=0) as ballast:
            block = bytes(1 << 16)
            while block:
                try:
                    ballast.write(block)
                except OSError:
                    block = block[: len(block) // 2]

    def free_disk(self, node):
        (node.store.parent / "ballast").unlink(missing_ok=True)

    # Agents

    def _agent_command(self, node):
        command = super()._agent_command(node)
        return self.networks[node.name].command(command) if node.name in self.networks else command

    def _agent_environment(self, node):
        return self.shifted(self.shifts.get(node.name, 0))

    def shifted(self, seconds):
        """The environment of a process whose clock is wrong by so much."""
        return self._clocks.environment(seconds)

    def _save_crash_log(self, name, lines):
        """Keeps what an agent said that a signal has ended, also where the run passes and its files go."""
        with tempfile.NamedTemporaryFile("w", prefix=f"martlet-crash-{name}-", suffix=".log", delete=False) as file:
            file.write("\n".join(lines) + "\n")
        return f" (all of it: {file.name})"

    def restart_exited_agents(self):
        """Starts agents again that ended of themselves, as a service manager would, and notes what they said."""
        for name in sorted(self._running):
            node = self.nodes[name]
            code = self._processes[name].poll()
            if code is None:
                continue
            lines = self._log(node).read_text(errors="replace").splitlines()
            kept = self._save_crash_log(name, lines[-400:]) if code < 0 else ""
            self.unexpected_exits[name].append(f"exit code {code}: " + " / ".join(lines[-3:]) + kept)
            self._start(node)
