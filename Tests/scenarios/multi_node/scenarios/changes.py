"""Programs that follow the history of a store."""

import json
import os
import random
import subprocess
import sys

from multi_node.registry import scenario
from multi_node.scenarios.basics import add_task, two_nodes
from shared import brokers
from shared.event_source import EventSource
from shared.repository import ROOT
from shared.waiting import Skip, eventually, expect, expect_equal

TOKEN = "a-token-for-a-reader-of-the-changes"
ROUNDS = 8
ROUND_TASKS = 40

#: Writes down what it has processed, and then asks for more.
READER = """
import sys, martlet
store, seen = sys.argv[1:]
with open(seen, "a") as seen:
    for transaction in martlet.changes(store, "reader", entities=["task"]):
        for change in transaction.changes:
            print(change.values["code"], file=seen)
        seen.flush()
"""


@scenario()
def followed_changes(driver, options):
    """Readers lose nothing: over HTTP while the agent is killed, and with a cursor while they are killed themselves."""
    if driver.binary is None:
        raise Skip("the Python package runs a command on this machine")
    chance = random.Random(options.seed)
    phone, tablet = two_nodes(driver)
    port = brokers.free_port()
    token = driver.folder / "http.token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    driver.configure(tablet, f"http:\n  listen: 127.0.0.1:{port}\n  tokenFile: {token}\n")
    driver.start(phone, tablet)
    seen = driver.folder / "seen.txt"
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT / "python"), "MARTLET_BINARY": str(driver.binary)}

    def start_reader():
        return subprocess.Popen(
            [sys.executable, "-c", READER, tablet.store, seen], env=environment, stdin=subprocess.DEVNULL)

    # From the first transaction on.
    begin = f"{json.loads(driver.martlet('status', driver.store_argument(tablet), '--json'))['store']}:0"
    source = EventSource(
        f"http://127.0.0.1:{port}/changes?after={begin}&entity=task", {"Authorization": f"Bearer {TOKEN}"})
    reader = start_reader()
    expected = []
    try:
        for number in range(ROUNDS):
            for task in range(ROUND_TASKS):
                expected.append(f"{number}-{task:02}")
                phone.write(add_task(expected[-1]))
            if chance.random() < 0.7:
                driver.kill(tablet)
                driver.start(tablet)
            if chance.random() < 0.7:
                reader.kill()
                reader.wait()
                reader = start_reader()
            expect(reader.poll() is None, "the reader has ended")
        driver.settle(phone, tablet)
        eventually("the client over HTTP has everything", lambda: (codes(source)[-1:] == expected[-1:], source.refusal))
        eventually("the reader has everything", lambda: lines(seen)[-1:] == expected[-1:])
    finally:
        reader.kill()
        reader.wait()
        source.close()
    for found, who in [(codes(source), "over HTTP"), (lines(seen), "with a cursor")]:
        expect_equal(list(dict.fromkeys(found)), expected, f"the tasks that were read {who}")
    # The client takes each event once: it continues after the last one.
    expect_equal(len(codes(source)), len(expected), "the number of events")
    driver.stop(phone, tablet)


def codes(source):
    return [change["values"]["code"] for _, data in list(source.events) for change in json.loads(data)["changes"]]


def lines(path):
    return path.read_text().split() if path.exists() else []
