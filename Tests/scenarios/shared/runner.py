"""Runs the parts of a suite (scenarios, stages, states, views), each in its own folder, and counts the outcomes."""

import pathlib
import shutil
import tempfile
import time
import traceback

from shared.waiting import Failure, Skip


class Outcomes:
    """The numbers of passed, failed and skipped parts; as text, the summary line."""

    def __init__(self):
        self._counts = {"passed": 0, "failed": 0, "skipped": 0}

    def __getitem__(self, outcome):
        return self._counts[outcome]

    def __str__(self):
        return ", ".join(f"{count} {outcome}" for outcome, count in self._counts.items())

    def add(self, outcome, line):
        """Counts an outcome, and prints the line that `run` returned."""
        self._counts[outcome] += 1
        print(f"{outcome:8}{line}", flush=True)

    @property
    def exit_code(self):
        return 1 if self._counts["failed"] else 0


def run(name, work, prefix="martlet", keep=False):
    """Calls `work` with a new folder, which is kept on failure. Returns the outcome and a line about it."""
    started = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{prefix}-{name}-"))
    outcome, text = "passed", ""
    try:
        text = work(folder) or ""
    except Skip as reason:
        outcome, text = "skipped", str(reason)
    except Failure as failure:
        outcome, text = "failed", str(failure)
    except Exception:  # an error of the suite or the machine: reported, and the other parts still run
        outcome, text = "failed", traceback.format_exc()
    line = f"{name} ({time.monotonic() - started:.1f} s){text and ': ' + text}"
    if outcome == "failed" or keep:
        return outcome, f"{line}\n  files: {folder}"
    shutil.rmtree(folder, ignore_errors=True)
    return outcome, line


def run_all(parts, names, prefix, work):
    """Runs the named parts, or all, one after the other: `work` gets the part and its folder. Returns the outcomes."""
    outcomes = Outcomes()
    for name in names or parts:
        outcomes.add(*run(name, lambda folder: work(parts[name], folder), prefix))
    return outcomes
