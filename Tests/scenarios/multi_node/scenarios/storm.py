"""kill -9 of agents and broker at random moments, under load."""

import collections
import queue
import random

from multi_node.registry import scenario
from multi_node.writers import Writer
from shared.item_workload import REGISTERS, SCHEMA, ItemWorkload, item_contents
from shared.ledger import Ledger, check
from shared.progress import Progress


@scenario(own_broker=True)
def kill9_storm(driver, options):
    """Agents and the broker are killed at random while both stores are written to: nothing is lost or applied twice."""
    nodes = [driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)]
    driver.start(*nodes)
    nodes[0].write(*(("INSERT INTO register VALUES (?, '')", (name,)) for name in REGISTERS))
    driver.settle(*nodes)
    before = item_contents(nodes[0])

    rng = random.Random(options.seed)
    ledgers, progress = [Ledger() for _ in nodes], Progress()
    writers = [
        StormWriter(node, "w", ledger, progress, random.Random(f"{options.seed}-{node.name}"))
        for node, ledger in zip(nodes, ledgers)
    ]
    for writer in writers:
        writer.start()
    try:
        kills = storm(driver, nodes, writers, progress, rng, options)
    finally:
        for writer in writers:
            writer.end()
    for writer in writers:
        writer.finish()

    driver.settle(*nodes, deadline_seconds=300)
    for node in nodes:
        check(node.name, item_contents(node), ledgers, before)
    driver.expect_integrity(*nodes)
    driver.expect_each_transaction_once(*nodes)
    killed = ", ".join(f"{name} {count}" for name, count in sorted(kills.items()))
    return f"kills: {killed}; {sum(ledger.transactions for ledger in ledgers)} transactions"


def storm(driver, nodes, writers, progress, rng, options):
    """Kills an agent or the broker at a random moment of each burst of writes, and restarts it at a later one."""
    kills = collections.Counter()
    victims = []
    for _ in range(options.kills):
        if not victims:
            # Shuffled rounds: each kind of victim comes often enough, in random order. None is the broker.
            victims = [*nodes, *nodes, None]
            rng.shuffle(victims)
        victim = victims.pop()
        burst = rng.randint(20, 120)
        start = progress.count
        for writer in writers:
            writer.allow(burst)
        progress.wait_for(start + rng.randint(0, burst))
        if victim is None:
            driver.kill_broker(hard=options.hard_broker_kill)
        else:
            driver.kill(victim)
        kills[victim.name if victim else "broker"] += 1
        progress.wait_for(start + rng.randint(burst, 2 * burst))
        if victim is None:
            driver.start_broker()
        else:
            driver.start(victim)
    return kills


class StormWriter(Writer):
    """Commits as many transactions as `allow` permits."""

    def __init__(self, node, name, ledger, progress, rng):
        super().__init__(node, name, ledger, progress, rng)
        self._allowed = queue.Queue()

    def allow(self, count):
        """Permits this many more transactions."""
        for _ in range(count):
            self._allowed.put(True)

    def end(self):
        """Ends the writer once it has committed all permitted transactions."""
        self._allowed.put(False)

    def work(self):
        rows = ItemWorkload(self.connection, self.marker, self.rng)
        while self._allowed.get():
            size, before = rows.size(), rows.saved()

            def fill():
                rows.restore(before)
                return rows.change(size), size

            self.transact(fill)
