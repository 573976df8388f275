"""Runs nodes as processes, with files in a temporary folder."""

import signal
import subprocess

from shared import brokers
from shared.driver import Driver, ListenerPlacement
from shared.waiting import Failure, Skip

COMMAND_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 60


class ProcessDriver(Driver):
    def __init__(self, folder, binary, bootstrap, broker_name=None):
        super().__init__(folder)
        self._binary = str(binary)
        self._bootstrap = bootstrap
        self._broker_name = broker_name
        self._broker = None
        self._processes = {}

    def open(self, own_broker):
        if own_broker or not self._bootstrap:
            self._broker = self._make_broker()
            self._broker.start()
            self._bootstrap = self._broker.bootstrap
        self.create_topic(self.topic, partitions=4)

    def _make_broker(self):
        return brokers.make_broker(self.folder / "broker", self._broker_name)

    def require_old_requests(self):
        if self._broker is not None and not self._broker.supports_old_requests:
            raise Skip("the broker doesn't support the old request versions that a listener with an ACL reads")

    def close(self):
        for name in list(self._processes):
            self._kill(self.nodes[name])
        if self._broker is not None:
            self._broker.stop()

    @property
    def binary(self):
        return self._binary

    @property
    def bootstrap(self):
        return self._bootstrap

    @property
    def listener_placement(self):
        host, _, port = self._bootstrap.rpartition(":")
        if host != "127.0.0.1":
            raise Skip(f"a secured listener needs a broker on 127.0.0.1, not on {host}")
        return ListenerPlacement("127.0.0.1", "localhost", host, host, int(port))

    def _command(self, *arguments):
        command = [self._binary, *map(str, arguments)]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS
        )

    def wait_for_exit(self, node):
        process = self._processes.pop(node.name)
        self._running.discard(node.name)
        try:
            return process.wait(STOP_TIMEOUT_SECONDS), self._log(node).read_text()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure(f"the agent of {node.name} did not end within {STOP_TIMEOUT_SECONDS} s") from None

    def problem(self, node):
        code = self._processes[node.name].poll()
        return None if code is None else f"exit code {code}, see {self._log(node)}"

    def reload(self, node):
        self._processes[node.name].send_signal(signal.SIGHUP)

    def process_identifier(self, node):
        return self._processes[node.name].pid

    def log_text(self, node):
        return self._log(node).read_text()

    def freeze(self, node):
        self._processes[node.name].send_signal(signal.SIGSTOP)
        self._frozen.add(node.name)

    def thaw(self, node):
        self._processes[node.name].send_signal(signal.SIGCONT)
        self._frozen.discard(node.name)

    def kill_broker(self, hard=False):
        if hard or self._broker.is_durable:
            return self._broker.kill()
        with self.frozen():
            self._broker.wait_until_saved(touch=self.create_unused_topic)
            self._broker.kill()

    def start_broker(self):
        self._broker.start()

    def wipe_broker(self):
        self._broker.kill()
        self._broker.wipe()
        self._broker.start()
        self.create_topic(self.topic, partitions=4)

    def _agent_command(self, node):
        return [self._binary, *self._run_arguments(node)]

    def _agent_environment(self, node):
        """The agent's environment; None to inherit this process's."""
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
