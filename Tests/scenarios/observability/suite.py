"""Tests the alerts and the Grafana dashboard of docker/observability with a real Prometheus that scrapes real agents.

    $(scripts/test-venv.sh)/bin/python Tests/scenarios/observability --binary .build/release/martlet
    $(scripts/test-venv.sh)/bin/python Tests/scenarios/observability pending

The stage `healthy` uses the rules as shipped: each is loaded, none is pending, and each query of the dashboard, with its variables
filled in as Grafana does, returns a number for each node. The other stages cause each alert, wait until Prometheus reports that it
fires, remove the cause, and wait until it clears. Their rules are a copy with shorter durations: `for` is 2 s, ranges are 10 s, and
some thresholds are lower (prometheus.py); the rest is as shipped. Prometheus scrapes and evaluates each second.
Without Prometheus or a broker the suite is skipped, visibly.
"""

import contextlib
import math
import time

from observability.collector import REJECTED, TAKEN, UNAVAILABLE, Collector
from observability.driver import ObservabilityDriver
from observability.prometheus import INTERVAL_SECONDS, Prometheus, alert_names, shipped_rules, shortened_rules
from shared import command_line, grafana_dashboard, runner
from shared.background_writers import LockHolder
from shared.fault_proxy import CUT, PASS
from shared.notes import write_visits
from shared.waiting import Failure, eventually, expect, expect_equal


class Context:
    """What a stage needs: a driver and a Prometheus. Records which alerts fired and cleared."""

    def __init__(self, driver):
        self.driver = driver
        self.prometheus = Prometheus(driver.folder / "prometheus")
        self._firing_since = set()
        #: Names of alerts that have fired and cleared.
        self.cleared = []

    def watch(self, *nodes, rules=None):
        """Starts Prometheus once these nodes are in sync, and waits until it has scraped them."""
        self.driver.wait_until_ready(*nodes)
        self.prometheus.start([self.driver.address(node) for node in nodes], rules or shortened_rules())
        everyone = {self.driver.address(node): "up" for node in nodes}
        eventually("Prometheus reaches every node", lambda: seen(self.prometheus.targets(), everyone))
        eventually("Prometheus has evaluated every rule", self._all_evaluated)

    def _all_evaluated(self):
        bad = {name: rule for name, rule in self.prometheus.rules().items() if rule["health"] != "ok"}
        for name, rule in bad.items():
            if rule["health"] != "unknown":
                raise Failure(f"the rule {name} can't be evaluated: {rule.get('lastError')}")
        return True if not bad else (False, f"{sorted(bad)} are not evaluated yet")

    def _firing(self, nodes):
        addresses = [self.driver.address(node) for node in nodes]
        return {alert["labels"]["alertname"]: alert for alert in self.prometheus.alerts("firing")
                if alert["labels"].get("instance") in addresses}

    @contextlib.contextmanager
    def alerts(self, names, *nodes):
        """A context manager around the cause: the alerts are silent before it, and fire for one of the nodes at its end."""
        names = names.split()
        whom = " or ".join(node.name for node in nodes)
        for name in names:
            expect(name not in self._firing(nodes), f"{name} fires for {whom} before there is a cause")
        yield
        for name in names:
            alert = eventually(f"{name} fires for {whom}", lambda: self._firing(nodes).get(name))
            said = alert["annotations"]["summary"]
            expect(alert["labels"]["instance"] in said and "<no value>" not in said, f"{name} says: {said}")
            self._firing_since.add(name)

    def clear(self, names, *nodes):
        """Waits until the alerts clear, after the cause is removed."""
        for name in names.split():
            self._firing_since.remove(name)
            eventually(f"{name} clears for {' and '.join(node.name for node in nodes)}", lambda: name not in self._firing(nodes))
            self.cleared.append(name)


def seen(actual, expected):
    return True if actual == expected else (False, actual)


def note(node, key, text="tea"):
    node.write(("INSERT INTO note VALUES (?, ?, ?)", (key, key, text)))


def healthy(context):
    """The rules as shipped, and every query of the dashboard."""
    with Collector() as collector:
        # Panels of exporting and pushing have data if nodes do so.
        nodes = context.driver.add("laptop", "phone", "tablet", export={"prefix": "observed"}, telemetry=collector.telemetry)
        context.driver.wait_until_ready(*nodes)
        context.driver.settle(*nodes)
        context.watch(*nodes, rules=shipped_rules())
        return expect_data_and_silence(context, nodes)


def expect_data_and_silence(context, nodes):
    """Expects that each query of the dashboard returns numbers, and that no alert is pending. Returns a line about it."""
    driver, prometheus = context.driver, context.prometheus
    expect_equal(list(prometheus.rules()), alert_names(), "the loaded rules")
    addresses = {driver.address(node) for node in nodes}
    dashboard = grafana_dashboard.read()
    variables = grafana_dashboard.variables(dashboard, prometheus)
    expect_equal(set(variables["instance"]), addresses, "the nodes to select from")
    queries = grafana_dashboard.queries(dashboard, variables, INTERVAL_SECONDS)
    for number, query in enumerate(queries):
        # Rates need activity.
        for node in nodes:
            note(node, f"{node.name} {number}")
        eventually(f"{query.where} has data", lambda: has_series(prometheus, query, addresses, nodes))
    expect_equal(prometheus.alerts("pending", "firing"), [], "alerts of healthy nodes")
    return f"{len(alert_names())} rules, {len(queries)} queries"


def has_series(prometheus, query, addresses, nodes):
    now = time.time()
    found = prometheus.query("query_range", query=query.expression, start=now - 30, end=now, step=INTERVAL_SECONDS)["result"]
    numbers = [series for series in found if any(math.isfinite(float(value)) for _, value in series["values"])]
    if not numbers:
        # A quantile needs changes within its range.
        for node in nodes:
            node.write("UPDATE note SET text = text || '.' WHERE key = 'laptop 0'")
        return False, f"no data, or no number: {query.expression}"
    for series in numbers:
        missing = query.labels - set(series["metric"])
        expect(not missing, f"{query.where}: the legend names {sorted(missing)}, the series has {series['metric']}")
    of_nodes = {series["metric"]["instance"] for series in numbers if "instance" in series["metric"]}
    return True if not of_nodes or of_nodes == addresses else (False, f"only for {of_nodes}")


def unreachable(context):
    """A node that is down, and one that can't reach the broker."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", kafka={"properties": {"message.timeout.ms": 5000}})
    driver.wait_until_ready(laptop, phone)
    driver.settle(laptop, phone)
    context.watch(laptop, phone)
    with context.alerts("MartletNodeDown", phone), context.alerts("MartletNodeSilent", laptop):
        driver.kill(phone)
    driver.start(phone)
    note(phone, "from the phone")
    context.clear("MartletNodeDown", phone)
    context.clear("MartletNodeSilent", laptop)
    of_laptop = "MartletNotReady MartletReadHeldUp MartletPublishHeldUp MartletBrokerDisconnected MartletUnpublished"
    with context.alerts("MartletSlowToArrive", phone):
        with context.alerts(of_laptop, laptop):
            driver.links["laptop"].set(CUT)
            note(laptop, "shopping")
        driver.links["laptop"].set(PASS)
    context.clear(of_laptop, laptop)
    context.clear("MartletSlowToArrive", phone)
    driver.settle(laptop, phone)


def locked(context):
    """Another program holds the write lock: all the time, then most of the time while there is a backlog."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", sync={"applyBatchTransactions": 1})
    context.watch(laptop, phone)
    with laptop.connection() as connection:
        connection.isolation_level = None
        with context.alerts("MartletReadStuck", laptop):
            connection.execute("BEGIN IMMEDIATE")
            note(phone, "shopping")
        connection.execute("ROLLBACK")
    context.clear("MartletReadStuck", laptop)
    driver.stop(laptop)
    write_visits(phone, 2000, rows=20)
    driver.wait_until_published(phone)
    with LockHolder(laptop), context.alerts("MartletBehind", laptop):
        driver.start(laptop)
    context.clear("MartletBehind", laptop)
    driver.settle(laptop, phone)


def pending(context):
    """Quarantined messages, missing transactions, pending changes, a lost table, and an unreadable store."""
    driver = context.driver
    small = {"sync": {"maxMessageBytes": 10_000}, "security": {"limits": {"maxMessageBytes": 10_000}}}
    (phone,) = driver.add("phone")
    (laptop,) = driver.add("laptop", **small)
    context.watch(laptop, phone)

    with context.alerts("MartletQuarantined", laptop):
        driver.write_garbage(b"hello")
    ((garbage,),) = laptop.rows("SELECT id FROM _martlet_quarantine")
    for node in (laptop, phone):
        driver.martlet("quarantine", node.store, "--discard", garbage)
    context.clear("MartletQuarantined", laptop)

    # A message larger than the laptop accepts, and a later one: the first is missing.
    with context.alerts("MartletTransactionsMissing", laptop):
        note(phone, "large", "x" * 20_000)
        driver.wait_until_published(phone)
        note(phone, "small")
    driver.set(laptop)
    driver.stop(laptop)
    driver.start(laptop)
    context.clear("MartletTransactionsMissing", laptop)

    with context.alerts("MartletParked", laptop):
        with phone.connection() as connection:
            connection.execute("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
        driver.martlet("attach", phone.store)
        phone.write("INSERT INTO place VALUES ('Bern')")
    with laptop.connection() as connection:
        connection.execute("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
    driver.martlet("attach", laptop.store)
    context.clear("MartletParked", laptop)

    with context.alerts("MartletTableLost", laptop):
        laptop.write("DROP TABLE place")
    laptop.write("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
    driver.martlet("attach", laptop.store)
    context.clear("MartletTableLost", laptop)

    with context.alerts("MartletStoreUnreadable", laptop):
        laptop.write("ALTER TABLE _martlet_quarantine RENAME TO _martlet_away")
    laptop.write("ALTER TABLE _martlet_away RENAME TO _martlet_quarantine")
    context.clear("MartletStoreUnreadable", laptop)


def divergence(context):
    """A row that changed without triggers, and a topic that lost messages."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", check={"interval": "2s"})
    note(laptop, "shopping")
    driver.settle(laptop, phone)
    context.watch(laptop, phone)
    with context.alerts("MartletNodesDiffer", laptop, phone):
        change_without_triggers(laptop, "UPDATE note SET text = 'coffee' WHERE key = 'shopping'")
    context.clear("MartletNodesDiffer", laptop, phone)
    driver.settle(laptop, phone)
    with context.alerts("MartletTopicLostMessages", laptop):
        driver.wipe_broker()
    context.clear("MartletTopicLostMessages", laptop)
    driver.settle(laptop, phone)


def change_without_triggers(node, statement):
    """Changes a row as a tool does that disables triggers."""
    with node.connection() as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'note'").fetchall()
        expect(triggers, "the table has no triggers")
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")


def clocks(context):
    """A node whose clock is ahead."""
    driver = context.driver
    laptop, phone = driver.add("laptop", "phone", sync={"maxClockSkew": "5s"})
    driver.settle(laptop, phone)
    ahead_seconds = 20
    driver.shift_clock(phone, ahead_seconds)
    context.watch(laptop, phone)
    driver.stop(phone)
    with context.alerts("MartletClockWrong", phone), context.alerts("MartletOtherClockAhead", laptop):
        driver.start(phone)
        driver.wait_until_ready(phone)
        # The clock of the writing program gives the timestamp of a change.
        driver.write_shifted(phone, "INSERT INTO note VALUES ('early', 'Early', 'tea')")
        early = time.time() + ahead_seconds
    driver.stop(phone)
    driver.shift_clock(phone, 0)
    driver.start(phone)
    driver.wait_until_ready(phone)
    # A node's timestamps never go back.
    eventually("the clock passes the early timestamp", lambda: time.time() > early)
    note(phone, "in time")
    context.clear("MartletClockWrong", phone)
    context.clear("MartletOtherClockAhead", laptop)
    driver.settle(laptop, phone)


def exporting(context):
    """An exporter that the Kafka client refuses a record of, and one that can't keep up."""
    driver = context.driver
    # The row of this size syncs in chunks, but a record of an export is one message.
    small = {"sync": {"maxMessageBytes": 10_000}, "kafka": {"properties": {"message.max.bytes": 20_000}}}
    (laptop,) = driver.add("laptop", **small, export={"prefix": "observed"})
    context.watch(laptop)
    with context.alerts("MartletExportFailing", laptop):
        note(laptop, "large", "x" * 40_000)
    one_by_one = {"prefix": "observed", "batchChanges": 1}
    driver.set(laptop, export=one_by_one)
    driver.reload(laptop)
    context.clear("MartletExportFailing", laptop)
    with context.alerts("MartletExportBehind", laptop):
        write_visits(laptop, 1000, rows=20)
    driver.set(laptop, export={"prefix": "observed"})
    driver.reload(laptop)
    context.clear("MartletExportBehind", laptop)


def held(context):
    """A cursor whose reader is gone."""
    driver = context.driver
    (laptop,) = driver.add("laptop", history={"retention": {"sizeBytes": 10_000}})
    context.watch(laptop)
    with context.alerts("MartletHistoryHeld", laptop):
        driver.martlet("history", "tail", laptop.store, "--json", "--cursor", "gone", "--no-follow")
        write_visits(laptop, 1000)
    driver.martlet("history", "cursors", "remove", laptop.store, "gone")
    context.clear("MartletHistoryHeld", laptop)


def pushing(context):
    """A collector that is unavailable, and one that rejects some of the metrics."""
    with Collector() as collector:
        (laptop,) = context.driver.add("laptop", telemetry=collector.telemetry)
        context.watch(laptop)
        for name, answer in (("MartletPushFailing", UNAVAILABLE), ("MartletPushRejected", REJECTED)):
            with context.alerts(name, laptop):
                collector.answer = answer
            collector.answer = TAKEN
            context.clear(name, laptop)


STAGES = {
    stage.__name__: stage
    for stage in (healthy, unreachable, locked, pending, divergence, clocks, exporting, held, pushing)
}


def main():
    arguments = parse_arguments()
    cleared = set()
    outcomes = runner.run_all(STAGES, arguments.names, "martlet-observability",
                              lambda stage, folder: run(stage, folder, arguments, cleared))
    never = [name for name in alert_names() if name not in cleared]
    print(f"{outcomes}; {len(cleared)} of {len(alert_names())} alerts fired and cleared")
    if never and not arguments.names and not outcomes["skipped"]:
        print(f"never fired: {', '.join(never)}")
        return 1
    return outcomes.exit_code


def run(stage, folder, arguments, cleared):
    """Runs one context, with its own processes. Returns a line about it."""
    with contextlib.closing(ObservabilityDriver(folder, arguments.binary)) as driver:
        context = Context(driver)
        with contextlib.closing(context.prometheus):
            driver.open()
            text = stage(context) or ", ".join(context.cleared)
            cleared.update(context.cleared)
            return text


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    arguments = command_line.parse_names(parser, "stage", STAGES)
    command_line.expect_binary(parser, arguments)
    return arguments
