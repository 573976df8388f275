"""Terminals of a fixed size: tmux panes, in each of which a shell runs."""

import os
import pathlib
import re
import shutil
import subprocess

from shared.waiting import Failure, Skip, eventually

PROMPT = "$ "
INTERVAL_SECONDS = 0.1
COMMAND_SECONDS = 30
#: No status line, and colours unchanged.
SETTINGS = """
set -g status off
set -g default-terminal tmux-256color
set -g history-limit 5000
"""
SHELL = ["bash", "--norc", "--noprofile", "-i"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def find_tmux():
    """Raises Skip if there is no tmux."""
    if shutil.which("tmux") is None:
        raise Skip("no tmux: make deps-test installs it")


class Panes:
    """A tmux server. `close` ends everything that runs in its panes."""

    def __init__(self, folder, path):
        find_tmux()
        self._folder = folder
        self._socket = folder / "tmux"
        (folder / "tmux.conf").write_text(SETTINGS)
        #: The environment of tmux and its panes: without NO_COLOR, an outer tmux, and a history file of the shell.
        self._variables = {
            "PATH": f"{path}:{os.environ['PATH']}", "PS1": PROMPT, "HOME": str(folder), "HISTFILE": "",
            "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm-256color",
        }
        self._count = 0

    def open(self, columns=80, rows=24):
        """Opens a pane, and waits for its prompt."""
        self._count += 1
        name = f"pane{self._count}"
        self.tmux("new-session", "-d", "-s", name, "-x", columns, "-y", rows, "-c", self._folder, *SHELL)
        pane = Pane(self, name, columns, rows)
        pane.wait_for_prompt()
        return pane

    def tmux(self, *arguments):
        """Runs a tmux command, and returns its output."""
        command = ["tmux", "-u", "-S", str(self._socket), "-f", str(self._folder / "tmux.conf"), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=self._variables)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def close(self):
        """Ends all panes. Idempotent."""
        if self._socket.exists():
            try:
                self.tmux("kill-server")
            except Failure:
                pass  # the server has ended with its last pane
            self._socket.unlink(missing_ok=True)


class Pane:
    def __init__(self, panes, name, columns, rows):
        self._panes = panes
        self.name = name
        self.columns = columns
        self.rows = rows

    def begin(self, command):
        """Types a command and Enter."""
        self._panes.tmux("send-keys", "-t", self.name, "-l", command)
        self._panes.tmux("send-keys", "-t", self.name, "Enter")

    def run(self, command):
        """Runs a command on an empty screen, and returns what the pane shows at its end."""
        self.clear()
        self.begin(command)
        return self.wait_for(f"{command} ends", lambda lines: is_prompt(lines) and self.whole_lines()[0] == PROMPT + command)

    def clear(self):
        """Clears the screen and the scrollback."""
        self.begin("clear")
        eventually("the screen is empty", lambda: self.lines() == [PROMPT.rstrip()], interval_seconds=INTERVAL_SECONDS)
        self._panes.tmux("clear-history", "-t", self.name)

    def interrupt(self):
        """Presses Ctrl-C, and waits for the prompt."""
        self._panes.tmux("send-keys", "-t", self.name, "C-c")
        self.wait_for_prompt()

    def wait_for_prompt(self):
        self.wait_for("the shell prints its prompt", is_prompt)

    def wait_for(self, description, condition, deadline_seconds=90):
        """Waits until the lines of the pane fulfil the condition. Returns what it shows then, with colours."""
        shown = ""

        def look():
            nonlocal shown
            shown = self._capture("-e")
            lines = plain_lines(shown)
            return bool(lines) and condition(lines) or (False, "it shows\n" + "\n".join(lines))

        eventually(description, look, deadline_seconds, INTERVAL_SECONDS)
        return shown

    def lines(self):
        """The lines of the pane, without colours and trailing empty lines."""
        return plain_lines(self._capture())

    def whole_lines(self):
        """The lines of the scrollback and the pane, with wrapped lines joined."""
        return plain_lines(self._capture("-J", "-S", "-"))

    def child(self):
        """The ID of the shell's child process; 0 if there is none."""
        shell = self._panes.tmux("display-message", "-p", "-t", self.name, "#{pane_pid}").strip()
        children = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[0]) if children else 0

    def _capture(self, *options):
        return self._panes.tmux("capture-pane", "-p", "-t", self.name, *options)


def plain_lines(shown):
    """The lines of a captured pane, without colours and trailing empty lines."""
    return COLOUR.sub("", shown).rstrip().split("\n") if COLOUR.sub("", shown).strip() else []


def is_prompt(lines):
    return lines[-1] == PROMPT.rstrip()
