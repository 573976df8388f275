"""PostgreSQL and a node change the same rows while a part between them is down: what wins is the same on both sides, and as documented."""

import contextlib

from shared.waiting import eventually, expect_equal, wait_for_clock_tick

COLUMNS = ("title", "stock", "manual")
BEFORE = ("before", 1, "before")

#: What happens to a row, in this order, and what it is then: (title, stock, manual), or None. `edge` and `pg` are where statements are
#: run; those of `late` are run in PostgreSQL, and committed after all others. A row of a case `new row` does not exist before.
CASES = {
    "other column, the edge first": ([("edge", "UPDATE {} SET title = 'edge'"), ("pg", "UPDATE {} SET stock = 2")], ("edge", 2, "before")),
    "other column, PostgreSQL first": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET title = 'edge'")], ("edge", 2, "before")),
    "same column, the edge first": ([("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET stock = 2")], ("before", 2, "before")),
    "same column, PostgreSQL first": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET stock = 3")], ("before", 3, "before")),
    "an update that changes nothing": ([("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET stock = stock")], ("before", 3, "before")),
    "an update of a column of PostgreSQL's alone": (
        [("edge", "UPDATE {} SET stock = 3"), ("pg", "UPDATE {} SET checked = clock_timestamp()")], ("before", 3, "before")),
    "the same value on both sides": (
        [("pg", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET stock = 2, title = 'edge'"), ("pg", "UPDATE {} SET manual = 'pg'")],
        ("edge", 2, "pg")),
    "the same value, PostgreSQL last": (
        [("edge", "UPDATE {} SET stock = 2, title = 'edge'"), ("pg", "UPDATE {} SET stock = 2")], ("edge", 2, "before")),
    "PostgreSQL there and back": (
        [("edge", "UPDATE {} SET title = 'edge'"), ("pg", "UPDATE {} SET stock = 2"), ("pg", "UPDATE {} SET stock = 1")],
        ("edge", 1, "before")),
    "there and back": (
        [("edge", "UPDATE {} SET stock = 2"), ("pg", "UPDATE {} SET stock = 3"), ("edge", "UPDATE {} SET stock = 1")], ("before", 1, "before")),
    "the edge deletes, PostgreSQL updates": ([("edge", "DELETE FROM {}"), ("pg", "UPDATE {} SET stock = 2")], None),
    "PostgreSQL updates, the edge deletes": ([("pg", "UPDATE {} SET stock = 2"), ("edge", "DELETE FROM {}")], None),
    "PostgreSQL deletes, the edge updates": ([("pg", "DELETE FROM {}"), ("edge", "UPDATE {} SET stock = 2")], None),
    "the edge updates, PostgreSQL deletes": ([("edge", "UPDATE {} SET stock = 2"), ("pg", "DELETE FROM {}")], None),
    "both delete": ([("edge", "DELETE FROM {}"), ("pg", "DELETE FROM {}")], None),
    "the edge deletes, PostgreSQL inserts again": (
        [("edge", "DELETE FROM {}"), ("pg", "DELETE FROM {}"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "PostgreSQL inserts again, the edge deletes": (
        [("pg", "DELETE FROM {}"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "DELETE FROM {}")], None),
    "PostgreSQL deletes, the edge inserts again": (
        [("pg", "DELETE FROM {}"), ("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')")], ("edge", 3, "edge")),
    "the edge inserts again, PostgreSQL deletes": (
        [("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "DELETE FROM {}")], None),
    "both insert again, PostgreSQL last": (
        [("edge", "DELETE FROM {}"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "DELETE FROM {}"),
         ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "new row, the edge first": (
        [("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')"), ("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')")], ("pg", 2, "pg")),
    "new row, PostgreSQL first": (
        [("pg", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')")], ("edge", 3, "edge")),
    "the edge updates before PostgreSQL commits its update": (
        [("late", "UPDATE {} SET stock = 2"), ("edge", "UPDATE {} SET stock = 3, title = 'edge'")], ("edge", 2, "before")),
    "the edge updates before PostgreSQL commits its delete": ([("late", "DELETE FROM {}"), ("edge", "UPDATE {} SET stock = 3")], None),
    "the edge deletes before PostgreSQL commits its update": ([("late", "UPDATE {} SET stock = 2"), ("edge", "DELETE FROM {}")], None),
    "the edge deletes before PostgreSQL commits its insert": (
        [("late", "DELETE FROM {}"), ("late", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "DELETE FROM {}")], ("pg", 2, "pg")),
    "new row, the edge inserts before PostgreSQL commits": (
        [("late", "INSERT INTO {} VALUES ('pg', 2, 'pg')"), ("edge", "INSERT INTO {} VALUES ('edge', 3, 'edge')")], ("pg", 2, "pg")),
}

#: Cases left out while this program alone is down: the delete and the insert of the first side may be on their way, and the delete of the
#: other side, between the two, would find no row.
LEFT_OUT = {"the edge inserts again, PostgreSQL deletes": "reader", "PostgreSQL inserts again, the edge deletes": "writer"}


def run(rig):
    hub, phone, reader, writer = rig.add_both_ways()
    rig.driver.start(hub, phone)
    rig.start_both_ways(reader, writer)
    rig.send_barrier_to_edge(phone)
    rig.send_barrier_to_postgres(phone)

    downs = [victim for victim in rig.victims if victim is not rig.server]
    expected = {}
    for down in downs:
        keys = {case: f"{down.name}: {case}" for case in CASES if LEFT_OUT.get(case) != down.name}
        first = _for_one_row(f"INSERT INTO {{}} VALUES {BEFORE!r}")
        phone.write(*((first, (key,)) for case, key in keys.items() if not case.startswith("new row")))
        rig.send_barrier_to_postgres(phone)
        count = sum(not case.startswith("new row") for case in keys)
        eventually("the first rows are in PostgreSQL", lambda: len(_rows(rig.server.execute)) == len(expected) + count)
        down.kill()
        _change(rig, phone, keys)
        down.start()
        expected |= {key: CASES[case][1] for case, key in keys.items() if CASES[case][1] is not None}
        _await(rig, hub, phone, expected)
    # What is right now could still be on its way to be wrong: what follows the last change comes before these barriers.
    _await(rig, hub, phone, expected)
    for name, execute in (("PostgreSQL", rig.server.execute), ("the hub", hub.rows), ("the phone", phone.rows)):
        expect_equal(_rows(execute), expected, f"the rows of {name} in the end")
    return f"{len(CASES)} conflicts, while each of {', '.join(down.name for down in downs)} was down"


def _await(rig, hub, phone, expected):
    """Waits until all changes have been to the nodes and back, and all sides have the rows that are right."""
    rig.send_barrier_to_edge(hub, phone)
    rig.driver.settle(hub, phone)
    rig.send_barrier_to_postgres(phone)
    for name, execute in (("PostgreSQL", rig.server.execute), ("the hub", hub.rows), ("the phone", phone.rows)):
        eventually(f"{name} has the rows that are right", lambda: _differences(_rows(execute), expected))


def _change(rig, node, keys):
    """Makes the changes of all cases, step by step. All changes of a step come later than those of the one before."""
    with contextlib.closing(rig.server.connect()) as late, late, late.cursor() as cursor:
        run = {"edge": lambda changes: node.write(*changes), "pg": lambda changes: _commit(rig, changes),
               "late": lambda changes: _execute(cursor, changes)}
        for step in range(max(len(steps) for steps, _ in CASES.values())):
            wait_for_clock_tick()
            changes = {side: [] for side in run}
            for case, key in keys.items():
                steps, _ = CASES[case]
                if step < len(steps):
                    side, statement = steps[step]
                    changes[side].append((_for_one_row(statement), (key,)))
            for side, found in changes.items():
                if found:
                    run[side](found)
        wait_for_clock_tick()


def _commit(rig, changes):
    with contextlib.closing(rig.server.connect()) as connection, connection, connection.cursor() as cursor:
        _execute(cursor, changes)


def _execute(cursor, changes):
    for statement, parameters in changes:
        cursor.execute(statement.replace("?", "%s"), parameters)


def _for_one_row(statement):
    """The statement for the product with a code, its parameter."""
    if not statement.startswith("INSERT"):
        return f"{statement.format('product')} WHERE code = ?"
    # What the other side has inserted may have arrived already.
    return (statement.format(f"product ({', '.join(COLUMNS)}, code)").removesuffix(")") + ", ?) ON CONFLICT (code) DO UPDATE SET "
            + ", ".join(f"{column} = excluded.{column}" for column in COLUMNS))


def _rows(execute):
    return {key: tuple(values) for key, *values in execute(f"SELECT code, {', '.join(COLUMNS)} FROM product")}


def _differences(actual, expected):
    wrong = [f"{key}: {actual.get(key)} instead of {expected.get(key)}" for key in sorted(actual.keys() | expected.keys())
             if actual.get(key) != expected.get(key)]
    return (False, "; ".join(wrong)) if wrong else True
