"""The torture rig: agents, a broker and writers as processes on real files, with random faults from a seed.

    python3 Tests/scenarios/torture --minutes 10 --nodes 5 --seed 7

At the end of the time the rig ends all faults, waits until the digests are equal, and then checks that every acknowledged
write is on every node. It keeps the files of a failed run. It needs only Python's standard library; the broker comes from
KAFKA_HOME or from PyPI. The seed decides the actions and their durations, not how processes interleave.
"""

import json
import pathlib
import random
import shutil
import signal
import tempfile
import time

from shared import command_line
from shared.item_workload import REGISTERS, SCHEMA, item_contents
from shared.ledger import Ledger, check
from shared.waiting import Failure, Skip, expect_equal, pause
from torture.driver import TortureDriver
from torture.faults import Faults
from torture.writers import PythonWriter, ShellWriter

DONE_TABLE = "CREATE TABLE done (name TEXT PRIMARY KEY NOT NULL, ticket INTEGER NOT NULL)"
#: The commit order in one store. Martlet doesn't track this table.
TICKET_TABLE = "CREATE TABLE IF NOT EXISTS ticket (number INTEGER NOT NULL)"
TRACKED = ("item", "register", "done", "barrier")
SMALL_DISK_MEGABYTES = 512
CONVERGENCE_DEADLINE_SECONDS = 600


def main():
    arguments = parse_arguments()
    # Clean up after SIGTERM as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"seed {arguments.seed}, {arguments.minutes:g} minutes, {arguments.nodes} nodes", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="martlet-torture-"))
    driver = TortureDriver(folder, arguments.binary)
    try:
        driver.open()
        run(driver, arguments)
    except Skip as reason:
        print(f"skipped: {reason}")
    except BaseException as problem:
        driver.close_and_keep_disks()
        print(f"FAILED with seed {arguments.seed}: {problem}\n  files: {folder}", flush=True)
        if not isinstance(problem, (Failure, KeyboardInterrupt)):
            raise
        return 1
    driver.close()
    if arguments.keep:
        print(f"files: {folder}")
    else:
        shutil.rmtree(folder)
    return 0


def run(driver, arguments):
    rng = random.Random(arguments.seed)
    nodes, small_disk = make_nodes(driver, arguments.nodes)
    before = contents(nodes[0])
    ledgers = {node.name: Ledger() for node in nodes}
    writers = make_writers(driver, nodes, ledgers, arguments)
    faults = Faults(driver, nodes, writers, rng, small_disk)
    for kind, why in faults.skipped.items():
        print(f"SKIPPED: {kind}: {why}", flush=True)
    for writer in writers:
        writer.start()
    try:
        torture(driver, faults, ledgers, arguments, rng)
    except BaseException:
        for writer in writers:
            writer.kill()
        raise
    for writer in writers:
        writer.stop()
    driver.restart_exited_agents()
    seconds = converge(driver, nodes)
    for node in nodes:
        check(node.name, contents(node), ledgers.values(), before)
    driver.expect_integrity(*nodes)
    driver.expect_each_transaction_once(*nodes)
    report(driver, nodes, writers, faults, ledgers, seconds)


def make_nodes(driver, count):
    names = [f"node{number}" for number in range(1, count + 1)]
    has_small_disk = driver.mount_disk(names[0], SMALL_DISK_MEGABYTES)
    tracked = [argument for table in TRACKED for argument in ("--table", table)]
    nodes = []
    for name in names:
        node = driver.add_node(name, f"{SCHEMA};{DONE_TABLE}", attach=tracked)
        node.write("PRAGMA journal_mode = WAL", TICKET_TABLE, "INSERT INTO ticket VALUES (0)")
        nodes.append(node)
    driver.start(*nodes)
    nodes[0].write(*(("INSERT INTO register VALUES (?, '')", (name,)) for name in REGISTERS))
    driver.settle(*nodes)
    return nodes, nodes[0] if has_small_disk else None


def make_writers(driver, nodes, ledgers, arguments):
    writers = []
    for number, node in enumerate(nodes):
        # On one node in three the writers' clocks are an hour behind: their changes lose, which must not lose rows.
        behind = driver.shifted(-3600) if driver.can_shift_clocks and number % 3 == 2 else None
        for kind, name in ((PythonWriter, "a"), (PythonWriter, "b"), (ShellWriter, "c")):
            writers.append(kind(node, name, ledgers[node.name], arguments.seed, arguments.pause, behind))
    return writers


def torture(driver, faults, ledgers, arguments, rng):
    started = time.monotonic()
    said = started
    while (now := time.monotonic()) < started + arguments.minutes * 60:
        faults.step(now)
        pause(rng.uniform(0.2, 2.5) * arguments.calm)
        driver.restart_exited_agents()
        for writer in faults.writers:
            if writer.error is not None:
                raise Failure(f"writer {writer.name}: {writer.error}")
        if now - said > 60:
            said = now
            print(f"  {now - started:.0f} s: {sum(l.transactions for l in ledgers.values())} transactions, "
                  f"{sum(faults.counts.values())} faults", flush=True)
    faults.end_all()


def converge(driver, nodes):
    """Waits until the nodes have converged. Returns how many seconds that took after the last write."""
    started = time.monotonic()
    driver.settle(*nodes, deadline_seconds=CONVERGENCE_DEADLINE_SECONDS)
    seconds = time.monotonic() - started
    for node in nodes:
        status = driver.status(node)
        gaps = {origin["node"]: origin["gaps"] for origin in status["origins"] if origin["gaps"]}
        expect_equal(gaps, {}, f"remaining gaps of {node.name}")
    return seconds


def contents(node):
    found = item_contents(node)
    for (name,) in node.rows("SELECT name FROM done"):
        found["done", name] = 1
    return found


def report(driver, nodes, writers, faults, ledgers, seconds):
    print(f"converged {seconds:.1f} s after the last write; nothing was lost or applied twice")
    transactions = sum(ledger.transactions for ledger in ledgers.values())
    print(f"  {transactions} transactions with {sum(ledger.changes for ledger in ledgers.values())} changes"
          f" by {len(writers)} writers, {sum(writer.refusals for writer in writers)} refused by SQLite")
    print("  " + ", ".join(f"{count} {kind}" for kind, count in sorted(faults.counts.items())))
    links = driver.links.values()
    published = sum(node.value("SELECT coalesce(sum(length(payload)), 0) FROM _martlet_outbox") for node in nodes)
    topic = json.loads(driver.martlet("topic", "describe", "--bootstrap-servers", driver.bootstrap,
                                      "--topic", driver.topic, "--json"))
    messages = sum(partition["high"] for partition in topic["partitions"])
    print(f"  {published} bytes of transactions in {messages} messages; {sum(l.bytes_to_broker for l in links)} bytes to the broker,"
          f" {sum(l.bytes_from_broker for l in links)} from it, in {sum(l.connections for l in links)} connections")
    if driver.networks:
        counters = [network.tcp_counters() for network in driver.networks.values()]
        print(f"  {sum(c['RetransSegs'] for c in counters)} TCP segments retransmitted in {len(counters)} namespaces,"
              f" {sum(c['TCPTimeouts'] for c in counters)} TCP timeouts")
    for node in nodes:
        status = driver.status(node)
        print(f"  {node.name}: {node.value('SELECT count(*) FROM item')} rows, parked {status['parked']},"
              f" quarantined {status['quarantined']}, store {node.store.stat().st_size} bytes")
    for name, exits in sorted(driver.unexpected_exits.items()):
        for text in sorted(set(exits)):
            print(f"  {name} ended by itself ({exits.count(text)} times): {text}")


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long faults last (default: 10)")
    parser.add_argument("--nodes", type=int, default=5, help="number of nodes (default: 5)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="default: random")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between a writer's transactions (default: 0.2)")
    parser.add_argument("--calm", type=float, default=1, help="above 1: fewer faults (default: 1)")
    parser.add_argument("--keep", action="store_true", help="keep the files of a passed run")
    arguments = parser.parse_args()
    command_line.expect_binary(parser, arguments)
    return arguments
