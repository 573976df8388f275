"""Runs nodes whose agents have their own network namespaces and links, and may have a wrong clock or a small disk."""

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
        #: Node name -> Network; empty if namespaces are unavailable.
        self.networks = {}
        #: Why namespaces are unavailable, or None.
        self.networks_unavailable = None
        #: Node name -> shift of the agent's clock in seconds, from its next start.
        self.shifts = {}
        #: Node name -> the last log lines of each unexpected exit of its agent.
        self.unexpected_exits = collections.defaultdict(list)
        self._disks = []
        self._clocks = None

    def open(self, own_broker=True):
        super().open(own_broker)
        self._clocks = FakeClocks()

    def _make_broker(self):
        # Before the namespace: a broker may have to be installed, which needs the machine's network.
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
        """Mounts a small disk on a node's folder, before the node is added. Returns whether that worked."""
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
        """Ends everything, and copies the contents of small disks into the folder that is kept."""
        for node in self.nodes.values():
            self.free_disk(node)
        for disk in self._disks:
            shutil.copytree(disk, f"{disk}-kept")
        self.close()

    def fill_disk(self, node):
        """Fills the disk of the node's store to the last byte."""
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
        return self.networks[node.name].wrap_command(command) if node.name in self.networks else command

    def _agent_environment(self, node):
        return self.shifted(self.shifts.get(node.name, 0))

    def shifted(self, seconds):
        """The environment of a process whose clock is wrong by this many seconds."""
        return self._clocks.environment(seconds)

    def _save_crash_log(self, name, lines):
        """Saves the log of an agent that a signal ended, in a file that remains even if the run passes."""
        with tempfile.NamedTemporaryFile("w", prefix=f"martlet-crash-{name}-", suffix=".log", delete=False) as file:
            file.write("\n".join(lines) + "\n")
        return f" (complete log: {file.name})"

    def restart_exited_agents(self):
        """Restarts agents that ended by themselves, as a service manager would, and records their last log lines."""
        for name in sorted(self._running):
            node = self.nodes[name]
            code = self._processes[name].poll()
            if code is None:
                continue
            lines = self._log(node).read_text(errors="replace").splitlines()
            kept = self._save_crash_log(name, lines[-400:]) if code < 0 else ""
            self.unexpected_exits[name].append(f"exit code {code}: " + " / ".join(lines[-3:]) + kept)
            self._start(node)
