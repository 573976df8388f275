"""Runs nodes as containers (docker/compose.test.yaml). Their stores are files of this host."""

import os
import subprocess
import uuid

from shared.driver import Driver, ListenerPlacement
from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually

COMMAND_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 60
#: The broker's host name in containers; see docker/compose.test.yaml.
KAFKA_NAME = "kafka"
KAFKA_PORT = 9092
#: The file in which the broker of scripts/test-broker-image.sh saves its data.
SAVED = "/var/lib/kafka/data/kafka.json"


class ComposeDriver(Driver):
    def __init__(self, folder, build):
        super().__init__(folder.resolve())
        self._build = build
        self._project = f"martlet-{uuid.uuid4().hex[:8]}"
        #: The host name in containers of a secured listener.
        self._listener_name = "proxy"
        self._is_stand_in = "MARTLET_KAFKA_IMAGE" in os.environ

    def open(self, own_broker):
        if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0:
            raise Skip("no docker compose here")
        if self._build:
            self._compose("build", "node")
        self.start_broker()
        self._compose("up", "--detach", "--no-deps", "tool")
        self.create_topic(self.topic, partitions=4)

    def close(self):
        for name in list(self._running):
            self._kill(self.nodes[name])
        self._compose("--profile", "*", "down", "--volumes", "--timeout", "1", check=False)

    @property
    def bootstrap(self):
        return f"{KAFKA_NAME}:{KAFKA_PORT}"

    @property
    def listener_placement(self):
        return ListenerPlacement("0.0.0.0", self._listener_name, self._broker_name(), self._broker_address(), KAFKA_PORT)

    def _command(self, *arguments):
        return self._compose("exec", "-T", "tool", "martlet", *arguments, check=False)

    def problem(self, node):
        name = self._container(node)
        if self._inspect(name, "{{.State.Running}}") == "true":
            return None
        return f"exit code {self._inspect(name, '{{.State.ExitCode}}')}:\n{self._logs(node)[-4000:]}"

    def wait_for_exit(self, node):
        try:
            code = int(self._docker("wait", self._container(node), timeout=STOP_TIMEOUT_SECONDS).stdout)
        except subprocess.TimeoutExpired:
            self._kill(node)
            raise Failure(f"the agent of {node.name} did not end within {STOP_TIMEOUT_SECONDS} s") from None
        self._running.discard(node.name)
        text = self._logs(node)
        self._remove(node)
        return code, text

    def reload(self, node):
        self._docker("kill", "--signal", "HUP", self._container(node))

    def process_identifier(self, node):
        return int(self._inspect(self._container(node), "{{.State.Pid}}"))

    def log_text(self, node):
        log = self._log(node)
        return (log.read_text() if log.exists() else "") + self._logs(node)

    def freeze(self, node):
        self._docker("pause", self._container(node))
        self._frozen.add(node.name)

    def thaw(self, node):
        self._docker("unpause", self._container(node))
        self._frozen.discard(node.name)

    def kill_broker(self, hard=False):
        # Killing the process of Apache Kafka loses no acknowledged message: the operating system has it.
        if hard or not self._is_stand_in:
            return self._kill_kafka()
        with self.frozen():
            name = self.create_unused_topic()
            eventually("the broker has saved its data",
                       lambda: self._compose("exec", "-T", "kafka", "grep", "-q", name, SAVED, check=False).returncode == 0)
            self._kill_kafka()

    def start_broker(self):
        self._compose("up", "--detach", "--wait", "--no-deps", "kafka")
        # As long as the broker's name, see ListenerPlacement.
        self._listener_name = "proxy".ljust(len(self._broker_name()), "-")[:-1] + "y"

    def wipe_broker(self):
        self._compose("rm", "--stop", "--force", "--volumes", "kafka")
        self.start_broker()
        self.create_topic(self.topic, partitions=4)

    def _kill_kafka(self):
        self._compose("kill", "--signal", "SIGKILL", "kafka")

    def _broker_name(self):
        """The broker's advertised host. The stand-in for Apache Kafka advertises its address."""
        return self._broker_address() if self._is_stand_in else KAFKA_NAME

    def _broker_address(self):
        return self._inspect(self._kafka(), "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")

    def _kafka(self):
        return self._compose("ps", "--all", "--quiet", "kafka").stdout.strip()

    def _container(self, node):
        return f"{self._project}-node-{node.name}"

    def _start(self, node):
        self._compose("run", "--detach", "--no-deps", "--name", self._container(node), "node",
                      *self._run_arguments(node))

    def _stop(self, node):
        name = self._container(node)
        self._docker("stop", "--time", STOP_TIMEOUT_SECONDS, name)
        code = int(self._inspect(name, "{{.State.ExitCode}}"))
        self._remove(node)
        return code

    def _kill(self, node):
        self._frozen.discard(node.name)
        self._docker("kill", "--signal", "SIGKILL", self._container(node), check=False)
        self._remove(node)

    def _remove(self, node):
        with open(self._log(node), "a") as log:
            log.write(self._logs(node))
        self._docker("rm", "--force", self._container(node))

    def _logs(self, node):
        done = self._docker("logs", self._container(node), check=False)
        return done.stdout + done.stderr

    def _inspect(self, name, form):
        return self._docker("inspect", "--format", form, name).stdout.strip()

    def _compose(self, *arguments, check=True):
        files = ["--project-name", self._project, "--file", str(ROOT / "docker" / "compose.test.yaml")]
        return self._docker("compose", *files, *arguments, check=check)

    def _docker(self, *arguments, check=True, timeout=COMMAND_TIMEOUT_SECONDS):
        environment = {
            **os.environ,
            "MARTLET_SCENARIO_USER": f"{os.getuid()}:{os.getgid()}",
            "MARTLET_SCENARIO_FOLDER": str(self.folder),
            "MARTLET_SCENARIO_LISTENER": self._listener_name,
        }
        command = ["docker", *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                              timeout=timeout)
        if check and done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done
