"""Measures how a new node loads all rows of another one from a snapshot: time, memory, and progress lines.

    python3 Tests/scenarios/bootstrap --binary .build/release/martlet --rows 1000000

One store publishes a snapshot to a broker in its own process. A second one loads it; a third does so over a link that is cut
up to ten times. The times are compared with copying and flushing the file. The benchmark needs only Python's standard library;
the broker comes from KAFKA_HOME or from PyPI.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from shared import command_line
from shared.fault_proxy import CUT, PASS
from shared.linked_driver import LinkedDriver
from shared.waiting import Failure, Skip, eventually, expect

SCHEMA = """
CREATE TABLE task (
    id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT, weight REAL, done INTEGER NOT NULL DEFAULT 0
)
"""
FILL = """
WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO task SELECT hex(randomblob(16)), 'title ' || i, 'a note of some length, number ' || i, i / 3.0, 0 FROM n
"""
ROWS_A_TRANSACTION = 10_000
#: noida-db returns all messages, whatever limit a fetch has: librdkafka has to accept that.
PROPERTIES = "kafka:\n  properties:\n    receive.message.max.bytes: 1500000000\n"


def main():
    arguments = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="martlet-bootstrap-"))
    driver = LinkedDriver(folder, arguments.binary)
    try:
        driver.open()
        run(driver, arguments)
    except Skip as reason:
        print(f"skipped: {reason}")
    finally:
        driver.close()
    shutil.rmtree(folder)
    return 0


def run(driver, arguments):
    configuration = driver.folder / "martlet.yaml"
    configuration.write_text(PROPERTIES)
    broker = driver.bootstrap
    origin = driver.add_node("origin", SCHEMA)
    for first in range(0, arguments.rows, ROWS_A_TRANSACTION):
        origin.write((FILL, (first + 1, min(arguments.rows, first + ROWS_A_TRANSACTION))))
    made = timed(lambda: Command(driver, configuration, "make", origin, broker).finish())
    print(f"{arguments.rows} rows, making the snapshot: {made:.1f} s", flush=True)

    copying = timed(lambda: copy(origin.store, driver.folder / "copy.sqlite"))
    plain = driver.add_node("plain", SCHEMA)
    load = Command(driver, configuration, "load", plain, broker)
    seconds = timed(load.finish)
    show("loading it", load, seconds, copying)

    cut = driver.add_node("cut", SCHEMA)
    link = driver.add_link(cut.name)
    load = Command(driver, configuration, "load", cut, link.bootstrap)
    # Twice as often as needed, so that all cuts happen before the load ends, however long reconnecting takes.
    cuts = Cuts(link, load, arguments.cuts, seconds / (arguments.cuts * 2))
    cuts.start()
    again = timed(load.finish)
    cuts.join()
    expect(cuts.made > 0, "the load ended before the first cut: use more --rows")
    show(f"the same over a link that is cut {cuts.made} times", load, again, copying)
    expect(all(driver.digest(node) == driver.digest(origin) for node in (plain, cut)), "the copies differ")
    print("all digests are equal")


class Command:
    """A running snapshot command, with its progress lines and its peak memory."""

    def __init__(self, driver, configuration, name, node, broker):
        self.process = subprocess.Popen(
            [driver._binary, "snapshot", name, str(node.store), "--config", str(configuration), "--bootstrap-servers",
             broker, "--topic", driver.topic],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.peak_megabytes = 0.0
        self.has_ended = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def finish(self):
        # /proc has its memory only while it runs.
        try:
            eventually("the command ends", self._poll, deadline_seconds=3600)
        finally:
            self.has_ended.set()
        self._reader.join()
        if self.process.returncode != 0:
            raise Failure(f"exit code {self.process.returncode}: {' / '.join(self.lines[-5:])}")

    def _poll(self):
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            most = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
            if most:
                self.peak_megabytes = int(most[0]) / 1024
        except OSError:
            pass
        return self.process.poll() is not None

    def _read(self):
        self.lines = [line.rstrip() for line in self.process.stdout]


class Cuts(threading.Thread):
    """Cuts a link `count` times, every `seconds` seconds, but not after the command has ended."""

    def __init__(self, link, command, count, seconds):
        super().__init__()
        self._link = link
        self._command = command
        self._count = count
        self._seconds = seconds
        self.made = 0

    def run(self):
        while self.made < self._count and not self._command.has_ended.wait(self._seconds):
            self._link.set(CUT)
            self.made += 1
            self._command.has_ended.wait(0.2)
            self._link.set(PASS)


def timed(body):
    begun = time.monotonic()
    body()
    return time.monotonic() - begun


def copy(source, target):
    shutil.copyfile(source, target)
    with open(target, "rb+") as file:
        os.fsync(file.fileno())


def show(title, load, seconds, copying):
    print(f"{title}: {seconds:.1f} s, {seconds / copying:.0f} times as long as copying the file ({copying:.2f} s), "
          f"at most {load.peak_megabytes:.0f} MB resident, {len(load.lines) - 1} lines of progress", flush=True)
    for line in load.lines if len(load.lines) < 6 else load.lines[:2] + ["..."] + load.lines[-2:]:
        print(f"    {line}")


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows in the snapshot (default: 100000)")
    parser.add_argument("--cuts", type=int, default=10, help="the most cuts of the link while the third store loads (default: 10)")
    arguments = parser.parse_args()
    if arguments.rows < 1:
        parser.error("--rows: must be at least 1")
    command_line.expect_binary(parser, arguments)
    return arguments
