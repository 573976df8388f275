"""Runs the parts of a test (scenarios, stages, states, views), each in a folder of its own, and counts how they end."""

import pathlib
import shutil
import tempfile
import time
import traceback

from shared.waiting import Failure, Skip


class Outcomes:
    """How many have passed, failed and were skipped; as text, the closing line."""

    def __init__(self):
        self._counts = {"passed": 0, "failed": 0, "skipped": 0}

    def __getitem__(self, outcome):
        return self._counts[outcome]

    def __str__(self):
        return ", ".join(f"{count} {outcome}" for outcome, count in self._counts.items())

    def add(self, outcome, line):
        """Counts one, and prints what `run` says of it."""
        self._counts[outcome] += 1
        print(f"{outcome:8}{line}", flush=True)

    @property
    def exit_code(self):
        return 1 if self._counts["failed"] else 0


def run(name, work, prefix="martlet", keep=False):
    """Does work in a new folder, which is kept where it fails. Returns the outcome and a line about it."""
    started = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{prefix}-{name}-"))
    outcome, text = "passed", ""
    try:
        text = work(folder) or ""
    except Skip as reason:
        outcome, text = "skipped", str(reason)
    except Failure as failure:
        outcome, text = "failed", str(failure)
    except Exception:  # a fault of the suite or the machine: reported, and the others still run
        outcome, text = "failed", traceback.format_exc()
    line = f"{name} ({time.monotonic() - started:.1f} s){text and ': ' + text}"
    if outcome == "failed" or keep:
        return outcome, f"{line}\n  files: {folder}"
    shutil.rmtree(folder, ignore_errors=True)
    return outcome, line


def run_all(stages, names, prefix, work):
    """Runs the named stages, or all, one after the other: `work` with the stage and its folder. Returns the outcomes."""
    outcomes = Outcomes()
    for name in names or stages:
        outcomes.add(*run(name, lambda folder: work(stages[name], folder), prefix))
    return outcomes
