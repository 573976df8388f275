"""Scenarios on small stores, with one behaviour each."""

import pathlib

from multi_node.registry import scenario
from shared.waiting import eventually, expect, expect_equal, wait_for_clock_tick

SCHEMA = """
CREATE TABLE notebook (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL
);
CREATE TABLE note (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    notebook_id INTEGER NOT NULL REFERENCES notebook (id),
    text TEXT NOT NULL
);
CREATE TABLE task (
    code TEXT PRIMARY KEY NOT NULL,
    title TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    weight REAL,
    picture BLOB
);
"""

TASKS = "SELECT code, title, done, weight, picture FROM task ORDER BY code"


def two_nodes(driver):
    return driver.add_node("phone", SCHEMA), driver.add_node("tablet", SCHEMA)


def add_task(code, title="a task"):
    return ("INSERT INTO task (code, title) VALUES (?, ?)", (code, title))


def expect_rows_everywhere(nodes, sql, expected):
    for node in nodes:
        expect_equal(node.rows(sql), expected, f"{node.name}: {sql}")


@scenario()
def two_nodes_converge(driver, options):
    """Both nodes write, and converge to equal digests."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    phone.write(
        (
            "INSERT INTO task (code, title, done, weight, picture) VALUES (?, ?, ?, ?, ?)",
            ("p", "from the phone \u2708", 2**53 + 1, 0.1, b"\x00\xff\x00"),
        )
    )
    tablet.write(add_task("t", "from the tablet"), "UPDATE task SET done = 1 WHERE code = 't'")
    driver.settle(phone, tablet)
    expected = [
        ("p", "from the phone \u2708", 2**53 + 1, 0.1, b"\x00\xff\x00"),
        ("t", "from the tablet", 1, None, None),
    ]
    expect_rows_everywhere((phone, tablet), TASKS, expected)
    driver.expect_each_transaction_once(phone, tablet)
    driver.stop(phone, tablet)


@scenario()
def stopped_while_opening(driver, options):
    """SIGTERM ends an agent that waits for its store, which another program keeps locked; then the agent runs as usual."""
    phone, tablet = two_nodes(driver)
    driver.configure(phone, "store:\n  busyTimeout: 1h\n")
    owner = pathlib.Path(f"{phone.store}.lock")
    owner.unlink(missing_ok=True)
    with phone.connection() as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        driver.start(phone)
        eventually("the agent opens its store", lambda: owner.exists() and owner.read_text())
        driver.stop(phone)
        connection.execute("ROLLBACK")
    phone.write(add_task("after the lock"))
    driver.start(phone, tablet)
    driver.settle(phone, tablet)


@scenario()
def offline_and_back(driver, options):
    """A node that was offline catches up, and publishes the changes that it made meanwhile."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    phone.write(add_task("before"))
    driver.settle(phone, tablet)
    driver.stop(tablet)
    for number in range(300):
        phone.write(add_task(f"phone-{number:03}"))
        if number % 3 == 0:
            tablet.write(add_task(f"tablet-{number:03}"))
    driver.start(tablet)
    driver.settle(phone, tablet)
    expected = ["before", *(f"phone-{n:03}" for n in range(300)), *(f"tablet-{n:03}" for n in range(0, 300, 3))]
    expect_rows_everywhere((phone, tablet), "SELECT code FROM task ORDER BY code", [(code,) for code in expected])
    driver.expect_each_transaction_once(phone, tablet)


@scenario()
def foreign_writer(driver, options):
    """A program with default settings inserts, updates, replaces and deletes while the agent runs; every change arrives."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    with phone.connection() as connection:
        connection.executemany(*_tasks("bulk", 1000))
        connection.commit()
        connection.execute("INSERT INTO task (code, title) VALUES ('rolled-back', 'never')")
        connection.rollback()
        connection.execute("UPDATE task SET done = 1 WHERE code < 'bulk-0500'")
        connection.commit()
        connection.execute("INSERT OR REPLACE INTO task (code, title) VALUES ('bulk-0000', 'replaced')")
        connection.execute("DELETE FROM task WHERE code >= 'bulk-0990'")
        connection.commit()
    driver.settle(phone, tablet)
    expected = [("bulk-0000", "replaced", 0)]
    expected += [(f"bulk-{n:04}", "a task", int(n < 500)) for n in range(1, 990)]
    expect_rows_everywhere((phone, tablet), "SELECT code, title, done FROM task ORDER BY code", expected)


@scenario()
def colliding_autoincrement(driver, options):
    """Both nodes insert row 1 while offline: both end with two rows, and every reference leads to the right one."""
    phone, tablet = two_nodes(driver)
    for node in (phone, tablet):
        node.write(
            ("INSERT INTO notebook (id, title) VALUES (1, ?)", (f"book of {node.name}",)),
            ("INSERT INTO note (notebook_id, text) VALUES (1, ?)", (f"note of {node.name}",)),
        )
    driver.start(phone, tablet)
    driver.settle(phone, tablet)
    pairs = "SELECT text, title FROM note LEFT JOIN notebook ON notebook.id = notebook_id ORDER BY text"
    expected = [("note of phone", "book of phone"), ("note of tablet", "book of tablet")]
    expect_rows_everywhere((phone, tablet), pairs, expected)
    expect_rows_everywhere((phone, tablet), "SELECT count(*) FROM notebook", [(2,)])
    driver.expect_integrity(phone, tablet)


@scenario()
def delete_wins(driver, options):
    """One node deletes a row; the other, which has not seen that, updates it later: the row stays deleted."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    phone.write(add_task("contested"), add_task("kept"))
    driver.settle(phone, tablet)
    driver.stop(phone, tablet)
    phone.write("DELETE FROM task WHERE code = 'contested'")
    tablet.write("UPDATE task SET title = 'too late' WHERE code = 'contested'")
    driver.start(phone, tablet)
    driver.settle(phone, tablet)
    expect_rows_everywhere((phone, tablet), "SELECT code FROM task", [("kept",)])


@scenario()
def concurrent_different_attributes(driver, options):
    """Offline changes to different columns of one row are all kept; of two changes to one column, the later one wins."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    phone.write(add_task("shared", "old"))
    driver.settle(phone, tablet)
    driver.stop(phone, tablet)
    phone.write("UPDATE task SET title = 'new', weight = 1.5 WHERE code = 'shared'")
    # Timestamps have milliseconds: the next change needs a later one.
    wait_for_clock_tick()
    tablet.write("UPDATE task SET done = 1, weight = 2.5 WHERE code = 'shared'")
    driver.start(phone, tablet)
    driver.settle(phone, tablet)
    expect_rows_everywhere((phone, tablet), TASKS, [("shared", "new", 1, 2.5, None)])


@scenario()
def kill9_of_an_agent(driver, options):
    """Agents are killed and restarted in turn while programs write to both stores."""
    phone, tablet = two_nodes(driver)
    driver.start(phone, tablet)
    codes = []
    for round_number in range(10):
        for number in range(20):
            for node in (phone, tablet):
                codes.append(f"{node.name}-{round_number:02}-{number:02}")
                node.write(add_task(codes[-1]))
        victim = (phone, tablet)[round_number % 2]
        driver.kill(victim)
        codes.append(f"{victim.name}-{round_number:02}-down")
        victim.write(add_task(codes[-1]))
        driver.start(victim)
    driver.settle(phone, tablet)
    expect_rows_everywhere((phone, tablet), "SELECT code FROM task ORDER BY code", [(c,) for c in sorted(codes)])
    driver.expect_each_transaction_once(phone, tablet)
    driver.expect_integrity(phone, tablet)
    expect(driver.is_running(phone) and driver.is_running(tablet), "both agents run at the end")


def _tasks(prefix, count):
    return "INSERT INTO task (code, title) VALUES (?, 'a task')", [(f"{prefix}-{n:04}",) for n in range(count)]
