"""Scenarios of exports: the topics have the rows of the stores, whatever happens to the exporter."""

import base64

from multi_node.registry import scenario
from multi_node.scenarios.basics import SCHEMA, add_task
from shared.exported_rows import exported_rows
from shared.waiting import eventually, expect, expect_equal

CURSOR = "SELECT count(*) FROM _martlet_cursors WHERE name LIKE 'martlet.export.%'"


def _tasks(node):
    rows = node.rows("SELECT code, title, done, weight, picture FROM task ORDER BY code")
    return [(*row[:4], None if row[4] is None else base64.b64encode(row[4]).decode()) for row in rows]


@scenario()
def export_takeover(driver, options):
    """The exporter is killed, and then frozen; another node takes over, and the topics have all rows after each."""
    phone, tablet = nodes = driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)
    prefix = f"{driver.topic}-out"
    for node in nodes:
        driver.configure(node, f"export: {{prefix: {prefix}, leaseTimeout: 3s}}\n")
    phone.write(*(add_task(f"phone-{number}") for number in range(100)))

    def is_exported():
        found = exported_rows(driver.bootstrap, f"{prefix}.task", f"{prefix}.notebook")
        tasks = sorted(tuple(row[name] for name in ("code", "title", "done", "weight", "picture"))
                       for row in found[f"{prefix}.task"])
        books = sorted(row["title"] for row in found[f"{prefix}.notebook"])
        expected = _tasks(tablet), [title for title, in tablet.rows("SELECT title FROM notebook ORDER BY title")]
        return (tasks, books) == expected or (False, f"{len(tasks)} tasks, {len(books)} notebooks")

    def exporter():
        """The node that exports, and the other one."""
        found = eventually("one exporter", lambda: [node for node in nodes if node.value(CURSOR)])
        expect(len(found) == 1, f"{len(found)} nodes have the cursor of an exporter")
        return found[0], next(node for node in nodes if node is not found[0])

    driver.start(*nodes)
    phone.write(("INSERT INTO notebook (id, title) VALUES (1, ?)", ("of the phone",)),
                "UPDATE task SET weight = 0.1, picture = x'00ff' WHERE code = 'phone-7'")
    driver.settle(*nodes)
    eventually("the first rows are exported", is_exported)

    killed, other = exporter()
    driver.kill(killed)
    other.write(add_task("after the kill"), "DELETE FROM task WHERE code LIKE 'phone-1%'")
    driver.start(killed)
    driver.settle(*nodes)
    eventually("the rows are exported after the kill", is_exported)

    frozen, other = exporter()
    driver.freeze(frozen)
    other.write(add_task("while frozen"), "UPDATE task SET done = 1", "DELETE FROM task WHERE code LIKE 'phone-2%'")
    eventually("the other node exports", lambda: other.value(CURSOR))
    driver.thaw(frozen)
    frozen.write(add_task("thawed"))
    driver.settle(*nodes)
    eventually("the rows are exported after the freeze", is_exported)
    eventually("the frozen node gives up its place", lambda: not frozen.value(CURSOR))
    expect_equal(exporter()[0].name, other.name, "the exporter at the end")
