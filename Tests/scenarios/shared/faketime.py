"""Runs processes with a wrong clock, by libfaketime (Debian: faketime)."""

import os
import pathlib
import shutil
import subprocess

FAKETIME_PATTERNS = ("usr/lib/*/faketime/libfaketimeMT.so.1", "usr/lib/faketime/libfaketimeMT.so.1")


class FakeClocks:
    """Holds the shared memory of libfaketime until `close`.

    A process that creates it for itself moves its environment while it starts, and then Swift's runtime doesn't find
    its arguments.
    """

    def __init__(self):
        self._variables = {}
        self._holder = None
        library = next((str(found) for pattern in FAKETIME_PATTERNS for found in pathlib.Path("/").glob(pattern)), None)
        if library is None or shutil.which("faketime") is None:
            return
        self._holder = subprocess.Popen(
            ["faketime", "--exclude-monotonic", "-f", "+0s", "sh", "-c", 'echo "$FAKETIME_SHARED"; exec cat'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._variables = {"FAKETIME_SHARED": self._holder.stdout.readline().strip(), "LD_PRELOAD": library,
                           "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    @property
    def available(self):
        return bool(self._variables)

    def environment(self, seconds):
        """The environment of a process whose clock is wrong by this many seconds."""
        if not seconds:
            return dict(os.environ)
        return {**os.environ, **self._variables, "FAKETIME": f"{seconds:+d}s"}

    def close(self):
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None
