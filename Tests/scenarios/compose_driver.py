"""Nodes as containers (docker/compose.test.yaml), whose stores are files of this host."""

import os
import subprocess
import uuid

from brokers import ROOT
from driver import Driver
from waiting import Failure, Skip

COMMAND_TIMEOUT_SECONDS = 600
SERVICES = ("phone", "tablet", "edge")


class ComposeDriver(Driver):
    def __init__(self, folder, build):
        super().__init__(folder)
        self._build = build
        self._project = f"martlet-{uuid.uuid4().hex[:8]}"
        (folder / "stores").mkdir()

    def open(self, own_broker):
        if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0:
            raise Skip("no docker compose here")
        if self._build:
            self._compose("build", "tool")
        self.start_broker()
        self.martlet("topic", "create", "--bootstrap-servers", "kafka:9092", "--topic", self.topic,
                     "--partitions", 4, "--replication", 1)

    def close(self):
        self._compose("--profile", "tool", "down", "--volumes", "--timeout", "1", check=False)

    def martlet(self, *arguments, node=None):
        if node is not None and self.is_running(node):
            return self._compose("exec", "-T", node.name, "martlet", *arguments).stdout
        return self._compose("run", "--rm", "--no-deps", "-T", "tool", *arguments).stdout

    def store_argument(self, node):
        return f"/stores/{node.name}/store.sqlite"

    def problem(self, node):
        running = self._compose("ps", "--quiet", "--status", "running", node.name).stdout.strip()
        if running:
            return None
        return self._compose("logs", "--no-color", "--tail", "20", node.name, check=False).stdout

    def freeze(self, node):
        self._compose("pause", node.name)

    def thaw(self, node):
        self._compose("unpause", node.name)

    def kill_broker(self, hard=False):
        # Apache Kafka keeps what it has acknowledged when its process is killed: the operating system has it.
        self._compose("kill", "--signal", "SIGKILL", "kafka")

    def start_broker(self):
        self._compose("up", "--detach", "--wait", "--no-deps", "kafka")

    def _start(self, node):
        if node.name not in SERVICES:
            raise Failure(f"docker/compose.test.yaml has no service {node.name}, only {', '.join(SERVICES)}")
        self._compose("up", "--detach", "--no-deps", "--no-recreate", node.name)

    def _stop(self, node):
        self._compose("stop", "--timeout", "60", node.name)
        container = self._compose("ps", "--all", "--quiet", node.name).stdout.strip()
        return int(self._docker("inspect", "--format", "{{.State.ExitCode}}", container).stdout)

    def _kill(self, node):
        self._compose("kill", "--signal", "SIGKILL", node.name)

    def _compose(self, *arguments, check=True):
        files = ["--project-name", self._project, "--file", str(ROOT / "docker" / "compose.test.yaml")]
        return self._docker("compose", *files, *arguments, check=check)

    def _docker(self, *arguments, check=True):
        environment = {
            **os.environ,
            "MARTLET_SCENARIO_USER": f"{os.getuid()}:{os.getgid()}",
            "MARTLET_SCENARIO_STORES": str(self.folder / "stores"),
            "MARTLET_SCENARIO_TOPIC": self.topic,
        }
        command = ["docker", *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                              timeout=COMMAND_TIMEOUT_SECONDS)
        if check and done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done
