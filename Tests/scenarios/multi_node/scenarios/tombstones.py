"""Garbage collection of tombstones."""

import time
from datetime import datetime

from multi_node.registry import scenario
from shared.waiting import eventually, expect_equal

SCHEMA = "CREATE TABLE setting (name TEXT PRIMARY KEY NOT NULL, value TEXT)"
SETTINGS = "SELECT name, value FROM setting ORDER BY name"
#: The shortest horizon: a node that is offline for a few seconds misses the collection of tombstones.
SHORT_HORIZON = "check:\n  interval: 1s\n  tombstoneHorizon: 4s\n"


def tombstone_count(node):
    return node.value("SELECT count(*) FROM _martlet_tombstones")


def collected_through(driver, node):
    """Up to when tombstones are collected, in seconds since 1970; 0 if none are."""
    date = driver.status(node)["collectedThrough"]
    return datetime.fromisoformat(date).timestamp() if date else 0


@scenario()
def deletes_are_forgotten(driver, options):
    """Nodes collect tombstones; a node that was offline for longer resurrects no deleted row, and loses none of its own changes."""
    nodes = [driver.add_node(name, SCHEMA) for name in ("phone", "tablet", "edge")]
    phone, tablet, edge = nodes
    for node in nodes:
        driver.configure(node, SHORT_HORIZON)
    driver.start(*nodes)
    phone.write("INSERT INTO setting VALUES ('gone', 'phone'), ('kept', 'phone'), ('changed', 'phone')")
    driver.settle(*nodes)
    driver.stop(edge)
    edge.write("UPDATE setting SET value = 'edge' WHERE name = 'gone'")
    edge.write("UPDATE setting SET value = 'edge' WHERE name = 'changed'")
    edge.write("INSERT INTO setting VALUES ('new', 'edge')")
    tablet.write("DELETE FROM setting WHERE name = 'gone'")
    driver.settle(phone, tablet)
    deleted = time.time()
    for node in (phone, tablet):
        eventually(
            f"{node.name} has collected its tombstones", lambda: tombstone_count(node) == 0 and collected_through(driver, node) > deleted)
    driver.start(edge)
    eventually("the phone has what edge wrote", lambda: ("new", "edge") in phone.rows(SETTINGS))
    driver.settle(*nodes)
    for node in nodes:
        expect_equal(
            node.rows(SETTINGS), [("changed", "edge"), ("kept", "phone"), ("new", "edge")], f"settings of {node.name}")
        eventually(f"nothing is quarantined on {node.name}", lambda: driver.status(node)["quarantined"] == 0)
    driver.expect_integrity(*nodes)
    driver.stop(*nodes)
