"""What docker/observability ships, in a real Prometheus that scrapes real agents: alerts, and the queries of the dashboard.

    $(scripts/test-venv.sh)/bin/python Tests/scenarios/observability --binary .build/release/martlet
    $(scripts/test-venv.sh)/bin/python Tests/scenarios/observability aside

The stage `healthy` has the rules as they are shipped: each is loaded, none is pending, and each query of the dashboard, with its
variables filled in as Grafana does, finds a number for each node (none may find nothing). The other stages make the cause of each
alert, wait until Prometheus says that it fires, remove the cause, and wait until it has cleared. Their rules are a copy in which
durations are shorter: `for` is 2 s, ranges are 10 s, and four bounds that are times are 4 s or 20 s (prometheus.py); all else is
as shipped. Prometheus asks and evaluates each second. Without Prometheus, or without a broker, it is skipped, visibly.
"""

import contextlib
import math
import time

from observability.driver import ObservabilityDriver
from observability.prometheus import INTERVAL_SECONDS, Prometheus, alert_names, shipped_rules, shortened_rules
from shared import command_line, grafana_dashboard, runner
from shared.background_writers import LockHolder
from shared.fault_proxy import CUT, PASS
from shared.notes import write_visits
from shared.waiting import Failure, eventually, expect, expect_equal


class Context:
    """A driver, a Prometheus, and what was seen of alerts."""

    def __init__(self, driver):
        self.driver = driver
        self.prometheus = Prometheus(driver.folder / "prometheus")
        self._firing_since = set()
        #: The alerts that have fired and cleared.
        self.cleared = []

    def watch(self, *nodes, rules=None):
        """Starts Prometheus when these nodes are in step, and waits until it has asked them."""
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
        return True if not bad else (False, f"{sorted(bad)} have not been")

    def _firing(self, nodes):
        addresses = [self.driver.address(node) for node in nodes]
        return {alert["labels"]["alertname"]: alert for alert in self.prometheus.alerts("firing")
                if alert["labels"].get("instance") in addresses}

    @contextlib.contextmanager
    def alerts(self, names, *nodes):
        """For a block that makes the cause: before it the alerts are silent, at its end they fire for one of the nodes."""
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
        """The cause is gone: waits until the alerts are."""
        for name in names.split():
            self._firing_since.remove(name)
            eventually(f"{name} clears for {' and '.join(node.name for node in nodes)}", lambda: name not in self._firing(nodes))
            self.cleared.append(name)


def seen(actual, expected):
    return True if actual == expected else (False, actual)


def note(node, key, text="tea"):
    node.write(("INSERT INTO note VALUES (?, ?, ?)", (key, key, text)))


def healthy(stage):
    """The rules as they are shipped, and every query of the dashboard."""
    driver, prometheus = stage.driver, stage.prometheus
    nodes = driver.add("laptop", "phone", "tablet")
    driver.wait_until_ready(*nodes)
    driver.settle(*nodes)
    stage.watch(*nodes, rules=shipped_rules())
    expect_equal(list(prometheus.rules()), alert_names(), "the rules that are loaded")
    addresses = {driver.address(node) for node in nodes}
    dashboard = grafana_dashboard.read()
    variables = grafana_dashboard.variables(dashboard, prometheus)
    expect_equal(set(variables["instance"]), addresses, "the nodes to choose from")
    queries = grafana_dashboard.queries(dashboard, variables, INTERVAL_SECONDS)
    for number, query in enumerate(queries):
        # Rates need something that goes on.
        for node in nodes:
            note(node, f"{node.name} {number}")
        eventually(f"{query.where} has what it shows", lambda: has_series(prometheus, query, addresses, nodes))
    expect_equal(prometheus.alerts("pending", "firing"), [], "alerts where all is well")
    return f"{len(alert_names())} rules, {len(queries)} queries"


def has_series(prometheus, query, addresses, nodes):
    now = time.time()
    found = prometheus.ask("query_range", query=query.expression, start=now - 30, end=now, step=INTERVAL_SECONDS)["result"]
    numbers = [series for series in found if any(math.isfinite(float(value)) for _, value in series["values"])]
    if not numbers:
        # Of a quantile: nothing came in its range.
        for node in nodes:
            node.write("UPDATE note SET text = text || '.' WHERE key = 'laptop 0'")
        return False, f"nothing, or no number: {query.expression}"
    for series in numbers:
        missing = query.labels - set(series["metric"])
        expect(not missing, f"{query.where}: the legend names {sorted(missing)}, the series has {series['metric']}")
    of_nodes = {series["metric"]["instance"] for series in numbers if "instance" in series["metric"]}
    return True if not of_nodes or of_nodes == addresses else (False, f"only of {of_nodes}")


def gone(stage):
    """A node that does not run, and one that does not reach the broker."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", kafka={"properties": {"message.timeout.ms": 5000}})
    driver.wait_until_ready(laptop, phone)
    driver.settle(laptop, phone)
    stage.watch(laptop, phone)
    with stage.alerts("MartletNodeDown", phone), stage.alerts("MartletNodeSilent", laptop):
        driver.kill(phone)
    driver.start(phone)
    note(phone, "from the phone")
    stage.clear("MartletNodeDown", phone)
    stage.clear("MartletNodeSilent", laptop)
    of_laptop = "MartletNotReady MartletReadHeldUp MartletPublishHeldUp MartletBrokerDisconnected MartletUnpublished"
    with stage.alerts("MartletSlowToArrive", phone):
        with stage.alerts(of_laptop, laptop):
            driver.links["laptop"].set(CUT)
            note(laptop, "shopping")
        driver.links["laptop"].set(PASS)
    stage.clear(of_laptop, laptop)
    stage.clear("MartletSlowToArrive", phone)
    driver.settle(laptop, phone)


def locked(stage):
    """Another program keeps the store's write lock: for good, then most of the time while a backlog waits."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", sync={"applyBatchTransactions": 1})
    stage.watch(laptop, phone)
    with laptop.connection() as connection:
        connection.isolation_level = None
        with stage.alerts("MartletReadStuck", laptop):
            connection.execute("BEGIN IMMEDIATE")
            note(phone, "shopping")
        connection.execute("ROLLBACK")
    stage.clear("MartletReadStuck", laptop)
    driver.stop(laptop)
    write_visits(phone, 2000, rows=20)
    driver.wait_until_published(phone)
    with LockHolder(laptop), stage.alerts("MartletBehind", laptop):
        driver.start(laptop)
    stage.clear("MartletBehind", laptop)
    driver.settle(laptop, phone)


def aside(stage):
    """What is kept aside, what never comes, and what has left the store."""
    driver = stage.driver
    small = {"sync": {"maxMessageBytes": 10_000}, "security": {"limits": {"maxMessageBytes": 10_000}}}
    (phone,) = driver.add("phone")
    (laptop,) = driver.add("laptop", **small)
    stage.watch(laptop, phone)

    with stage.alerts("MartletQuarantined", laptop):
        driver.write_garbage(b"hello")
    ((garbage,),) = laptop.rows("SELECT id FROM _martlet_quarantine")
    for node in (laptop, phone):
        driver.martlet("quarantine", node.store, "--discard", garbage)
    stage.clear("MartletQuarantined", laptop)

    # A message larger than the laptop takes, and a later one: the first is missing.
    with stage.alerts("MartletTransactionsMissing", laptop):
        note(phone, "large", "x" * 20_000)
        driver.wait_until_published(phone)
        note(phone, "small")
    driver.set(laptop)
    driver.stop(laptop)
    driver.start(laptop)
    stage.clear("MartletTransactionsMissing", laptop)

    with stage.alerts("MartletParked", laptop):
        with phone.connection() as connection:
            connection.execute("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
        driver.martlet("attach", phone.store)
        phone.write("INSERT INTO place VALUES ('Bern')")
    with laptop.connection() as connection:
        connection.execute("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
    driver.martlet("attach", laptop.store)
    stage.clear("MartletParked", laptop)

    with stage.alerts("MartletTableLost", laptop):
        laptop.write("DROP TABLE place")
    laptop.write("CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL)")
    driver.martlet("attach", laptop.store)
    stage.clear("MartletTableLost", laptop)

    with stage.alerts("MartletStoreUnreadable", laptop):
        laptop.write("ALTER TABLE _martlet_quarantine RENAME TO _martlet_away")
    laptop.write("ALTER TABLE _martlet_away RENAME TO _martlet_quarantine")
    stage.clear("MartletStoreUnreadable", laptop)


def differ(stage):
    """A row that was changed behind Martlet's back, and a topic that has lost what was read."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", check={"interval": "2s"})
    note(laptop, "shopping")
    driver.settle(laptop, phone)
    stage.watch(laptop, phone)
    with stage.alerts("MartletNodesDiffer", laptop, phone):
        change_unseen(laptop, "UPDATE note SET text = 'coffee' WHERE key = 'shopping'")
    stage.clear("MartletNodesDiffer", laptop, phone)
    driver.settle(laptop, phone)
    with stage.alerts("MartletTopicLostMessages", laptop):
        driver.wipe_broker()
    stage.clear("MartletTopicLostMessages", laptop)
    driver.settle(laptop, phone)


def change_unseen(node, statement):
    """Changes a row as a tool does that turns triggers off."""
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


def clocks(stage):
    """A node whose clock is ahead."""
    driver = stage.driver
    laptop, phone = driver.add("laptop", "phone", sync={"maxClockSkew": "5s"})
    driver.settle(laptop, phone)
    driver.shift_clock(phone, 20)
    stage.watch(laptop, phone)
    driver.stop(phone)
    with stage.alerts("MartletClockWrong", phone), stage.alerts("MartletOtherClockAhead", laptop):
        driver.start(phone)
        driver.wait_until_ready(phone)
        # The time of a change is the clock of whoever writes.
        driver.write_shifted(phone, "INSERT INTO note VALUES ('early', 'Early', 'tea')")
    driver.stop(phone)
    driver.shift_clock(phone, 0)
    driver.start(phone)
    driver.wait_until_ready(phone)
    note(phone, "in time")
    stage.clear("MartletClockWrong", phone)
    stage.clear("MartletOtherClockAhead", laptop)
    driver.settle(laptop, phone)


STAGES = {stage.__name__: stage for stage in (healthy, gone, locked, aside, differ, clocks)}


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


def run(function, folder, arguments, cleared):
    """Makes one stage, with processes of its own. Returns what there is to say."""
    with contextlib.closing(ObservabilityDriver(folder, arguments.binary)) as driver:
        stage = Context(driver)
        with contextlib.closing(stage.prometheus):
            driver.open()
            text = function(stage) or ", ".join(stage.cleared)
            cleared.update(stage.cleared)
            return text


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    arguments = command_line.parse_names(parser, "stage", STAGES)
    command_line.expect_binary(parser, arguments)
    return arguments
