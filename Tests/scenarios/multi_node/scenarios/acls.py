"""A broker with access control lists: a node that lacks one right after the other."""

import re

from multi_node.registry import scenario
from multi_node.security.authorizer import Rights
from multi_node.security.secured_broker import scene
from shared.waiting import eventually, expect, expect_equal

SCHEMA = "CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)"
COUNT = "SELECT count(*) FROM note"
#: What a right that is missing may add to the log, however often it is tried again.
MOST_LINES = 20
CHECKS = "check: {interval: 1s}\n"


def needed(topic, group):
    """All rights that `martlet topic acls` names."""
    topics = (topic, f"{topic}.check", f"{topic}.snapshot")
    rights = [(operation, "topic", name) for name in topics for operation in ("Read", "Write")]
    return rights + [("IdempotentWrite", "cluster", None), ("Read", "group", group),
                     ("DescribeConfigs", "topic", topic)]


def spoken(right):
    """A right as the doctor says it, and as an option of kafka-acls.sh."""
    operation, kind, name = right
    if kind == "cluster":
        return f"{operation} on the cluster", f"--operation {operation} --cluster"
    return f"{operation} on {kind} {name}", f"--operation {operation} --{kind} {name}"


@scenario()
def each_right_taken_away(driver, options):
    """Each right is taken away alone: the doctor names it, with the command that grants it; the agent goes on when it is back."""
    driver.expect_old_requests()
    with scene(driver) as place:
        granted = Rights()
        front = place.front(granted=granted)
        other, node = place.nodes(SCHEMA, "other", "node")
        place.configure(node, front, "plaintext", more=CHECKS)
        driver.martlet("topic", "create", "--bootstrap-servers", driver.bootstrap, "--topic", driver.topic,
                       "--partitions", 4)
        driver.start(other)
        code, said = place.doctor(node)
        expect(code == 1 and all(f"{name} is missing" in said for name, _ in map(spoken, needed(driver.topic, "")[:7])),
               f"the doctor of a node without any right says:\n{said}")
        printed = driver.martlet("topic", "acls", "--bootstrap-servers", front.bootstrap, "--topic", driver.topic,
                                 "--principal", "User:phone")
        for right in needed(driver.topic, "martlet.")[:-1]:
            expect(spoken(right)[1] in printed, f"{right} is not in:\n{printed}")
            granted.grant(*right)
        driver.start(node)
        write(node, "first")
        eventually("a node with the rights syncs", lambda: other.value(COUNT) == 1)
        identity = driver.status(node)["node"]
        every = needed(driver.topic, f"martlet.{identity}")
        for right in every:
            granted.grant(*right)
        code, said = place.doctor(node)
        expect(code == 0 and " is missing:" not in said, f"the doctor of a node with all rights says:\n{said}")
        driver.stop(node)
        table = [take_away(place, granted, front, node, other, right) for right in every]
        driver.start(node)
        driver.settle(node, other)
        driver.expect_each_transaction_once(node, other)
        return "; ".join(table)


def take_away(place, granted, front, node, other, right):
    """Starts a node that lacks one right, and gives it back. Returns what it did without."""
    driver = place.driver
    name, option = spoken(right)
    granted.revoke(*right)
    code, said = place.doctor(node)
    is_optional = right[1] == "group" or right[0] == "DescribeConfigs"
    if right[0] != "DescribeConfigs":
        found = re.search(rf"{re.escape(name)} is missing.*?{re.escape(option)}", said.replace("\n", " "))
        expect(found, f"without {name} the doctor says:\n{said}")
    expect_equal(code, 0 if is_optional else 1, f"exit code of the doctor without {name}")
    before = driver.log_text(node)
    driver.start(node)
    write(other, "from the other")
    write(node, "from here")
    topic = right[2] == driver.topic
    if right[0] == "Read" and topic:
        eventually(f"the log says that {name} is missing", lambda: option in driver.log_text(node)[len(before):])
    else:
        eventually(f"without {name} the node reads", lambda: node.value(COUNT) == other_count(driver, other, node))
    if right[1] in ("cluster", "group") or right[0] == "Write" and topic:
        eventually(f"the log says that {name} is missing", lambda: option in driver.log_text(node)[len(before):])
    granted.grant(*right)
    eventually(f"all is well when {name} is back",
               lambda: node.value(COUNT) == other.value(COUNT) and driver.status(node)["unpublished"] == 0)
    lines = len(driver.log_text(node)[len(before):].splitlines())
    expect(lines <= MOST_LINES, f"without {name} the log has {lines} lines")
    driver.stop(node)
    return f"{name}: {lines} lines"


def write(node, text):
    node.write(("INSERT INTO note (text) VALUES (?)", (text,)))


def other_count(driver, other, node):
    """How many notes the node has that reads all, whatever of its own is published."""
    return other.value(COUNT) + driver.status(node)["unpublished"]
