"""A consumer rebuilds every table from the exported topics alone, after kills of all agents, each of which may export."""

from postgres.tables import SQLITE_SCHEMA
from postgres.topics import newest_rows
from shared.waiting import eventually

#: A table whose rows Martlet identifies: each node numbers them by itself.
VISIT = "CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT NOT NULL)"


def run(rig):
    nodes = [rig.add_node(name, rig.export_settings(), f"{SQLITE_SCHEMA};\n{VISIT}") for name in ("phone", "tablet")]
    rig.driver.start(*nodes)
    for node in nodes:
        node.write(*(("INSERT INTO visit (place) VALUES (?)", (f"{node.name} {number}",)) for number in range(50)))
        rig.add_edge_writer(node, shares_rows=True)
    kills = rig.storm()
    nodes[0].write("DELETE FROM visit WHERE id % 3 = 0")
    rig.driver.settle(*nodes)

    equal = rig.wait_until_equal(
        lambda table: rig.topic_rows(f"{rig.export_prefix}.{table.name}", table), lambda table: rig.edge_rows(nodes[1], table),
        ("the topic", "the store"))
    visits = eventually("the visits are exported", lambda: _equal_visits(rig, nodes[1]))
    rig.expect_written(lambda table: rig.edge_rows(nodes[1], table))
    return rig.summary(kills, f"{equal}, {visits} visit")


def _equal_visits(rig, node):
    found = newest_rows(rig.driver.bootstrap, f"{rig.export_prefix}.visit")
    here, there = sorted(row["place"] for row in found), sorted(place for place, in node.rows("SELECT place FROM visit"))
    return len(here) if here == there else (False, f"{len(here)} in the topic, {len(there)} in the store")
