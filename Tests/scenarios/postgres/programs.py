"""The programs of Examples/postgres as processes, which are started again as a service manager would."""

import subprocess
import sys
import threading

from shared.repository import ROOT
from shared.waiting import Failure

#: Their exit code if a server went away: TRY_AGAIN in Examples/postgres/clients.py.
TRY_AGAIN = 75
RESTART_SECONDS = 0.2


class Victim:
    """Something to be killed."""

    #: Whether writers wait while it is down.
    stops_writers = False

    def await_moment(self):
        """Waits for a moment at which a kill may do harm."""

    def kill(self):
        raise NotImplementedError

    def start(self):
        raise NotImplementedError


class Program(Victim):

    def __init__(self, name, script, arguments, folder):
        self.name = name
        self._command = [sys.executable, ROOT / "Examples" / "postgres" / script, *map(str, arguments)]
        self._log = folder / f"{name}.log"
        self._lock = threading.Lock()
        self._process = None
        self._watcher = None
        self._ends = threading.Event()
        #: Why it is not running, although it should be.
        self.problem = None
        #: How often it ended because a server went away.
        self.restarts = 0

    def start(self):
        self._ends = threading.Event()
        self._spawn()
        self._watcher = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._watcher.start()

    def kill(self):
        """kill -9."""
        self._ends.set()
        with self._lock:
            self._process.kill()
        self._watcher.join()

    def close(self):
        if self._watcher is not None and self._watcher.is_alive():
            self.kill()

    def append_arguments(self, *arguments):
        """From the next start on."""
        self._command += arguments

    def check(self):
        """Expects that it runs."""
        if self.problem:
            raise Failure(self.problem)

    def follows(self):
        """Whether the reader has published all rows, and now publishes changes."""
        return "following" in self.log_text()

    def log_text(self):
        return self._log.read_text()

    def _spawn(self):
        with self._lock, open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _watch(self):
        while True:
            code = self._process.wait()
            if self._ends.is_set():
                return
            if code != TRY_AGAIN:
                self.problem = f"{self.name} ended with exit code {code}, see {self._log}"
                return
            self.restarts += 1
            if self._ends.wait(RESTART_SECONDS):
                return
            self._spawn()


class Agent(Victim):
    """A node's agent."""

    def __init__(self, driver, node):
        self.name = f"agent of {node.name}"
        self._driver = driver
        self._node = node

    def kill(self):
        self._driver.kill(self._node)

    def start(self):
        self._driver.start(self._node)
