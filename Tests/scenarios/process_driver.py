"""Nodes as processes of this machine, on files in a temporary folder."""

import signal
import subprocess
import uuid

import brokers
from driver import Driver
from waiting import Failure

COMMAND_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 60


class ProcessDriver(Driver):
    def __init__(self, folder, binary, bootstrap):
        super().__init__(folder)
        self._binary = str(binary)
        self._bootstrap = bootstrap
        self._broker = None
        self._processes = {}
        #: Names of nodes whose agents are frozen.
        self._frozen = set()
        #: Names of nodes whose configuration files say where the broker is.
        self._find_by_file = set()

    def open(self, own_broker):
        if own_broker or not self._bootstrap:
            self._broker = self._make_broker()
            self._broker.start()
            self._bootstrap = self._broker.bootstrap
        self._create_topic(self.topic, partitions=4)

    def _make_broker(self):
        return brokers.make_broker(self.folder / "broker")

    def close(self):
        for name in list(self._processes):
            self._kill(self.nodes[name])
        if self._broker is not None:
            self._broker.stop()

    @property
    def bootstrap(self):
        return self._bootstrap

    def martlet(self, *arguments, node=None):
        done = self._run(arguments)
        if done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {' '.join(done.args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def attempt(self, *arguments):
        """Runs a martlet command that may fail, and returns its exit code and all that it printed."""
        done = self._run(arguments)
        return done.returncode, done.stdout + done.stderr

    def _run(self, arguments):
        command = [self._binary, *map(str, arguments)]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS
        )

    def store_argument(self, node):
        return node.store

    def ending(self, node):
        """Waits until an agent ends of itself, and returns its exit code and what it printed."""
        process = self._processes.pop(node.name)
        self._running.discard(node.name)
        try:
            return process.wait(STOP_TIMEOUT_SECONDS), self._log(node).read_text()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure(f"the agent of {node.name} goes on") from None

    def problem(self, node):
        code = self._processes[node.name].poll()
        return None if code is None else f"exit code {code}, see {self._log(node)}"

    def configure(self, node, text, names_broker=False):
        """Gives the agent a configuration file, from its next start or `reload` on.

        Flags say what is the scenario's, except for the broker where the file does (`names_broker`).
        """
        self._configuration(node).write_text(text)
        if names_broker:
            self._find_by_file.add(node.name)

    def reload(self, node):
        """Makes the agent read its configuration file again."""
        self._processes[node.name].send_signal(signal.SIGHUP)

    def process_identifier(self, node):
        return self._processes[node.name].pid

    def log_text(self, node):
        """What the agent has logged so far."""
        return self._log(node).read_text()

    def broker_arguments(self, node):
        """How to name the broker, the topic and the configuration file to a command, as for the agent."""
        arguments = [] if node.name in self._find_by_file else ["--bootstrap-servers", self._bootstrap_of(node)]
        arguments += ["--topic", self.topic]
        configuration = self._configuration(node)
        return arguments + (["--config", configuration] if configuration.exists() else [])

    def _configuration(self, node):
        return self.folder / f"{node.name}.yaml"

    def freeze(self, node):
        self._processes[node.name].send_signal(signal.SIGSTOP)
        self._frozen.add(node.name)

    def thaw(self, node):
        self._processes[node.name].send_signal(signal.SIGCONT)
        self._frozen.discard(node.name)

    def kill_broker(self, hard=False):
        if not hard and not self._broker.keeps_acknowledged_when_killed:
            running = [node for node in self.nodes.values() if self.is_running(node) and node.name not in self._frozen]
            for node in running:
                self.freeze(node)
            try:
                self._broker.wait_until_saved(touch=self._create_unused_topic)
                self._broker.kill()
            finally:
                for node in running:
                    self.thaw(node)
        else:
            self._broker.kill()

    def start_broker(self):
        self._broker.start()

    def wipe_broker(self):
        """Starts the broker again without its data, and makes the topic anew."""
        self._broker.kill()
        self._broker.wipe()
        self._broker.start()
        self._create_topic(self.topic, partitions=4)

    def _bootstrap_of(self, node):
        """Where the agent of a node looks for the broker."""
        return self._bootstrap

    def _agent_command(self, node):
        return [self._binary, "run", "--store", node.store, "--name", node.name, *self.broker_arguments(node)]

    def _agent_environment(self, node):
        """The agent's environment; None for that of this process."""
        return None

    def _start(self, node):
        with open(self._log(node), "ab") as log:
            self._processes[node.name] = subprocess.Popen(
                self._agent_command(node), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self._agent_environment(node))

    def _stop(self, node):
        process = self._processes.pop(node.name)
        process.terminate()
        try:
            return process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure(f"the agent of {node.name} did not end within {STOP_TIMEOUT_SECONDS} s of SIGTERM") from None

    def _kill(self, node):
        self._frozen.discard(node.name)
        process = self._processes.pop(node.name)
        process.kill()
        process.wait()

    def _log(self, node):
        return self.folder / f"{node.name}.log"

    def _create_unused_topic(self):
        name = f"unused-{uuid.uuid4().hex}"
        self._create_topic(name, partitions=1)
        return name

    def _create_topic(self, name, partitions):
        self.martlet("topic", "create", "--bootstrap-servers", self._bootstrap, "--topic", name,
                     "--partitions", partitions, "--replication", 1)
