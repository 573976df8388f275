"""Rows that were deleted so long ago that nobody remembers them."""

import time
from datetime import datetime

from multi_node.registry import scenario
from shared.waiting import eventually, expect_equal

SCHEMA = "CREATE TABLE setting (name TEXT PRIMARY KEY NOT NULL, value TEXT)"
SETTINGS = "SELECT name, value FROM setting ORDER BY name"
#: As short as can be: a node that is away for some seconds was away for too long.
FORGETS_SOON = "check:\n  interval: 1s\n  tombstoneHorizon: 4s\n"


def stones(node):
    return node.value("SELECT count(*) FROM _martlet_tombstones")


def collected_through(driver, node):
    """Until when deletions are forgotten, in seconds since 1970. 0 where none are."""
    date = driver.status(node)["collectedThrough"]
    return datetime.fromisoformat(date).timestamp() if date else 0


@scenario()
def deletes_are_forgotten(driver, options):
    """Nodes forget what was deleted, and one that was away for longer brings none of it back, and loses nothing of its own."""
    nodes = [driver.add_node(name, SCHEMA) for name in ("phone", "tablet", "edge")]
    phone, tablet, edge = nodes
    for node in nodes:
        driver.configure(node, FORGETS_SOON)
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
            f"{node.name} has forgotten", lambda: stones(node) == 0 and collected_through(driver, node) > deleted)
    driver.start(edge)
    eventually("the phone has what edge wrote", lambda: ("new", "edge") in phone.rows(SETTINGS))
    driver.settle(*nodes)
    for node in nodes:
        expect_equal(
            node.rows(SETTINGS), [("changed", "edge"), ("kept", "phone"), ("new", "edge")], f"settings of {node.name}")
        eventually(f"nothing is quarantined on {node.name}", lambda: driver.status(node)["quarantined"] == 0)
    driver.expect_sound(*nodes)
    driver.stop(*nodes)
