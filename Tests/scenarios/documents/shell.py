"""The shell in which the commands of one document run, and its other terminals."""

import os
import re
import shutil
import signal
import subprocess
import threading

from shared import brokers
from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually

COMMAND_TIMEOUT_SECONDS = 300
END_TIMEOUT_SECONDS = 120
#: The port in documents. A free port replaces it.
DOCUMENTED_PORT = "9092"


def is_complete(text):
    """Whether a shell would run this instead of waiting for more lines."""
    if text.endswith("\\"):
        return False
    # An unterminated here-document is a warning, not an error.
    return not subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True).stderr


class Shell:
    """A bash that keeps its variables and its working directory between commands, and terminals."""

    def __init__(self, folder, tools, root):
        self.folder = folder
        self._outputs = folder.parent / f"{folder.name}.outputs"
        for made in (self.folder, self._outputs):
            made.mkdir()
        (self.folder / "martlet").symlink_to(root)
        self._environment = {
            **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(self.folder),
            "TZ": "UTC", "LC_ALL": "C.UTF-8",
        }
        self._count = 0
        self._terminals = {}
        self._broker = None
        self._port = str(brokers.free_port())
        reading, writing = os.pipe()
        self._status = os.fdopen(reading)
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c",
             'while IFS= read -r name; do . "$name.sh" >"$name.out" 2>&1 </dev/null; echo $? >&"$0"; done',
             str(writing)],
            stdin=subprocess.PIPE, cwd=self.folder, env=self._environment, text=True, start_new_session=True,
            pass_fds=[writing],
        )
        os.close(writing)

    def run(self, command):
        """Runs a command. Returns its exit code and the lines of its output."""
        name = self._write(command)
        self._bash.stdin.write(f"{name}\n")
        self._bash.stdin.flush()
        with _Deadline(self._bash, COMMAND_TIMEOUT_SECONDS) as deadline:
            code = self._status.readline().strip()
        if not code:
            timeout = f"the command did not end within {COMMAND_TIMEOUT_SECONDS} s"
            raise Failure(timeout if deadline.passed else "the command ended the shell")
        return int(code), self._read(name)

    def open_terminal(self, name, command, until):
        """Starts a command that keeps running, and waits until it has printed a text."""
        if name in self._terminals:
            raise Failure(f"the terminal {name} is busy")
        script = self._write(command)
        with open(f"{script}.out", "wb") as output:
            process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-c", f"exec {self._with_free_port(command)}"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder, env=self._environment,
                start_new_session=True,
            )
        self._terminals[name] = process, script

        def is_ready():
            text = "\n".join(self._read(script))
            if until is not None and until in text:
                return True
            if process.poll() is not None:
                raise Failure(f"the command ended with exit code {process.returncode}:\n{text}")
            return until is None

        eventually(f"the terminal {name} prints \"{until}\"", is_ready)

    def interrupt(self, name):
        """Presses Ctrl-C in a terminal, and expects its command to end without an error."""
        if name not in self._terminals:
            raise Failure(f"no command runs in the terminal {name}")
        process, script = self._terminals.pop(name)
        os.killpg(process.pid, signal.SIGINT)
        try:
            code = process.wait(END_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"the command did not end within {END_TIMEOUT_SECONDS} s of Ctrl-C") from None
        finally:
            _end(process)
        if code not in (0, -signal.SIGINT, 128 + signal.SIGINT):
            raise Failure("\n".join([f"exit code {code} after Ctrl-C", *self._read(script)]))

    def start_broker(self):
        """Starts a broker for the document."""
        self._broker = brokers.make_broker(self._outputs / "broker")
        self._broker.start()
        self._port = str(self._broker.port)

    def need_pypi(self):
        """Raises Skip if PyPI is unreachable."""
        made = subprocess.run([ROOT / "scripts" / "test-venv.sh"], capture_output=True, text=True)
        if made.returncode == 0:
            pip = [f"{made.stdout.strip()}/bin/pip", "--disable-pip-version-check", "download", "--no-deps", "PyYAML"]
            made = subprocess.run([*pip, "--dest", self._outputs], capture_output=True, text=True)
        if made.returncode != 0:
            raise Skip(f"no PyPI: {made.stderr.strip()[-200:]}")

    def save(self, name, lines):
        """Writes a file that the document tells its reader to write."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._with_free_port("\n".join(lines) + "\n"))

    def close(self):
        """Ends everything that the shell started, and removes the files. Idempotent."""
        for process, _ in self._terminals.values():
            _end(process)
        self._terminals = {}
        _end(self._bash)
        self._bash.stdin.close()
        self._status.close()
        if self._broker is not None:
            self._broker.stop()
        for made in (self.folder, self._outputs):
            shutil.rmtree(made, ignore_errors=True)

    def _write(self, command):
        self._count += 1
        name = self._outputs / str(self._count)
        name.with_suffix(".sh").write_text(self._with_free_port(command) + "\n")
        return name

    def _read(self, name):
        text = name.with_suffix(".out").read_text(errors="replace")
        text = re.sub(rf"(?<=:){self._port}\b", DOCUMENTED_PORT, text)
        return text.replace(str(self.folder), "~").splitlines()

    def _with_free_port(self, text):
        return re.sub(rf"\b{DOCUMENTED_PORT}\b", self._port, text)


class _Deadline:
    """Ends a process that takes too long, which unblocks a thread that waits for it."""

    def __init__(self, process, seconds):
        self.passed = False
        self._process = process
        self._timer = threading.Timer(seconds, self._pass)

    def _pass(self):
        self.passed = True
        _end(self._process)

    def __enter__(self):
        self._timer.start()
        return self

    def __exit__(self, *_):
        self._timer.cancel()


def _end(process):
    """kill -9 of a session's process group, including background processes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
