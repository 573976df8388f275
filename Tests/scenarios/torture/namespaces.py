"""Network namespaces: each agent has its own, connected to the rig's by a veth pair.

The rig itself moves from the machine's network into a new namespace, so nothing is visible outside, and everything disappears
with the rig's last process, however that ends. Needs root, and `ip` (Debian: iproute2).
"""

import ctypes
import os
import shutil
import subprocess

CLONE_NEWNET = 0x40000000
#: As long as "127.0.0.1", as the proxies need (see shared/fault_proxy.py). The namespaces contain no other addresses.
RIG_ADDRESS, AGENT_ADDRESS, PREFIX_LENGTH = "10.{tens}.{ones}.1", "10.{tens}.{ones}.2", 30
FIRST_TENS, LAST_NUMBER = 70, 299
INTERFACE = "eth0"

#: Network faults. Cut: the rig's end of the veth pair is down, the agent's packets vanish, and TCP notices only by its
#: timeouts. Unplugged: the agent's end is down, and a new connection fails at once.
CUT, UNPLUGGED, LOSSY, SLOW = "cut", "unplugged", "lossy", "slow"
#: Arguments of `tc qdisc add dev X root`, for both ends.
QDISCS = {
    LOSSY: ["netem", "loss", "20%", "delay", "100ms", "50ms"],
    SLOW: ["tbf", "rate", "256kbit", "burst", "4kb", "limit", "16kb"],
}


class Unavailable(Exception):
    """Network namespaces are unavailable; the message says why."""


class CommandFailed(Exception):
    """A command failed; the message has its standard error."""


class Networks:
    """The namespaces of the rig and of the nodes. Only the thread that starts the rig's processes may use it."""

    def __init__(self):
        self._namespace = None
        self._networks = []
        #: Unavailable network fault -> why.
        self.unavailable = {}

    def open(self):
        """Moves this thread, and threads that it starts from now on, off the machine's network. Raises Unavailable."""
        if os.geteuid() != 0:
            raise Unavailable("needs root, for network namespaces")
        if not all(shutil.which(tool) for tool in ("ip", "tc", "nsenter", "setpriv")):
            raise Unavailable("needs ip and tc (Debian: iproute2), nsenter and setpriv (util-linux)")
        try:
            self._namespace = new_namespace()
        except OSError as problem:
            raise Unavailable(f"needs the right to make network namespaces ({problem.strerror})") from None
        ip("link", "set", "lo", "up")
        try:
            ip("link", "add", "probe", "type", "veth", "peer", "name", "eborp")
        except CommandFailed as problem:
            raise Unavailable(f"needs veth ({problem})") from None
        self._probe_qdiscs("probe")
        ip("link", "delete", "probe")

    def _probe_qdiscs(self, interface):
        for mode, arguments in QDISCS.items():
            try:
                run("tc", "qdisc", "add", "dev", interface, "root", *arguments)
                run("tc", "qdisc", "delete", "dev", interface, "root")
            except CommandFailed as problem:
                self.unavailable[mode] = f"needs {arguments[0]} in the kernel ({problem})"

    def modes(self):
        return [mode for mode in (CUT, UNPLUGGED, *QDISCS) if mode not in self.unavailable]

    def add(self):
        """Adds a namespace for one agent, with its veth pair."""
        network = Network(len(self._networks) + 1)
        try:
            network.open()
        finally:
            enter_namespace(self._namespace)
        network.connect()
        self._networks.append(network)
        return network

    def close(self):
        while self._networks:
            self._networks.pop().close()
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None


class Network:
    """One agent's namespace, held by a descriptor of this process, and the veth pair to the rig's."""

    def __init__(self, number):
        if number > LAST_NUMBER:
            raise ValueError(f"no more than {LAST_NUMBER} networks")
        numbers = {"tens": FIRST_TENS + number // 10, "ones": number % 10}
        self.rig_address = RIG_ADDRESS.format(**numbers)
        self._agent_address = AGENT_ADDRESS.format(**numbers)
        self._rig_interface = f"agent{number}"
        self._mac = f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        self._descriptor = None
        self.mode = None

    def open(self):
        """Creates the namespace, and moves this thread into it."""
        self._descriptor = new_namespace()

    def connect(self):
        ip("link", "add", self._rig_interface, "address", self._mac, "type", "veth",
           "peer", "name", INTERFACE, "netns", self._path)
        ip("address", "add", f"{self.rig_address}/{PREFIX_LENGTH}", "dev", self._rig_interface)
        ip("link", "set", self._rig_interface, "up")
        self._inside("ip", "address", "add", f"{self._agent_address}/{PREFIX_LENGTH}", "dev", INTERFACE)
        self._inside("ip", "link", "set", "lo", "up")
        self._plug_in()

    def _plug_in(self):
        self._inside("ip", "link", "set", INTERFACE, "up")
        # A permanent neighbour entry: without it, connections would fail as soon as ARP does, not by TCP's timeouts.
        self._inside("ip", "neighbour", "replace", self.rig_address, "lladdr", self._mac, "dev", INTERFACE,
                     "nud", "permanent")

    def close(self):
        """Releases the namespace, which disappears with its last process."""
        os.close(self._descriptor)

    def begin(self, mode):
        self.mode = mode
        if mode == CUT:
            ip("link", "set", self._rig_interface, "down")
        elif mode == UNPLUGGED:
            self._inside("ip", "link", "set", INTERFACE, "down")
        else:
            run("tc", "qdisc", "add", "dev", self._rig_interface, "root", *QDISCS[mode])
            self._inside("tc", "qdisc", "add", "dev", INTERFACE, "root", *QDISCS[mode])

    def end(self):
        mode, self.mode = self.mode, None
        if mode == CUT:
            ip("link", "set", self._rig_interface, "up")
        elif mode == UNPLUGGED:
            self._plug_in()
        elif mode is not None:
            run("tc", "qdisc", "delete", "dev", self._rig_interface, "root")
            self._inside("tc", "qdisc", "delete", "dev", INTERFACE, "root")

    def wrap_command(self, command):
        """The command line that runs a command in the namespace, and ends it with this process."""
        return ["nsenter", f"--net={self._path}", "setpriv", "--pdeathsig", "KILL", *command]

    def tcp_counters(self):
        """The kernel's TCP counters of the namespace, by their names in proc_pid_net(5)."""
        lines = self._inside("cat", "/proc/net/snmp", "/proc/net/netstat").splitlines()
        counters = {}
        for names, values in zip(lines[::2], lines[1::2]):
            if names.startswith("Tcp"):
                counters.update(zip(names.split()[1:], map(int, values.split()[1:])))
        return counters

    @property
    def _path(self):
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def _inside(self, *command):
        return run("nsenter", f"--net={self._path}", *command)


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}: {' '.join(done.stderr.split())}")
    return done.stdout


def ip(*arguments):
    return run("ip", *arguments)


def new_namespace():
    """Moves this thread into a new network namespace, and returns a descriptor that holds it."""
    call("unshare", CLONE_NEWNET)
    # The namespace of this thread, which need not be the main thread.
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter_namespace(descriptor):
    call("setns", descriptor, CLONE_NEWNET)


def call(name, *arguments):
    """Calls a C function that Python provides only from 3.12."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
