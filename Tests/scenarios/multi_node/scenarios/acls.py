"""A broker with access control lists: a node that lacks one permission after the other."""

import re

from multi_node.registry import scenario
from multi_node.security.authorizer import AccessControlList
from multi_node.security.secured_broker import secured_broker
from shared.waiting import eventually, expect, expect_equal

SCHEMA = "CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)"
COUNT = "SELECT count(*) FROM note"
#: The most log lines for a missing permission, however often the agent retries.
MAX_LOG_LINES = 20
CHECKS = "check: {interval: 1s}\n"


def required_permissions(topic, group):
    """All permissions that `martlet topic acls` lists."""
    topics = (topic, f"{topic}.check", f"{topic}.snapshot")
    permissions = [(operation, "topic", name) for name in topics for operation in ("Read", "Write")]
    return permissions + [("IdempotentWrite", "cluster", None), ("Read", "group", group),
                     ("DescribeConfigs", "topic", topic)]


def describe(permission):
    """A permission as the doctor prints it, and as options of kafka-acls.sh."""
    operation, kind, name = permission
    if kind == "cluster":
        return f"{operation} on the cluster", f"--operation {operation} --cluster"
    return f"{operation} on {kind} {name}", f"--operation {operation} --{kind} {name}"


@scenario()
def each_right_taken_away(driver, options):
    """Revokes each permission by itself: the doctor names it, with the command that grants it; the agent recovers once it is back."""
    driver.require_old_requests()
    with secured_broker(driver) as broker:
        acl = AccessControlList()
        listener = broker.listener(acl=acl)
        other, node = broker.add_nodes(SCHEMA, "other", "node")
        broker.configure(node, listener, "plaintext", more=CHECKS)
        driver.martlet("topic", "create", "--bootstrap-servers", driver.bootstrap, "--topic", driver.topic,
                       "--partitions", 4)
        driver.start(other)
        code, said = broker.doctor(node)
        expect(code == 1 and all(f"{name} is missing" in said for name, _ in map(describe, required_permissions(driver.topic, "")[:7])),
               f"the doctor of a node without permissions says:\n{said}")
        printed = driver.martlet("topic", "acls", "--bootstrap-servers", listener.bootstrap, "--topic", driver.topic,
                                 "--principal", "User:phone")
        for permission in required_permissions(driver.topic, "martlet.")[:-1]:
            expect(describe(permission)[1] in printed, f"{permission} is not in:\n{printed}")
            acl.grant(*permission)
        driver.start(node)
        write(node, "first")
        eventually("a node with the permissions syncs", lambda: other.value(COUNT) == 1)
        identity = driver.status(node)["node"]
        every = required_permissions(driver.topic, f"martlet.{identity}")
        for permission in every:
            acl.grant(*permission)
        code, said = broker.doctor(node)
        expect(code == 0 and " is missing:" not in said, f"the doctor of a node with all permissions says:\n{said}")
        driver.stop(node)
        table = [run_without(broker, acl, listener, node, other, permission) for permission in every]
        driver.start(node)
        driver.settle(node, other)
        driver.expect_each_transaction_once(node, other)
        return "; ".join(table)


def run_without(broker, acl, listener, node, other, permission):
    """Runs a node without one permission, then grants it. Returns a line about the log in between."""
    driver = broker.driver
    name, option = describe(permission)
    acl.revoke(*permission)
    code, said = broker.doctor(node)
    is_optional = permission[1] == "group" or permission[0] == "DescribeConfigs"
    if permission[0] != "DescribeConfigs":
        found = re.search(rf"{re.escape(name)} is missing.*?{re.escape(option)}", said.replace("\n", " "))
        expect(found, f"without {name} the doctor says:\n{said}")
    expect_equal(code, 0 if is_optional else 1, f"exit code of the doctor without {name}")
    before = driver.log_text(node)
    driver.start(node)
    write(other, "from the other")
    write(node, "from here")
    topic = permission[2] == driver.topic
    if permission[0] == "Read" and topic:
        eventually(f"the log says that {name} is missing", lambda: option in driver.log_text(node)[len(before):])
    else:
        eventually(f"without {name} the node reads", lambda: node.value(COUNT) == expected_count(driver, other, node))
    if permission[1] in ("cluster", "group") or permission[0] == "Write" and topic:
        eventually(f"the log says that {name} is missing", lambda: option in driver.log_text(node)[len(before):])
    acl.grant(*permission)
    eventually(f"the node is in sync again with {name}",
               lambda: node.value(COUNT) == other.value(COUNT) and driver.status(node)["unpublished"] == 0)
    lines = len(driver.log_text(node)[len(before):].splitlines())
    expect(lines <= MAX_LOG_LINES, f"without {name} the log has {lines} lines")
    driver.stop(node)
    return f"{name}: {lines} lines"


def write(node, text):
    node.write(("INSERT INTO note (text) VALUES (?)", (text,)))


def expected_count(driver, other, node):
    """The number of notes of a node that reads everything, even if it can't publish its own."""
    return other.value(COUNT) + driver.status(node)["unpublished"]
